"""BM25: only matching documents are found, titles and blanks included, and what they cover."""

import random
import unicodedata
from math import log

import numpy as np
import pytest

from retrievers.base import Hit
from retrievers.lexical import LexicalRetriever, LexicalSettings
from retrievers.terms import EmptyCorpusError
from tests.lexical_engines import KOREAN, build, found, zipf_texts
from tests.tiny_corpus import Corpus

# -- what is found --------------------------------------------------------------------------------


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


# -- titles, blanks, nothing at all ---------------------------------------------------------------


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


# -- coverage -------------------------------------------------------------------------------------


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
