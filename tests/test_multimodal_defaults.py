"""Without any settings: the page reader that comes with the package finds pages by their words."""

from pathlib import Path

import pyarrow as pa
import pytest

from retrievers.base import Hit
from retrievers.collection import Collection, Document
from retrievers.multimodal import MultimodalRetriever
from retrievers.pages import PageStyle, render_pages

TEXTS = {"weather": "WEATHER", "budget": "BUDGET 2024"}


def written() -> Collection:
    return Collection.from_documents(
        "t", [Document(name, "", text) for name, text in TEXTS.items()]
    )


def pictures(folder: Path) -> Collection:
    """The same as image files; the texts are empty."""
    paths = [folder / f"{name}.png" for name in TEXTS]
    for path, text in zip(paths, TEXTS.values(), strict=True):
        render_pages("", text, PageStyle())[0].save(path)
    image = [str(path) for path in paths]
    return Collection("t", pa.table({"id": list(TEXTS), "text": [""] * 2, "image": image}))


@pytest.mark.parametrize("images", [False, True])
def test_the_page_with_the_word_comes_first(images: bool, tmp_path: Path) -> None:
    retriever = MultimodalRetriever(pictures(tmp_path) if images else written())
    assert retriever.settings.model == "bundled:page-reader"
    budget, weather = retriever.search(["budget", "weather"], 2)
    assert names(budget) == ["budget", "weather"]
    assert names(weather) == ["weather", "budget"]


def names(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]
