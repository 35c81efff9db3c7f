"""Pages of image files, of folders of them, and of whatever else a path or some bytes may be."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from retrievers.pages.page import PageError, PageSettings, seen
from retrievers.pages.pdf import pdf_pages
from retrievers.pages.pixels import rgb

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif")
PDF = ".pdf"
MAGIC = b"%PDF-"
HEAD = 1024  # the header of a PDF may begin so late


def pages_of_file(path: Path, settings: PageSettings) -> Iterator["Image | PageError | None"]:
    """Pages of an image file, a PDF, or a folder of such files in the order of their names.

    Numbers in names count as numbers: page-2 comes before page-10. Yields as `pdf_pages`.

    Raises:
        PageError: no such file, a kind of file that has no pages, or a folder without any; and what
            `pdf_pages` raises.
    """
    if path.is_dir():
        for file in files_at(path):
            yield from pages_of_file(file, settings)
    elif not path.is_file():
        raise PageError(f"{path}: no such file")
    elif path.suffix.lower() == PDF:
        yield from pdf_pages(path, str(path), settings)
    elif path.suffix.lower() in SUFFIXES:
        yield from _image_pages(path, str(path), settings)
    else:
        known = ", ".join((PDF, *SUFFIXES))
        raise PageError(f"{path}: no page image; the files taken are {known}")


def is_pdf(content: bytes) -> bool:
    """Whether some bytes are a PDF's, not an image's."""
    return MAGIC in content[:HEAD]


def pages_of_bytes(
    content: bytes, name: str, settings: PageSettings
) -> Iterator["Image | PageError | None"]:
    """Pages of an image or a PDF that is in memory. name: for messages. As `pages_of_file`."""
    if is_pdf(content):
        yield from pdf_pages(content, name, settings)
    else:
        yield from _image_pages(content, name, settings)


def files_at(path: Path) -> list[Path]:
    """The file itself, or the PDF and image files of a folder, as in `folder_files`.

    Raises:
        PageError: a folder without any.
    """
    if not path.is_dir():
        return [path]
    files = folder_files(path)
    if not files:
        raise PageError(f"{path}: a folder without PDF or image files; add some or remove it")
    return files


def folder_files(folder: Path) -> list[Path]:
    """PDF and image files in a folder, by name; folders inside it and hidden files are left out."""
    files = (path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    return sorted((f for f in files if f.suffix.lower() in (PDF, *SUFFIXES)), key=_natural)


def _natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"([0-9]+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], path.name


def _image_pages(
    content: Path | bytes, name: str, settings: PageSettings
) -> Iterator["Image | PageError | None"]:
    """One image, or every page of a TIFF."""
    from PIL import Image

    # Pillow raises these and more for damaged files, depending on the format.
    faults = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)
    try:
        opened = Image.open(io.BytesIO(content) if isinstance(content, bytes) else content)
    except faults as error:
        yield _unreadable(name, error)
        return
    with opened as image:
        for frame in range(image.n_frames if image.format == "TIFF" else 1):  # type: ignore[attr-defined]
            try:
                image.seek(frame)
                page = _fitted(image, settings.max_side)
            except faults as error:
                yield _unreadable(name, error)
            else:
                yield seen(page)


def _fitted(image: "Image", max_side: int) -> "Image":
    from PIL import Image, ImageOps

    image.draft("RGB", (max_side, max_side))  # a JPEG is decoded no larger than needed
    page = rgb(ImageOps.exif_transpose(image))
    page.thumbnail((max_side, max_side), Image.Resampling.LANCZOS)
    return page


def _unreadable(name: str, error: Exception) -> PageError:
    return PageError(f"{name}: no readable image: {error}; repair or remove it")
