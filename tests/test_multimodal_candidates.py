"""Late interaction with some of the pages: which they are does not depend on how many are asked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from retrievers.base import Hit
from retrievers.collection import Collection, Document
from retrievers.multimodal import MultimodalRetriever, MultimodalSettings
from retrievers.multimodal.pooled import candidates
from tests.tiny_pages import save_page_model

TEXTS = [f"{number} {word}" for number in range(60) for word in ("budget", "weather of today")]
QUERIES = ["what is the budget", "weather", "37 budget", "the mountains of today"]
STAGES = pytest.mark.parametrize("first_stage", ["centroids", "pooled"])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_page_model(tmp_path_factory.mktemp("models") / "ColQwen2", "ColQwen2")


@pytest.fixture(scope="module")
def index(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vectors of `TEXTS`, which all settings here share."""
    folder = tmp_path_factory.mktemp("indexes") / "multimodal"
    build(model, folder)
    return folder


def build(model: Path, index: Path, **chosen: Any) -> MultimodalRetriever:
    documents = [Document(f"d{number}", "", text) for number, text in enumerate(TEXTS)]
    given = {"model": str(model), "device": "cpu", "dtype": "float32", **chosen}
    settings = MultimodalSettings.model_validate(given)
    return MultimodalRetriever(Collection.from_documents("t", documents), settings, index)


def scores(hits: list[Hit]) -> dict[str, float]:
    return {hit.id: hit.score for hit in hits}


@STAGES
def test_the_first_hits_do_not_depend_on_how_many_are_asked_for(
    first_stage: str, model: Path, index: Path
) -> None:
    # 2% of 120 pages are 3; a search for 100 must not look at others than a search for 3.
    retriever = build(model, index, candidates=0.02, first_stage=first_stage)
    for few, many in zip(retriever.search(QUERIES, 3), retriever.search(QUERIES, 100), strict=True):
        assert len(few) == 3
        assert few == many[:3]
        assert len(many) == 100


@STAGES
def test_no_more_hits_than_the_candidates_hold(first_stage: str, model: Path, index: Path) -> None:
    exact = build(model, index).search(QUERIES, 120)
    # A page a document: 5 documents are 5 pages, more than the share of 3.
    chosen = {"candidates": 0.02, "min_candidates": 5, "first_stage": first_stage}
    retriever = build(model, index, **chosen)
    found = retriever.search(QUERIES, 50)
    assert [len(hits) for hits in found] == [5] * len(QUERIES)
    assert [hits[:3] for hits in found] == retriever.search(QUERIES, 3)
    for hits, all_of_them in zip(found, exact, strict=True):
        expected = {name: scores(all_of_them)[name] for name in scores(hits)}
        assert scores(hits) == pytest.approx(expected, abs=1e-5)
    # A tenth of 120 pages is more than 5.
    tenth = build(model, index, **chosen | {"candidates": 0.1})
    assert [len(hits) for hits in tenth.search(QUERIES, 50)] == [12] * len(QUERIES)


def test_as_many_candidates_as_documents_are_all(model: Path, index: Path) -> None:
    all_of_them = build(model, index, candidates=0.02, min_candidates=500)
    for hits, expected in zip(
        all_of_them.search(QUERIES, 120), build(model, index).search(QUERIES, 120), strict=True
    ):
        assert scores(hits) == pytest.approx(scores(expected), abs=1e-5)


def test_the_fingerprint_knows_how_many_there_are(model: Path, index: Path) -> None:
    made = [
        build(model, index, **chosen).fingerprint
        for chosen in ({}, {"candidates": 0.1}, {"candidates": 0.1, "min_candidates": 7})
    ]
    assert len(set(made)) == 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"min_candidates": 7}, "min_candidates has an effect with candidates only"),
        ({"min_candidates": 7, "scoring": "pooled"}, "min_candidates has an effect with"),
        ({"min_candidates": 0, "candidates": 0.1}, "greater than or equal to 1"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        MultimodalSettings.model_validate(given)


def test_a_written_configuration_is_read_again() -> None:
    settings = MultimodalSettings()
    assert settings.min_candidates == 100
    assert MultimodalSettings.model_validate(settings.model_dump(mode="json")) == settings


def test_no_page_more_than_it_takes() -> None:
    scores_ = np.array([[0.9, 0.8, 0.7, 0.6, 0.5]], dtype=np.float32)
    owners = np.array([0, 0, 1, 2, 3], dtype=np.int32)
    # The best two pages are of one document, the best three of two.
    assert candidates(scores_, 0.01, 2, owners).tolist() == [[True, True, True, False, False]]
    # Four fifths of the pages hold three documents, which is enough.
    assert candidates(scores_, 0.8, 2, owners).tolist() == [[True, True, True, True, False]]
