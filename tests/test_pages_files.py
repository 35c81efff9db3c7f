"""Page images: PDFs and image files."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from retrievers.base import MissingExtra
from retrievers.pages import PageError, PageSettings
from retrievers.pages.images import pages_of_file
from retrievers.pages.pdf import BrokenPdf, EmptyPdf, EncryptedPdf, HugePdf, pdf_pages
from tests.page_images import SETTINGS, blank, collection_pages, fingerprint, picture, save_pdf
from tests.tiny_pdf import written_pdf

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
