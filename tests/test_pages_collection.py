"""Page images: the pages of a collection."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from retrievers.collection import Collection, Document
from retrievers.pages import PageError, PageSettings, PageStyle, page_source, render_pages
from retrievers.pages.images import pages_of_bytes
from tests.page_images import (
    SETTINGS,
    blank,
    collection_pages,
    fingerprint,
    picture,
    save_pdf,
    with_images,
)
from tests.tiny_pdf import written_pdf


def encoded(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_whatever_a_cell_holds(tmp_path: Path) -> None:
    image = picture("x")
    path = tmp_path / "x.png"
    image.save(path)
    content = encoded(image)
    forms: list[tuple[list[Any], str]] = [
        ([str(path)], "images"),
        ([content], "image"),
        ([[str(path)]], "images"),
        ([[content]], "images"),
        ([{"bytes": content, "path": None}], "image"),
        ([{"bytes": None, "path": str(path)}], "image"),
    ]
    for cells, column in forms:
        source = page_source(with_images(cells, column=column), SETTINGS)
        (pages,) = map(list, source.documents())
        assert [fingerprint(page.image) for page in pages] == [fingerprint(image)]
    (page,) = pages_of_bytes(written_pdf(72, 72), "x", SETTINGS)
    assert isinstance(page, Image.Image)


def test_one_page_of_a_pdf(tmp_path: Path) -> None:
    path = save_pdf(tmp_path / "a.pdf", [picture("1"), picture("2"), picture("3")])
    content, whole = path.read_bytes(), [page.image for page in collection_pages([str(path)])]
    for where in ({"path": str(path)}, {"bytes": content}, {"bytes": content, "path": "a.pdf"}):
        (page,) = collection_pages([{**where, "page": 2}])
        assert fingerprint(page.image) == fingerprint(whole[1])
        for wrong in (4, 0, -1):
            cell = {**where, "page": wrong}
            with pytest.raises(PageError, match=f"has no page {wrong}, but 3 pages"):
                collection_pages([cell])
            assert page_source(with_images([cell]), SETTINGS).identity()
    nothing = {"bytes": None, "path": None, "page": 2}
    assert len(collection_pages([{"path": str(path), "page": 2}, nothing])) == 1


def test_what_draws_a_pdf_is_part_of_what_its_pages_depend_on(tmp_path: Path) -> None:
    content = save_pdf(tmp_path / "a.pdf", [picture("1")]).read_bytes()
    for pdf in (content, b"\r\n" + content):  # the header need not come first
        assert len(collection_pages([pdf])) == 1
        assert "pypdfium2" in page_source(with_images([pdf]), SETTINGS).identity()["versions"]


def test_pages_are_numbered_through_all_files_of_a_document(tmp_path: Path) -> None:
    pdf = save_pdf(tmp_path / "a.pdf", [picture("1"), blank()])
    picture("3").save(tmp_path / "b.png")
    source = page_source(with_images([[str(pdf), str(tmp_path / "b.png")], None]), SETTINGS)
    first, second = map(list, source.documents())
    assert [(page.number, page.blank) for page in first] == [(1, False), (2, True), (3, False)]
    assert second == []


def test_a_failed_page_stops_or_is_skipped_and_is_not_blank(tmp_path: Path) -> None:
    (tmp_path / "2.png").write_bytes(b"no image")
    picture("1").save(tmp_path / "1.png")
    picture("3").save(tmp_path / "3.png")
    with pytest.raises(PageError, match=r"2\.png: no readable image"):
        collection_pages([str(tmp_path)])
    pages = collection_pages([str(tmp_path)], failed="skip")
    assert [(page.number, page.failed, page.blank) for page in pages] == [
        (1, False, False),
        (2, True, False),
        (3, False, False),
    ]


def test_nothing_is_drawn_before_it_is_asked_for(tmp_path: Path) -> None:
    documents = page_source(with_images([[str(tmp_path / "gone.png")]]), SETTINGS).documents()
    pages = iter(next(documents))
    with pytest.raises(PageError, match=r"gone\.png: no such file"):
        next(pages)


def test_text_is_rendered_where_there_are_no_images() -> None:
    collection = Collection.from_documents(
        "t", [Document("a", "Title", "text"), Document("b", "", "")]
    )
    for chosen in ("auto", "text"):
        source = page_source(collection, PageSettings(source=chosen))
        pages = [list(document) for document in source.documents()]
        assert [len(document) for document in pages] == [1, 0]
        assert fingerprint(pages[0][0].image) == fingerprint(
            render_pages("Title", "text", PageStyle())[0]
        )
    with pytest.raises(PageError, match="neither a column 'images' nor 'image'"):
        page_source(collection, PageSettings(source="images"))


def test_text_may_be_rendered_beside_images(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    picture("x").save(path)
    source = page_source(with_images([str(path)]), PageSettings(source="text"))
    assert source.identity()["source"] == "text"


def test_the_identity_knows_the_files_and_the_resolution(tmp_path: Path) -> None:
    path, pdf = tmp_path / "x.png", tmp_path / "y.pdf"
    picture("x").save(path)
    pdf.write_bytes(written_pdf(72, 72))

    def identity(cells: Sequence[Any], **chosen: Any) -> str:
        return str(page_source(with_images(cells), PageSettings(**chosen)).identity())

    first = identity([str(path), str(pdf)])
    assert first == identity([str(path), str(pdf)])
    assert first != identity([str(pdf), str(path)])
    assert first != identity([[str(path), str(pdf)]])
    changed: dict[str, Any]
    for changed in ({"dpi": 100}, {"max_side": 100}):
        assert first != identity([str(path), str(pdf)], **changed)
    # The style plays no part where nothing is rendered.
    assert first == identity([str(path), str(pdf)], style=PageStyle(margin=3))
    picture("y").save(path)
    assert first != identity([str(path), str(pdf)])


def test_a_cell_that_is_neither_path_nor_bytes() -> None:
    source = page_source(with_images([3]), SETTINGS)
    with pytest.raises(PageError, match="document 'd0', column 'images': 3 is neither a path nor"):
        [list(document) for document in source.documents()]


def test_a_missing_file_is_named_when_an_index_is_opened(tmp_path: Path) -> None:
    gone: Callable[[], Any] = page_source(
        with_images([str(tmp_path / "gone.pdf")]), SETTINGS
    ).identity
    with pytest.raises(
        PageError, match=r"document 'd0', column 'images': .*gone\.pdf: no such file"
    ):
        gone()
