"""Search of page images: which documents and pages are found, and how they are scored."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from retrievers.base import PermanentSearchError
from retrievers.index import IndexMismatch
from retrievers.multimodal.encoder import PageEncoder
from retrievers.semantic.vectors import VectorError
from retrievers.terms import EmptyCorpusError
from tests import page_engines
from tests.page_engines import TEXTS, build, ids, page, paged

models, model = page_engines.models, page_engines.model  # fixtures


# Documents and pages


def test_a_document_is_found_by_its_best_page(model: str, tmp_path: Path) -> None:
    pages = [page(f"page {number} about {number * 37}") for number in range(5)]
    documents = paged([pages[:2], pages[2:3], pages[3:]], tmp_path)
    by_document = build(documents, model)
    assert (by_document.size, by_document.pages) == (3, 5)
    # A collection whose documents are pages has the pages found.
    (tmp_path / "alone").mkdir()
    alone = build(paged([[image] for image in pages], tmp_path / "alone"), model)
    best: dict[str, float] = {}
    for hit in alone.search(["page about"], 9)[0]:
        owner = {"d0": "d0", "d1": "d0", "d2": "d1", "d3": "d2", "d4": "d2"}[hit.id]
        best.setdefault(owner, hit.score)
    (found,) = by_document.search(["page about"], 9)
    assert ids(found) == list(best)
    assert [hit.score for hit in found] == pytest.approx(list(best.values()), abs=1e-5)
    assert ids(by_document.search(["page about"], 1)[0]) == ids(found)[:1]


def test_blank_pages_are_never_found(model: str, tmp_path: Path) -> None:
    white = Image.new("RGB", (160, 64), "white")
    documents = paged([[page("one"), white, page("three")], [white], []], tmp_path)
    retriever = build(documents, model)
    assert retriever.pages == 2
    assert (retriever.blank_pages, retriever.failed_pages, retriever.blank) == (2, 0, 2)
    assert ids(retriever.search(["one"], 9)[0]) == ["d0"]


def test_a_failed_page_is_skipped_only_when_asked(
    model: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    documents = paged([[page("one"), page("two")], [page("three")]], tmp_path)
    (tmp_path / "0-0.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"0-0\.png: no readable image"):
        build(documents, model)
    retriever = build(documents, model, pages={"failed": "skip"})
    assert sorted(ids(retriever.search(["one"], 9)[0])) == ["d0", "d1"]
    assert (retriever.pages, retriever.failed_pages, retriever.blank_pages) == (2, 1, 0)
    assert "1 of 3 pages failed" in caplog.text


def test_equal_pages_are_in_corpus_order(model: str) -> None:
    texts = ["other words", "the same page", "more of others", "the same page", "the same page"]
    two_stages = {"candidates": 0.9}
    for chosen in ({}, {"scoring": "pooled"}, two_stages, two_stages | {"first_stage": "pooled"}):
        (hits,) = build(texts, model, batch_size=2, **chosen).search(["page"], 5)
        same = [hit for hit in hits if hit.id in ("d1", "d3", "d4")]
        assert ids(same) == ["d1", "d3", "d4"]
        assert len({hit.score for hit in same}) == 1


@pytest.mark.parametrize("texts", [["", " "], ["\n"]])
def test_nothing_to_find(texts: list[str], model: str) -> None:
    with pytest.raises(
        EmptyCorpusError, match=f"all {len(texts)} have no page, or blank ones only"
    ):
        build(texts, model)


def test_blank_queries_and_large_k(model: str) -> None:
    retriever = build(TEXTS, model)
    empty, spaces, found = retriever.search(["", "  ", "budget"], 99)
    assert (empty, spaces) == ([], [])
    assert len(found) == 4


def test_characters_that_the_font_lacks_are_told(
    model: str, caplog: pytest.LogCaptureFixture
) -> None:
    build(["예산 공고", "budget"], model)
    assert "lacks 4 characters of the texts" in caplog.text
    caplog.clear()
    build(["budget"], model)
    assert "lacks" not in caplog.text


def test_nan_names_the_page_and_the_query(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = PageEncoder.pages

    def poisoned(self: PageEncoder, images: Sequence[Image.Image]) -> list[NDArray[np.float32]]:
        found = encoded(self, images)
        found[-1][0, 0] = np.nan
        return found

    with monkeypatch.context() as patch:
        patch.setattr(PageEncoder, "pages", poisoned)
        with pytest.raises(VectorError, match="page 1 of document 'd1' holds NaN"):
            build(["one", "two"], model, batch_size=2)
    nothing = np.full((2, 128), np.nan, dtype=np.float32)
    monkeypatch.setattr(PageEncoder, "queries", lambda self, texts: [nothing for _ in texts])
    retriever = build(TEXTS, model)
    with pytest.raises(PermanentSearchError, match="the query 'budget' holds NaN"):
        retriever.search(["budget"], 1)


# Scoring


def test_candidates_are_scored_as_all_pages_are(model: str) -> None:
    texts = [f"{number} {word}" for number in range(20) for word in ("budget", "weather of today")]
    exact = build(texts, model)
    chosen = {"candidates": 0.2, "min_candidates": 1, "first_stage": "pooled"}
    two_stages = build(texts, model, **chosen)
    pooled = build(texts, model, scoring="pooled")
    query = "what is the budget"
    scores = {hit.id: hit.score for hit in exact.search([query], 40)[0]}
    (found,) = two_stages.search([query], 5)
    # A fifth of 40 pages: the 8 that come first by their mean vectors, in the order of MaxSim.
    first = ids(pooled.search([query], 8)[0])
    expected = sorted(first, key=lambda name: -scores[name])[:5]
    assert ids(found) == expected
    for hit in found:
        assert hit.score == pytest.approx(scores[hit.id], abs=1e-5)


def test_centroids_lead_to_the_pages_worth_scoring(model: str, tmp_path: Path) -> None:
    texts = [f"{number} {word}" for number in range(20) for word in ("budget", "weather of today")]
    query = "what is the budget"
    (exact,) = build(texts, model).search([query], 40)
    scores = {hit.id: hit.score for hit in exact}
    chosen = {"candidates": 0.3, "min_candidates": 1, "centroids": {"count": 64, "probes": 8}}
    first, again = (build(texts, model, index_dir=tmp_path / "index", **chosen) for _ in range(2))
    (found,) = first.search([query], 5)
    assert again.search([query], 5) == [found]
    for hit in found:
        assert hit.score == pytest.approx(scores[hit.id], abs=1e-5)
    assert len({*ids(found)} & {*ids(exact)[:5]}) >= 4
    assert first.fingerprint != build(texts, model, candidates=0.3).fingerprint
    with pytest.raises(IndexMismatch, match=r"centroids\.count: there 64, asked for 32") as error:
        build(texts, model, index_dir=tmp_path / "index", candidates=0.3, centroids={"count": 32})
    # It would remove the vectors of the pages too.
    assert "index/centroids" in str(error.value)
    assert "--rebuild" not in str(error.value)
    # More probes need no other groups.
    build(texts, model, index_dir=tmp_path / "index", **chosen | {"centroids": {"count": 64}})


def test_half_precision_on_the_disk(model: str) -> None:
    query = "the budget of the city"
    exact = {hit.id: hit.score for hit in build(TEXTS, model).search([query], 4)[0]}
    for dtype in ("float16", "bfloat16"):
        for hit in build(TEXTS, model, dtype=dtype).search([query], 4)[0]:
            assert hit.score == pytest.approx(exact[hit.id], abs=0.05)
