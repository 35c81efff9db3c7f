"""Search of page images with tiny models, over four texts or pages of one's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image

from retrievers.base import Hit
from retrievers.collection import Collection, Document
from retrievers.multimodal import MultimodalRetriever, MultimodalSettings
from retrievers.multimodal.encoder import PageEncoder
from retrievers.pages import PageStyle, render_pages
from tests.tiny_pages import FAMILIES, save_page_model

TEXTS = (
    "the budget of the city for the coming year",
    "snow in the mountains, and how the weather was foretold",
    "a timetable of trains " * 60,
    "rules for the public library",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of tiny models, by the names of their families."""
    folder = tmp_path_factory.mktemp("models")
    for family in FAMILIES:
        save_page_model(folder / family, family)
    return folder


@pytest.fixture
def model(models: Path) -> str:
    return str(models / "ColQwen2")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pages each call of the model was given."""
    seen: list[int] = []
    pages = PageEncoder.pages

    def record(self: PageEncoder, images: Sequence[Image.Image]) -> Any:
        seen.append(len(images))
        return pages(self, images)

    monkeypatch.setattr(PageEncoder, "pages", record)
    return seen


def collection(texts: Sequence[str]) -> Collection:
    return Collection.from_documents(
        "t", [Document(f"d{number}", "", text) for number, text in enumerate(texts)]
    )


def build(
    texts: Sequence[str] | Collection,
    model: str | Path,
    index_dir: Path | None = None,
    **chosen: Any,
) -> MultimodalRetriever:
    given = {"model": str(model), "device": "cpu", "dtype": "float32", **chosen}
    settings = MultimodalSettings.model_validate(given)
    made = texts if isinstance(texts, Collection) else collection(texts)
    return MultimodalRetriever(made, settings, index_dir, cache_size=0)


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def paged(pages: Sequence[Sequence[Image.Image]], folder: Path) -> Collection:
    """A collection with images: documents d0, d1, … of these pages."""
    cells = []
    for document, images in enumerate(pages):
        paths = [folder / f"{document}-{number}.png" for number in range(len(images))]
        for path, image in zip(paths, images, strict=True):
            image.save(path)
        cells.append([str(path) for path in paths])
    names = [f"d{number}" for number in range(len(pages))]
    table = {
        "id": names,
        "text": [""] * len(names),
        "images": pa.array(cells, pa.list_(pa.string())),
    }
    return Collection("pages", pa.table(table))


def page(text: str) -> Image.Image:
    return render_pages("", text, PageStyle(width=160))[0]
