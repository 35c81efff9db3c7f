"""BM25: the two engines are one ranking, and only matching documents are found."""

import hashlib
import random
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import Hit
from retrievers.bm25 import ENGINES, RankBm25
from retrievers.index import IndexDamaged, IndexMismatch
from retrievers.lexical import LexicalRetriever, LexicalSettings
from retrievers.terms import EmptyCorpusError

VARIANTS = ["lucene", "okapi", "bm25+"]
KOREAN = ["서울시 예산 공고", "부산시 예산 공고", "날씨 안내", "기차 시간표", "채용 공고 안내"]


@dataclass
class Corpus:
    """Documents d0, d1, ... with these texts."""

    all_texts: Sequence[str]
    titles: Sequence[str] = ()

    @property
    def ids(self) -> list[str]:
        return [f"d{n}" for n in range(len(self.all_texts))]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(list(self.texts())).encode()).hexdigest()

    def texts(self) -> Iterator[tuple[str, str]]:
        titles = self.titles or [""] * len(self.all_texts)
        yield from zip(titles, self.all_texts, strict=True)


def build(texts: Sequence[str], index_dir: Path | None = None, **chosen: Any) -> LexicalRetriever:
    return LexicalRetriever(Corpus(texts), LexicalSettings.model_validate(chosen), index_dir)


def found(retriever: LexicalRetriever, query: str, k: int = 10) -> list[str]:
    return [hit.id for hit in retriever.search([query], k)[0]]


@pytest.fixture(params=["rank-bm25", "bm25s"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---- what is found


def test_korean_particles(engine: str) -> None:
    texts = ["세금 신고 기한은 오월이다", "바다는 푸르다", "강 옆 은행"]
    assert found(build(texts, engine=engine), "세금을 신고하는 기한")[0] == "d0"


def test_bigrams_find_what_whitespace_does_not(engine: str) -> None:
    # "예산을" holds 예산 (d0, d1), "서울시의" holds 서울 and 울시 (d0); the others hold nothing.
    assert found(build(KOREAN, engine=engine), "서울시의 예산을") == ["d0", "d1"]
    words = build(KOREAN, engine=engine, analysis={"cjk": "words"})
    assert found(words, "서울시의 예산을") == []


def test_one_letter_words_and_signs_are_found(engine: str) -> None:
    retriever = build(["강 옆 은행", "C++", "C#", "3.5%", "1,200원", "A-1"], engine=engine)
    queries = ["옆", "c++", "c#", "3.5", "1,200", "a-1"]
    assert [found(retriever, query) for query in queries] == [[f"d{n}"] for n in range(6)]


def test_nfd_document_by_nfc_query_and_full_width(engine: str) -> None:
    retriever = build([unicodedata.normalize("NFD", "서울 예산"), "ＢＵＤＧＥＴ"], engine=engine)
    assert found(retriever, "예산") == ["d0"]
    assert found(retriever, unicodedata.normalize("NFD", "예산")) == ["d0"]
    assert found(retriever, "budget") == ["d1"]


def test_case(engine: str) -> None:
    retriever = build(["the tax office", "TAX", "no"], engine=engine)
    first, second = retriever.search(["TAX", "tax"], 3)
    assert first == second
    assert [hit.id for hit in first] == ["d1", "d0"]


@pytest.mark.parametrize("query", ["unknown words", "", "  ", "!?", "\u200b"])
def test_nothing_known_means_no_hits(engine: str, query: str) -> None:
    assert build(["one", "two", "gold"], engine=engine).search([query], 3) == [[]]


def test_unknown_words_are_ignored(engine: str) -> None:
    retriever = build(["one", "two"], engine=engine)
    known, mixed = retriever.search(["two", "two strangers"], 3)
    assert known == mixed != []


def test_k_above_the_corpus_size(engine: str) -> None:
    retriever = build(["tax a", "tax b"], engine=engine)
    assert found(retriever, "tax", 10) == ["d0", "d1"]
    with pytest.raises(ValueError, match="k is 0"):
        retriever.search(["tax"], 0)


@pytest.mark.parametrize("texts", [["tax a", "b"], ["tax a", "tax b"], ["tax a", "tax b", "c"]])
def test_a_term_in_half_or_all_of_the_documents(engine: str, texts: list[str]) -> None:
    hits = build(texts, engine=engine).search(["tax"], 5)[0]
    assert [hit.id for hit in hits] == [f"d{n}" for n, text in enumerate(texts) if "tax" in text]
    assert all(hit.score > 0 for hit in hits)


def test_a_match_of_score_zero_is_a_hit(engine: str) -> None:
    retriever = build(["tax a", "tax b", "c"], engine=engine, variant="okapi")
    assert retriever.search(["tax"], 5) == [[Hit("d0", 0.0), Hit("d1", 0.0)]]


def test_bm25_plus_gives_documents_without_the_term_nothing(engine: str) -> None:
    retriever = build(["tax a", "b", "c"], engine=engine, variant="bm25+")
    assert found(retriever, "tax") == ["d0"]


def test_ties_are_in_corpus_order(engine: str) -> None:
    retriever = build(["tax", "office", "tax"] * 200, engine=engine)
    expected = [f"d{n}" for n in range(600) if n % 3 != 1]
    assert found(retriever, "tax", 5) == expected[:5]
    assert found(retriever, "tax", 600) == expected


def test_order_of_a_query_s_words_changes_no_tie(engine: str) -> None:
    retriever = build(["a b", "b a", "a b"], engine=engine)
    assert found(retriever, "a b") == found(retriever, "b a") == ["d0", "d1", "d2"]


def test_eight_equal_queries_get_eight_results(engine: str) -> None:
    results = build(["tax", "b"], engine=engine).search(["tax"] * 8, 3)
    assert len(results) == 8
    assert all(hits == results[0] and len(hits) == 1 for hits in results)


# ---- titles, blanks, nothing at all


def test_title_weight(engine: str) -> None:
    corpus = Corpus(["sea", "tax sea"], titles=["tax", ""])

    def order(weight: int) -> list[str]:
        chosen = LexicalSettings.model_validate({"engine": engine, "title_weight": weight})
        return found(LexicalRetriever(corpus, chosen), "tax")

    assert order(0) == ["d1"]
    assert order(1) == ["d0", "d1"]  # both are "tax sea": a tie
    assert order(3) == ["d0", "d1"]
    scores = []
    for weight in (1, 3):
        chosen = LexicalSettings.model_validate(
            {"engine": engine, "title_weight": weight, "b": 0.0}
        )
        scores.append(LexicalRetriever(corpus, chosen).search(["tax"], 1)[0][0].score)
    # idf ln(1 + .5 / 2.5), tf 1 and then 3, k1 1.5, length ignored
    idf = log(1.2)
    assert scores == pytest.approx([idf * 2.5 / 2.5, idf * 3 * 2.5 / 4.5], abs=1e-12)


@pytest.mark.parametrize("b", [0.75, 1.0])
def test_blank_documents_are_counted_and_never_found(engine: str, b: float) -> None:
    retriever = build(["tax office", "  ", "sea tax"], engine=engine, b=b)
    assert retriever.blank == 1
    assert found(retriever, "tax office") == ["d0", "d2"]
    assert all(np.isfinite(hit.score) for hit in retriever.search(["tax"], 3)[0])


@pytest.mark.parametrize("texts", [[], [""], ["", "  ", "\n"], ["!", "?"]])
def test_nothing_to_find(engine: str, texts: list[str]) -> None:
    with pytest.raises(EmptyCorpusError, match="no document to find"):
        build(texts, engine=engine)


def test_only_titles_but_titles_are_left_out(engine: str) -> None:
    chosen = LexicalSettings.model_validate({"engine": engine, "title_weight": 0})
    with pytest.raises(EmptyCorpusError, match="title_weight is 0"):
        LexicalRetriever(Corpus([""], titles=["tax"]), chosen)


# ---- the engines agree


def zipf_texts(rng: random.Random, size: int, words: int) -> list[str]:
    vocabulary = [f"w{n}" for n in range(words)]
    weights = [1 / (n + 1) for n in range(words)]
    return [" ".join(rng.choices(vocabulary, weights, k=rng.randrange(1, 15))) for _ in range(size)]


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


# ---- settings


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"variant": "bm25l"}, 'needs engine "bm25s"'),
        ({"delta": 0.5}, "has none"),
        ({"engine": "lucene"}, "rank-bm25"),
        ({"k1": 0}, "greater than 0"),
        ({"b": 1.5}, "less than or equal to 1"),
        ({"title_weight": -1}, "greater than or equal to 0"),
        ({"k2": 1}, "Extra inputs"),
        ({"analysis": {"stemmer_": "english"}}, "Extra inputs"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        LexicalSettings.model_validate(wrong)


def test_delta_s_default_depends_on_the_variant() -> None:
    plus = LexicalSettings(variant="bm25+")
    assert plus.formula().delta == 1.0
    assert LexicalSettings(variant="bm25l", engine="bm25s").formula().delta == 0.5
    assert LexicalSettings().formula().delta == 0.0
    assert plus.parts() == LexicalSettings(variant="bm25+", delta=1.0).parts()


# ---- the index directory


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stored_index_gives_the_same_hits(tmp_path: Path, engine: str, variant: str) -> None:
    chosen: dict[str, Any] = {"engine": engine, "variant": variant}
    query = ["서울시의 예산을 공고"]
    fresh = build([*KOREAN, ""], **chosen)
    expected = fresh.search(query, 5)
    for _ in ("built", "opened"):
        stored = build([*KOREAN, ""], tmp_path / "index", **chosen)
        assert stored.search(query, 5) == expected != [[]]
        assert stored.fingerprint == fresh.fingerprint
        assert stored.blank == 1


def test_a_stored_bm25l_index(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"engine": "bm25s", "variant": "bm25l"}
    for _ in ("built", "opened"):
        stored = build(KOREAN, tmp_path / "index", **chosen)
        assert stored.search(["예산"], 5) == build(KOREAN, **chosen).search(["예산"], 5)


def test_opening_reads_no_document(tmp_path: Path, engine: str) -> None:
    class Sealed(Corpus):
        @property
        def fingerprint(self) -> str:
            return "sealed"

    class Unreadable(Sealed):
        def texts(self) -> Iterator[tuple[str, str]]:
            raise AssertionError("read again")

    chosen = LexicalSettings.model_validate({"engine": engine})
    LexicalRetriever(Sealed(KOREAN), chosen, tmp_path / "index")
    opened = LexicalRetriever(Unreadable(KOREAN), chosen, tmp_path / "index")
    assert found(opened, "날씨") == ["d2"]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"analysis": {"cjk": "words"}}, "analysis.cjk"),
        ({"analysis": {"stop_words": "english"}}, "analysis.stop_words"),
        ({"k1": 1.2}, "k1"),
        ({"b": 0.5}, "b"),
        ({"variant": "okapi"}, "variant"),
        ({"title_weight": 2}, "title_weight"),
    ],
)
def test_other_settings_are_refused_by_name(
    tmp_path: Path, engine: str, other: dict[str, Any], named: str
) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    with pytest.raises(IndexMismatch, match=rf"(?m)^  {named}: there"):
        build(KOREAN, tmp_path / "index", engine=engine, **other)


def test_the_other_engine_is_refused(tmp_path: Path) -> None:
    build(KOREAN, tmp_path / "index", engine="rank-bm25")
    with pytest.raises(IndexMismatch, match="engine: there 'rank-bm25', asked for 'bm25s'"):
        build(KOREAN, tmp_path / "index", engine="bm25s")


def test_another_version_of_the_library_is_refused(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    monkeypatch.setattr("retrievers.lexical.extra_version", lambda package, extra: "0.0.0")
    with pytest.raises(IndexMismatch, match=rf"versions\.{engine}: .*'0\.0\.0'"):
        build(KOREAN, tmp_path / "index", engine=engine)


def test_swapped_documents_are_refused(tmp_path: Path, engine: str) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    swapped = [KOREAN[1], KOREAN[0], *KOREAN[2:]]
    with pytest.raises(IndexMismatch, match="documents: there"):
        build(swapped, tmp_path / "index", engine=engine)
    assert found(build(swapped, engine=engine), "서울시 예산") == ["d1", "d0"]


def test_a_cut_file_is_refused(tmp_path: Path, engine: str) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    largest = max((tmp_path / "index").glob("*.npy"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-8])
    with pytest.raises(IndexDamaged, match=largest.name):
        build(KOREAN, tmp_path / "index", engine=engine)


def test_fingerprints_differ_with_whatever_changes_the_hits() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"engine": "bm25s"},
        {"variant": "okapi"},
        {"k1": 1.0},
        {"b": 0.1},
        {"title_weight": 3},
        {"analysis": {"cjk": "words"}},
    ]
    prints = {build(KOREAN, **change).fingerprint for change in changes}
    assert len(prints | {build(KOREAN[::-1]).fingerprint}) == len(changes) + 1


# ---- coverage


def test_coverage(engine: str) -> None:
    retriever = build(["tax office", "tax", "sea"], engine=engine)
    hits = [[Hit("d0", 2.0), Hit("d1", 1.0), Hit("d2", 0.0)], [Hit("d1", 1.0)], [], [Hit("d2", 1)]]
    queries = ["tax office tax stranger sky", "TAX", "tax", ""]
    # 4 distinct terms: d0 holds tax and office, d1 holds tax
    assert retriever.coverage(queries, hits) == [[0.5, 0.25, 0.0], [1.0], [], [0.0]]


def test_coverage_needs_hits_of_its_own_documents(engine: str) -> None:
    retriever = build(["tax", "sea"], engine=engine)
    with pytest.raises(ValueError, match="'ghost'"):
        retriever.coverage(["tax"], [[Hit("ghost", 1.0)]])
    with pytest.raises(ValueError, match="2 queries, but 1 lists"):
        retriever.coverage(["tax", "sea"], [[]])


def test_coverage_equals_counting(engine: str) -> None:
    rng = random.Random(3)
    texts = zipf_texts(rng, size=80, words=20)
    retriever = build(texts, engine=engine)
    queries = [" ".join(rng.choices([f"w{n}" for n in range(24)], k=5)) for _ in range(20)]
    everything = [Hit(f"d{n}", 0.0) for n in rng.sample(range(80), 80)]
    for query, shares in zip(queries, retriever.coverage(queries, [everything] * 20), strict=True):
        wanted = set(query.split())
        counted = [
            len(wanted & set(texts[int(hit.id[1:])].split())) / len(wanted) for hit in everything
        ]
        assert shares == pytest.approx(counted)


# ---- size


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
