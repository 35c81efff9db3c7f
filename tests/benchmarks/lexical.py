"""Throughput of the two BM25 engines on one corpus, in one run, and whether they rank alike.

    python -m tests.benchmarks.lexical            100,000 documents of 60 words
    python -m tests.benchmarks.lexical --small    2,000 documents

Words follow Zipf's law. A query is four different words of a document that is drawn at random,
frequent words included: nothing makes it easy. Queries all differ and each is searched once, so
that no cache helps.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from retrievers.base import Hit
from retrievers.bm25 import EngineName
from retrievers.index import fingerprint
from retrievers.lexical import LexicalRetriever, LexicalSettings
from tests.benchmarks.figures import Figure, show

WORDS_A_DOCUMENT = 60
VOCABULARY = 100_000
K = 10


@dataclass(frozen=True)
class Zipf:
    """Random documents; the same seed and size give the same ones."""

    size: int
    seed: int = 0

    @cached_property
    def words(self) -> "np.typing.NDArray[np.intp]":
        """(size, 60) word numbers; the n-th most frequent word has a chance of about 1 / n."""
        chances = 1 / np.arange(1, VOCABULARY + 1)
        rng = np.random.default_rng(self.seed)
        shape = (self.size, WORDS_A_DOCUMENT)
        return rng.choice(VOCABULARY, size=shape, p=chances / chances.sum())

    @property
    def ids(self) -> Sequence[str]:
        return [str(number) for number in range(self.size)]

    @property
    def fingerprint(self) -> str:
        return fingerprint({"size": self.size, "seed": self.seed})

    def texts(self) -> Iterator[tuple[str, str]]:
        for row in self.words:
            yield "", " ".join(map(_word, row))

    def queries(self, count: int) -> list[str]:
        """Distinct queries of four words."""
        rng = np.random.default_rng(self.seed + 1)
        found: dict[str, None] = {}
        while len(found) < count:
            different = np.unique(self.words[rng.integers(self.size)])
            found[" ".join(map(_word, rng.choice(different, size=4, replace=False)))] = None
        return list(found)


def _word(number: int) -> str:
    return f"w{number}"


def _timed(corpus: Zipf, engine: EngineName, queries: list[str]) -> tuple[float, list[list[Hit]]]:
    """Queries a second, and the hits."""
    chosen = LexicalSettings(engine=engine)
    retriever = LexicalRetriever(corpus, chosen, cache_size=0)
    retriever.search(["w1 w2 w3 w4"], K)  # first-use costs are not throughput
    started = time.perf_counter()
    hits = retriever.search(queries, K)
    return len(queries) / (time.perf_counter() - started), hits


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="2,000 documents, no goal is judged")
    small = parser.parse_args().small
    corpus = Zipf(2_000 if small else 100_000)
    queries = corpus.queries(200 if small else 1_000)
    few = queries[: 20 if small else 30]  # rank-bm25 takes a good part of a second for each
    fast, fast_hits = _timed(corpus, "bm25s", queries)
    slow, slow_hits = _timed(corpus, "rank-bm25", few)
    print(f"{corpus.size} documents; queries a second: bm25s {fast:.1f}, rank-bm25 {slow:.2f}")
    figures = {
        "bm25s_over_rank_bm25": Figure(fast / slow, 100, unit="times the queries a second"),
        "same_ranking": Figure(fast_hits[: len(few)] == slow_hits, True, better="equal"),
    }
    show(figures, small)


if __name__ == "__main__":
    main()
