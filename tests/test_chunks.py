"""Pieces of documents: how texts are cut, how pieces are found, how rankings of them are fused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from retrievers import build_retrievers
from retrievers.base import Hit, Retriever
from retrievers.chunks import Chunker, ChunkHit, SearchesChunks, by_document, chunk_hits, words
from retrievers.hybrid import HybridRetriever, HybridSettings
from retrievers.index_files import facts
from retrievers.lexical import LexicalRetriever, LexicalSettings
from retrievers.semantic import SemanticRetriever, SemanticSettings
from tests.tiny_corpus import Corpus
from tests.tiny_encoder import save_encoder

FRUIT = ["apple pear plum sea sand", "sky apple grass"]  # by threes: d0 has two pieces, d1 one


def lexical(texts: Sequence[str], index_dir: Path | None = None, **given: Any) -> LexicalRetriever:
    settings = LexicalSettings.model_validate({"chunk_words": 3, **given})
    return LexicalRetriever(Corpus(texts), settings, index_dir)


def pieces(hits: Sequence[ChunkHit]) -> list[tuple[str, int]]:
    return [(hit.id, hit.number) for hit in hits]


# -- cutting --------------------------------------------------------------------------------------


def test_words_overlap_and_end_with_the_text() -> None:
    text = "one two,  three four five"
    assert Chunker(words, 3, 1)(text) == ["one two,  three", "three four five"]
    assert Chunker(words, 2, 0)(text) == ["one two,", "three four", "five"]
    assert Chunker(words, 9, 0)(text) == [text]
    assert Chunker(words, 9, 0)(" ") == [" "]


def test_chinese_and_japanese_characters_are_words_and_korean_has_spaces() -> None:
    text = "東京 tower 서울시"
    assert [text[start:end] for start, end in words(text)] == ["東", "京", "tower", "서울시"]


def test_pieces_to_documents() -> None:
    documents, scores = by_document(np.array([0, 0, 2, 3, 3]), np.array([1.0, 3.0, 2.0, 5.0, 4.0]))
    assert documents.tolist() == [0, 2, 3]
    assert scores.tolist() == [3, 2, 5]
    assert len(by_document(np.empty(0, np.int32), np.empty(0))[0]) == 0


def test_rows_to_pieces() -> None:
    owners = np.array([0, 0, 2, 2, 2])  # document 1 has none
    hits = chunk_hits(["a", "b", "c"], owners, np.array([4, 1]), np.array([0.5, 0.25]))
    assert hits == [ChunkHit("c", 2, 0.5), ChunkHit("a", 1, 0.25)]


# -- lexical --------------------------------------------------------------------------------------


def test_lexical_finds_pieces_and_documents_by_their_best_one(engine: str) -> None:
    made = lexical(FRUIT, engine=engine)
    assert isinstance(made, SearchesChunks)
    assert [pieces(hits) for hits in made.search_chunks(["sand", "grass", "no"], 9)] == [
        [("d0", 1)],
        [("d1", 0)],
        [],
    ]
    (found,) = made.search_chunks(["apple sea sand"], 9)
    assert pieces(found) == [("d0", 1), ("d0", 0), ("d1", 0)]
    (hits,) = made.search(["apple sea sand"], 9)
    assert hits == [Hit("d0", found[0].score), Hit("d1", found[2].score)]  # the best, not the sum


def test_a_piece_ranks_as_a_document_with_its_words_would(engine: str) -> None:
    cut = ["apple pear plum", "sea sand", "sky apple grass"]
    whole = LexicalRetriever(Corpus(cut), LexicalSettings(engine=engine))  # type: ignore[arg-type]
    (hits,) = whole.search(["apple sand"], 9)
    (found,) = lexical(FRUIT, engine=engine).search_chunks(["apple sand"], 9)
    assert [hit.score for hit in found] == [hit.score for hit in hits]


def test_a_title_is_the_beginning_of_the_first_piece() -> None:
    corpus = Corpus(["b c d", ""], titles=["a", ""])
    made = LexicalRetriever(corpus, LexicalSettings(chunk_words=2))
    assert pieces(made.search_chunks(["a b"], 9)[0]) == [("d0", 0)]
    assert made.blank == 1
    with pytest.raises(ValidationError, match="with chunk_words the title is part of"):
        LexicalSettings(chunk_words=2, title_weight=2)


def test_pieces_are_in_the_index(tmp_path: Path, engine: str) -> None:
    queries = ["apple sea sand", "grass"]
    made = [lexical(FRUIT, tmp_path / "index", engine=engine) for _ in range(2)]
    memory = lexical(FRUIT, engine=engine)
    for one in made:
        assert one.search_chunks(queries, 9) == memory.search_chunks(queries, 9)
        assert one.search(queries, 9) == memory.search(queries, 9)
    assert facts(tmp_path / "index").counts == {"blank": 0, "chunks": 3}


def test_whole_documents_are_their_only_piece() -> None:
    made = LexicalRetriever(Corpus(FRUIT))
    assert made.chunks is None
    assert pieces(made.search_chunks(["sand"], 9)[0]) == [("d0", 0)]


def test_coverage_of_pieces_and_of_their_documents() -> None:
    made = lexical(FRUIT)
    hits = [[Hit("d0", 1.0), ChunkHit("d0", 0, 1.0), ChunkHit("d0", 1, 1.0), Hit("d1", 1.0)]]
    # of apple, sand and unheard: d0 holds two, its pieces one each, d1 one
    assert made.coverage(["apple sand unheard"], hits) == [[2 / 3, 1 / 3, 1 / 3, 1 / 3]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"chunk_words": None, "chunk_overlap": 1}, "chunk_overlap needs chunk_words"),
        ({"chunk_words": 3, "chunk_overlap": 3}, "cannot share all"),
        ({"chunk_words": 0}, "greater than or equal to 1"),
    ],
)
def test_lexical_settings_that_do_not_fit(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        LexicalSettings.model_validate(given)


# -- semantic -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_encoder(tmp_path_factory.mktemp("models") / "plain"))


def semantic(model: str, texts: Sequence[str], **given: Any) -> SemanticRetriever:
    settings = SemanticSettings.model_validate({"model": model, "device": "cpu", **given})
    return SemanticRetriever(Corpus(texts), settings)


def test_semantic_finds_pieces(model: str) -> None:
    texts = ["w1 w2 w3 w4 w5 w6", "", "w7 w8 w9"]
    made = semantic(model, texts, chunk_words=3, chunk_depth=1)
    assert isinstance(made, SearchesChunks)
    found = made.search_chunks(["w4 w5 w6", "w7 w8 w9"], 9)
    assert [pieces(hits)[0] for hits in found] == [("d0", 1), ("d2", 0)]
    assert all(len(hits) == 3 for hits in found)  # whatever chunk_depth is
    best = made.search(["w4 w5 w6"], 9)[0]
    assert best == [Hit("d0", found[0][0].score)]


def test_pieces_are_the_same_if_they_are_cut_alike(model: str) -> None:
    texts = ["w1 w2 w3 w4", "w5"]
    same = lexical(texts, chunk_overlap=1).chunks
    assert semantic(model, texts, chunk_words=3, chunk_overlap=1).chunks == same
    others = [
        semantic(model, texts).chunks,
        semantic(model, texts, chunk_words=3).chunks,
        semantic(model, texts, chunk_tokens=3, chunk_overlap=1).chunks,
        semantic(model, [*texts, "w6"], chunk_words=3, chunk_overlap=1).chunks,
    ]
    assert same not in others
    with pytest.raises(ValidationError, match="chunk_tokens or chunk_words, not both"):
        SemanticSettings(chunk_words=3, chunk_tokens=3)


# -- fusion ---------------------------------------------------------------------------------------


class Cut(Retriever):
    """Finds these pieces, and the documents in the order of their first ones."""

    def __init__(self, backend: str, found: Sequence[tuple[str, int]], chunks: str | None) -> None:
        super().__init__()
        self.backend = self.fingerprint = backend
        self.chunks = chunks
        self.found = [ChunkHit(identity, number, 1.0) for identity, number in found]

    def search_chunks(self, queries: Sequence[str], k: int) -> list[list[ChunkHit]]:
        return [self.found[:k] for _ in queries]

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        ids = dict.fromkeys(hit.id for hit in self.found)
        return [[Hit(identity, 1.0) for identity in ids] for _ in queries]


def fused(second: str | None, **given: Any) -> HybridRetriever:
    """Both find d0 first, but other pieces of it, and d1 second."""
    parts = {
        "lexical": Cut("lexical", [("d0", 0), ("d1", 0)], "cut"),
        "semantic": Cut("semantic", [("d0", 5), ("d1", 0), ("d2", 0)], second),
    }
    return HybridRetriever(Corpus(["a", "b", "c"]), HybridSettings(**given), parts=parts)


def test_shared_pieces_are_fused() -> None:
    made = fused("cut")
    # d1's piece: 1/22 + 1/22 = .0909091; each of d0's: 1/21 = .0476190; d2's: 1/23 = .0434783
    assert made.by_chunks
    (hits,) = made.search(["q"], 9)
    assert [hit.id for hit in hits] == ["d1", "d0", "d2"]
    assert [hit.score for hit in hits] == pytest.approx([0.0909091, 0.0476190, 0.0434783], abs=1e-7)
    assert made.search(["q"], 1) == [hits[:1]]


@pytest.mark.parametrize("second", ["cut otherwise", None])
def test_other_pieces_are_fused_as_documents(second: str | None) -> None:
    made = fused(second)
    # d0: 2/21 = .0952381, d1: 2/22 = .0909091, d2: 1/23
    assert not made.by_chunks
    assert [hit.id for hit in made.search(["q"], 9)[0]] == ["d0", "d1", "d2"]


def test_fused_pieces_to_a_depth() -> None:
    # in order: d1's, d0's first, d0's sixth, d2's
    for depth, found in [(1, ["d1"]), (3, ["d1", "d0"]), (4, ["d1", "d0", "d2"])]:
        hits = fused("cut", chunk_depth=depth).search(["q"], 9)[0]
        assert [hit.id for hit in hits] == found
    with pytest.raises(ValueError, match="chunk_depth is 3, but lexical, semantic do not cut"):
        fused(None, chunk_depth=3)


def test_lexical_and_semantic_pieces_together(model: str, tmp_path: Path) -> None:
    """The gate looks at pieces: d0 holds both terms, but no piece of it does."""
    corpus = Corpus(["w1 w2 w3 w4", "w5 w6"])
    cut = {"chunk_words": 2}
    chosen = {
        "lexical": LexicalSettings(**cut),
        "semantic": SemanticSettings(model=model, device="cpu", **cut),
        "hybrid": HybridSettings(gate=True, gate_share=1.0),
    }
    made = build_retrievers(["hybrid"], chosen.__getitem__, corpus, tmp_path)["hybrid"]
    assert isinstance(made, HybridRetriever)
    assert made.by_chunks
    open_gate, shut_gate = made.search(["w3 w4", "w2 w4"], 2)
    # The piece "w3 w4" is first in both rankings.
    assert open_gate[0] == Hit("d0", pytest.approx(2 / 21))
    assert shut_gate[0].score == pytest.approx(1 / 21)
