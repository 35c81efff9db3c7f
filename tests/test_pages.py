"""Page images: text rendered to the pixel, PDFs, image files, the pages of a collection."""

import hashlib
import importlib.util
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image, ImageDraw
from pydantic import ValidationError

from retrievers.base import MissingExtra
from retrievers.collection import Collection, Document
from retrievers.pages import (
    Page,
    PageError,
    PageSettings,
    PageStyle,
    PageStyleError,
    draw_page,
    lay_out,
    missing_characters,
    page_source,
    render_pages,
)
from retrievers.pages.images import pages_of_bytes, pages_of_file
from retrievers.pages.pdf import BrokenPdf, EmptyPdf, EncryptedPdf, HugePdf, pdf_pages
from retrievers.pages.style import font_file

SETTINGS = PageSettings()
# Eight characters of 8 pixels a line, two lines a page.
SMALL = PageStyle(width=64, height=32, word_grid=1)


def picture(text: str, size: tuple[int, int] = (120, 80)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((10, 10), text, "black")
    return image


def blank(size: tuple[int, int] = (120, 80)) -> Image.Image:
    return Image.new("RGB", size, "white")


def save_pdf(path: Path, pages: Sequence[Image.Image]) -> Path:
    pages[0].save(path, save_all=True, append_images=pages[1:], resolution=72)
    return path


def written_pdf(width: int, height: int, trailer: str = "", kids: str = "3 0 R") -> bytes:
    """A PDF by hand: one page with a black square in a corner."""
    square = b"0 0 0 rg 0 0 %d %d re f" % (width // 4, height // 4)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(kids) // 5} >>".encode(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 4 0 R >>" % (width, height),
        b"<< /Length %d >> stream\n%s\nendstream" % (len(square), square),
        b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <"
        + b"ab" * 32
        + b"> /U <"
        + b"cd" * 32
        + b"> >>",
    ]
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(
        f"trailer << /Size {len(objects) + 1} /Root 1 0 R /ID [<00> <00>] {trailer} >>\n".encode()
    )
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def fingerprint(image: Image.Image | PageError | None) -> str:
    assert isinstance(image, Image.Image)
    return hashlib.sha256(image.tobytes()).hexdigest()


# Rendered text


def test_lines_are_filled_and_go_on_on_further_pages() -> None:
    pages = lay_out("ab cd", "one two\nthree\n\nfour", SMALL)
    # "one two" is 7 x 8 = 56 of 64 pixels, "three" no longer fits; a paragraph begins a line.
    assert pages == [
        [[(0, "ab"), (24, "cd")], [(0, "one"), (32, "two")]],
        [[(0, "three")], [(0, "four")]],
    ]


def test_words_begin_on_the_grid() -> None:
    # "ab" and a space end at 24, the next multiple of 16 is 32; "cd" would end at 48, "ef" at 64.
    (page,) = lay_out("", "ab cd ef", PageStyle(width=96, word_grid=16))
    assert page == [[(0, "ab"), (32, "cd"), (64, "ef")]]


def test_a_word_longer_than_a_line_goes_on() -> None:
    assert lay_out("", "x abcdefghij", SMALL) == [
        [[(0, "x")], [(0, "abcdefgh")]],
        [[(0, "ij")]],
    ]


def test_a_letter_stays_in_its_cell() -> None:
    style = PageStyle(width=64, height=64, margin=16, offset=(8, 4))
    page = draw_page([[], [(16, "X")]], style).convert("L")
    left, top, right, bottom = page.point(lambda value: 255 - value).getbbox() or (0, 0, 0, 0)
    # 16 + 8 + 16 = 40 is where the cell begins; the second line begins at 16 + 4 + 16 = 36.
    assert 40 <= left < right <= 48
    assert 36 <= top < bottom <= 52


def test_a_page_ends_below_its_text() -> None:
    style = PageStyle(width=64, height=100, margin=4, word_grid=1, height_grid=16)
    # 2 x 4 + 2 x 16 = 40 pixels, the next multiple of 16 is 48; five lines would need 88, so 96.
    assert [page.size for page in render_pages("one", "two", style)] == [(64, 48)]
    assert [p.size for p in render_pages("", "1\n\n2\n\n3\n\n4\n\n5\n\n6", style)] == [
        (64, 96),
        (64, 32),
    ]
    whole = style.model_copy(update={"height_grid": None})
    assert [page.size for page in render_pages("one", "two", whole)] == [(64, 100)]


def test_the_same_text_is_the_same_to_the_pixel() -> None:
    text = "The budget of 2024 — a summary. " * 60
    once, again = (list(map(fingerprint, render_pages("T", text, PageStyle()))) for _ in range(2))
    assert once == again
    assert len(set(once)) == len(once) > 1
    other = list(map(fingerprint, render_pages("T", text, PageStyle(offset=(1, 0)))))
    assert set(once).isdisjoint(other)


def test_a_blank_text_has_no_page() -> None:
    assert render_pages(" ", "\n \n", PageStyle()) == []


@pytest.mark.parametrize(
    ("style", "says"),
    [
        ({"height": 20, "margin": 8}, "no room for a line of 16"),
        ({"width": 16, "margin": 6}, "no room for 'a' in DejaVuSansMono 13"),
        ({"font": "Comic"}, "no font 'Comic'; name a .ttf file, or one of: .*DejaVuSansMono"),
        ({"font": "missing.ttf"}, "font 'missing.ttf': no such file"),
    ],
)
def test_a_page_that_takes_no_text(style: dict[str, Any], says: str) -> None:
    with pytest.raises(PageStyleError, match=says):
        render_pages("", "abc", PageStyle(**style))


def test_a_font_file_of_your_own(tmp_path: Path) -> None:
    own = tmp_path / "own.ttf"
    own.write_bytes(font_file("DejaVuSerif").read_bytes())
    style = PageStyle(font=str(own))
    named = PageStyle(font="DejaVuSerif")
    assert fingerprint(render_pages("", "abc", style)[0]) == fingerprint(
        render_pages("", "abc", named)[0]
    )
    assert style.identity()["font_sha256"] == named.identity()["font_sha256"]
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    with pytest.raises(PageStyleError, match=r"broken\.ttf' cannot be read"):
        render_pages("", "abc", PageStyle(font=str(broken)))


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "rlqr\[fonts\]"'):
        font_file("DejaVuSans")


def test_characters_that_the_font_lacks() -> None:
    assert missing_characters("예산 2024: naïve — Ω", PageStyle()) == {"예", "산"}


@pytest.mark.parametrize(
    "change",
    [
        {"width": 400},
        {"height": 400},
        {"font": "DejaVuSans"},
        {"font_size": 12},
        {"line_height": 17},
        {"margin": 1},
        {"offset": (0, 1)},
        {"word_grid": 1},
        {"height_grid": None},
    ],
)
def test_every_setting_is_part_of_the_identity(change: dict[str, Any]) -> None:
    assert PageStyle(**change).identity() != PageStyle().identity()


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="fontsize"):
        PageStyle.model_validate({"fontsize": 12})


# PDF files


def test_the_second_of_three_pages_is_blank(tmp_path: Path) -> None:
    path = save_pdf(tmp_path / "three.pdf", [picture("one"), blank(), picture("three")])
    pages = collection_pages([str(path)])
    assert [(page.number, page.blank) for page in pages] == [(1, False), (2, True), (3, False)]


def test_resolution(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(written_pdf(144, 72))
    (page,) = pdf_pages(path, "a", PageSettings(dpi=100))
    assert isinstance(page, Image.Image)
    assert page.size == (200, 100)  # 144 points are 2 inches
    assert page.getpixel((0, 99)) == (0, 0, 0)
    assert page.getpixel((199, 0)) == (255, 255, 255)


def test_a_huge_page_is_capped() -> None:
    # 14,400 points are 200 inches: 40,000 pixels at 200 dots an inch, 1,600 million in all.
    (page,) = pdf_pages(written_pdf(14400, 14400), "huge.pdf", PageSettings(dpi=200, max_side=1000))
    assert isinstance(page, Image.Image)
    assert page.size == (1000, 1000)


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", EmptyPdf, "bad.pdf: an empty file of 0 bytes"),
        (b"%PDF-1.4\nnothing", BrokenPdf, "bad.pdf: no readable PDF"),
        (b"no PDF at all", BrokenPdf, "bad.pdf: no readable PDF"),
        (written_pdf(72, 72)[:300], BrokenPdf, "bad.pdf: no readable PDF"),
        (written_pdf(72, 72, "/Encrypt 5 0 R"), EncryptedPdf, "bad.pdf: encrypted with a password"),
        (written_pdf(72, 72, kids=""), EmptyPdf, "bad.pdf: a PDF without pages"),
    ],
)
def test_each_fault_has_its_error(
    content: bytes, error: type[PageError], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    with pytest.raises(PageError, match=says) as raised:
        list(pdf_pages(path, str(path), SETTINGS))
    assert type(raised.value) is error
    with pytest.raises(error, match=says):
        list(pdf_pages(content, "bad.pdf", SETTINGS))


def test_too_many_pages(tmp_path: Path) -> None:
    path = save_pdf(tmp_path / "long.pdf", [picture(str(number)) for number in range(4)])
    with pytest.raises(HugePdf, match=r"long\.pdf: 4 pages, and at most 3 are taken"):
        list(pdf_pages(path, str(path), PageSettings(max_pages=3)))


def test_without_pypdfium2(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, extra: str) -> Any:
        raise MissingExtra(f'the package {module} is needed here: pip install "rlqr[{extra}]"')

    monkeypatch.setattr("retrievers.pages.pdf.import_extra", missing)
    with pytest.raises(MissingExtra, match=r'pypdfium2 is needed here: pip install "rlqr\[pdf\]"'):
        list(pdf_pages(written_pdf(72, 72), "a.pdf", SETTINGS))


def test_forty_files_by_four_workers_as_in_sequence(tmp_path: Path) -> None:
    paths = [
        save_pdf(tmp_path / f"{number}.pdf", [picture(f"{number} {page}") for page in range(2)])
        for number in range(40)
    ]

    def drawn(path: Path) -> list[str]:
        return [fingerprint(page) for page in pdf_pages(path, str(path), SETTINGS)]

    expected = [drawn(path) for path in paths]
    assert len({page for pages in expected for page in pages}) == 80
    for _ in range(2):
        with ThreadPoolExecutor(4) as workers:
            assert list(workers.map(drawn, paths)) == expected


# Image files


def test_a_folder_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name, side in (("page-10.png", 50), ("page-2.jpg", 40), ("page-1.webp", 30)):
        picture("x", (side, side)).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no page")
    (tmp_path / ".hidden.png").write_text("no page")
    sizes = [
        page.size for page in pages_of_file(tmp_path, SETTINGS) if isinstance(page, Image.Image)
    ]
    assert sizes == [(30, 30), (40, 40), (50, 50)]


def test_every_page_of_a_tiff(tmp_path: Path) -> None:
    path = tmp_path / "fax.tiff"
    picture("1").save(path, save_all=True, append_images=[blank(), picture("3", (50, 40))])
    pages = list(pages_of_file(path, SETTINGS))
    assert pages[1] is None
    assert [page.size for page in pages if isinstance(page, Image.Image)] == [(120, 80), (50, 40)]


def test_images_are_scaled_down_and_turned_upright(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    picture("x", (400, 200)).save(path, exif=exif)
    (page,) = pages_of_file(path, PageSettings(max_side=100))
    assert isinstance(page, Image.Image)
    assert page.size == (50, 100)


def test_what_is_transparent_is_paper(tmp_path: Path) -> None:
    path = tmp_path / "logo.png"
    image = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    image.putpixel((5, 5), (0, 0, 0, 255))
    image.save(path)
    (page,) = pages_of_file(path, SETTINGS)
    assert isinstance(page, Image.Image)
    assert page.getpixel((0, 0)) == (255, 255, 255)
    assert page.getpixel((5, 5)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("bad.png", b"no image", r"bad\.png: no readable image"),
        ("notes.docx", b"text", r"notes\.docx: no page image; the files taken are \.pdf, \.png"),
        ("gone.png", None, r"gone\.png: no such file"),
    ],
)
def test_files_without_a_page(name: str, content: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PageError, match=says):
        collection_pages([str(path)])


def test_a_cut_off_image_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.png"
    picture("x", (300, 300)).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(PageError, match=r"cut\.png: no readable image"):
        collection_pages([str(path)])


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="a folder without PDF or image files"):
        list(pages_of_file(tmp_path, SETTINGS))


# The pages of a collection


def with_images(cells: Sequence[Any], kind: Any = None, column: str = "images") -> Collection:
    ids = [f"d{number}" for number in range(len(cells))]
    table = {"id": ids, "text": ["text"] * len(ids), column: pa.array(cells, kind)}
    return Collection("pages", pa.table(table))


def collection_pages(cells: Sequence[Any], **chosen: Any) -> list[Page]:
    source = page_source(with_images(cells), PageSettings(**chosen))
    return [page for document in source.documents() for page in document]


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
