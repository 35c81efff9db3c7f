"""BM25: the two engines are one ranking, with the scores of its formulas."""

import random
import time
from importlib import import_module
from math import log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.bm25 import ENGINES, RankBm25
from tests.lexical_engines import VARIANTS, build, zipf_texts


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(4))
def test_same_ranking_and_scores_on_random_corpora(variant: str, seed: int) -> None:
    rng = random.Random(seed)
    texts = zipf_texts(rng, size=300, words=40)
    queries = [" ".join(rng.choices([f"w{n}" for n in range(45)], k=6)) for _ in range(60)]
    chosen: dict[str, Any] = {
        "variant": variant,
        "k1": rng.uniform(0.5, 2),
        "b": rng.choice([0.0, 0.4, 1.0]),
    }
    one, other = (
        build(texts, engine=name, **chosen).search(queries, 300) for name in ("rank-bm25", "bm25s")
    )
    assert one == other, "ids, order and scores, to the last bit"
    assert any(hits for hits in one)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcde"), max_size=6).map(" ".join), min_size=1, max_size=9),
    st.lists(st.sampled_from("abcdef"), max_size=6).map(" ".join),
    st.sampled_from(VARIANTS),
    st.integers(1, 10),
)
def test_same_ranking_on_small_corpora(texts: list[str], query: str, variant: str, k: int) -> None:
    if not any(texts):
        return
    one, other = (
        build(texts, engine=name, variant=variant).search([query], k)[0]
        for name in ("rank-bm25", "bm25s")
    )
    assert one == other
    wanted = set(query.split())
    matching = [f"d{n}" for n, text in enumerate(texts) if wanted & set(text.split())]
    assert {hit.id for hit in one} <= set(matching)
    assert len(one) == min(k, len(matching))
    assert [-hit.score for hit in one] == sorted(-hit.score for hit in one)


REFERENCES = {
    "okapi": lambda corpus: import_module("rank_bm25").BM25Okapi(corpus, k1=1.5, b=0.75, epsilon=0),
    "bm25+": lambda corpus: import_module("rank_bm25").BM25Plus(corpus, k1=1.5, b=0.75, delta=1),
}


@pytest.mark.parametrize("variant", REFERENCES)
def test_scores_are_those_of_rank_bm25(engine: str, variant: str) -> None:
    rng = random.Random(7)
    texts = zipf_texts(rng, size=200, words=30)
    query = ["w3", "w1", "w29", "w3", "w0", "stranger"]
    scores = REFERENCES[variant]([text.split() for text in texts]).get_scores(query)
    hits = build(texts, engine=engine, variant=variant).search([" ".join(query)], 200)[0]
    assert len(hits) > 100
    for hit in hits:
        assert hit.score == pytest.approx(scores[int(hit.id[1:])], abs=1e-9)


@pytest.mark.parametrize("terms", [0, 1, 1000])
def test_kept_scores_change_nothing(monkeypatch: pytest.MonkeyPatch, terms: int) -> None:
    texts = zipf_texts(random.Random(3), size=80, words=20)
    monkeypatch.setattr(RankBm25, "KEPT_BYTES", terms * 8 * len(texts))
    retriever = build(texts, engine="rank-bm25")
    other = build(texts, engine="bm25s")
    for queries in (["w3 w1 w3", "w1 w2"], ["w2 w9 w1 w3"], ["w3 w1 w3 w3"]):
        assert retriever.search(queries, 80) == other.search(queries, 80)


def test_lucene_score_by_hand(engine: str) -> None:
    # N = 4, df("tax") = 1: idf = ln(1 + 3.5 / 1.5). Lengths 3, 1, 1, 1: mean 1.5.
    # tf 2: 2 * 2.5 / (2 + 1.5 * (.25 + .75 * 3 / 1.5))
    hits = build(["tax tax office", "sea", "sky", "sun"], engine=engine).search(["tax"], 4)[0]
    expected = log(1 + 3.5 / 1.5) * 5.0 / (2 + 1.5 * (0.25 + 0.75 * 2))
    assert [hit.id for hit in hits] == ["d0"]
    assert hits[0].score == pytest.approx(expected, abs=1e-12)


def test_a_word_given_twice_counts_twice(engine: str) -> None:
    retriever = build(["tax", "sea", "sky"], engine=engine)
    once, twice = (hits[0].score for hits in retriever.search(["tax", "tax tax"], 1))
    assert twice == pytest.approx(2 * once, abs=1e-12)


def test_bm25l_by_hand() -> None:
    # c = tf / (1 - b + b length / mean) = 1 (all lengths equal); idf = ln(5 / 1.5);
    # tf part: 2.5 * 1.5 / (1.5 + 1.5)
    retriever = build(["tax", "sea", "sky", "sun"], engine="bm25s", variant="bm25l")
    hits = retriever.search(["tax"], 4)[0]
    assert [hit.id for hit in hits] == ["d0"]
    assert hits[0].score == pytest.approx(log(5 / 1.5) * 2.5 * 1.5 / 3.0, abs=1e-12)


def test_the_fast_engine_is_fast() -> None:
    rng = random.Random(0)
    texts = zipf_texts(rng, size=5_000, words=3_000)
    queries = [f"w{n} w{n * 7} w{n * 11}" for n in range(1, 11)]
    seconds = {}
    for name in ENGINES:
        retriever = build(texts, engine=name)
        started = time.perf_counter()
        retriever.search(queries, 10)
        seconds[name] = time.perf_counter() - started
    assert seconds["bm25s"] * 5 < seconds["rank-bm25"]
