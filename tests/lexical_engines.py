"""BM25 over a few texts, of one's own or drawn by chance."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrievers.lexical import LexicalRetriever, LexicalSettings
from tests.tiny_corpus import Corpus

VARIANTS = ["lucene", "okapi", "bm25+"]
KOREAN = ["서울시 예산 공고", "부산시 예산 공고", "날씨 안내", "기차 시간표", "채용 공고 안내"]


def build(texts: Sequence[str], index_dir: Path | None = None, **chosen: Any) -> LexicalRetriever:
    return LexicalRetriever(Corpus(texts), LexicalSettings.model_validate(chosen), index_dir)


def found(retriever: LexicalRetriever, query: str, k: int = 10) -> list[str]:
    return [hit.id for hit in retriever.search([query], k)[0]]


def zipf_texts(rng: random.Random, size: int, words: int) -> list[str]:
    vocabulary = [f"w{n}" for n in range(words)]
    weights = [1 / (n + 1) for n in range(words)]
    return [" ".join(rng.choices(vocabulary, weights, k=rng.randrange(1, 15))) for _ in range(size)]
