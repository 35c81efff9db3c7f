"""Page images with a word on them or blank, PDF files of them, and collections that hold either."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image, ImageDraw

from retrievers.collection import Collection
from retrievers.pages import Page, PageError, PageSettings, page_source

SETTINGS = PageSettings()


def picture(text: str, size: tuple[int, int] = (120, 80)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((10, 10), text, "black")
    return image


def blank(size: tuple[int, int] = (120, 80)) -> Image.Image:
    return Image.new("RGB", size, "white")


def save_pdf(path: Path, pages: Sequence[Image.Image]) -> Path:
    pages[0].save(path, save_all=True, append_images=pages[1:], resolution=72)
    return path


def fingerprint(image: Image.Image | PageError | None) -> str:
    assert isinstance(image, Image.Image)
    return hashlib.sha256(image.tobytes()).hexdigest()


def with_images(cells: Sequence[Any], kind: Any = None, column: str = "images") -> Collection:
    ids = [f"d{number}" for number in range(len(cells))]
    table = {"id": ids, "text": ["text"] * len(ids), column: pa.array(cells, kind)}
    return Collection("pages", pa.table(table))


def collection_pages(cells: Sequence[Any], **chosen: Any) -> list[Page]:
    source = page_source(with_images(cells), PageSettings(**chosen))
    return [page for document in source.documents() for page in document]
