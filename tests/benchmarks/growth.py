"""Search cost by collection size: ms a query at 10,000, 100,000 and 1,000,000 documents.

    python -m tests.benchmarks.growth            all sizes
    python -m tests.benchmarks.growth --small    500, 1,000 and 2,000 documents

Lexical: documents of 60 Zipf words, four-word queries, ten hits; bm25s on a mapped index, and
rank-bm25 where it is affordable. Semantic: vectors of 384 numbers that spread in 24 directions,
float16, mapped from a file; exact and, where its graph is built within minutes, HNSW. Queries are
vectors already, so that the model's time, which no collection changes, is left out. They all differ
and are asked in one batch, as a step of training asks them. Times are processor time, to which
other programs on the machine add little, the best of three batches. Growth is the exponent e of the
line through the logarithms: cost ~ documents^e.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import retrievers.semantic.hnsw as hnsw
from retrievers.bm25 import EngineName
from retrievers.lexical import LexicalRetriever, LexicalSettings
from retrievers.semantic.exact import Decision, ExactSearch
from retrievers.semantic.hnsw import HnswSearch, HnswSettings
from retrievers.semantic.overlap import overlap
from retrievers.semantic.stored import Rows, as_stored
from tests.benchmarks import corpora
from tests.benchmarks.figures import Figure, show

SIZES, SMALL = (10_000, 100_000, 1_000_000), (500, 1_000, 2_000)
K = 10
BATCHES = 3
LINEAR = 1.15  # the exponent of what is still called linear
BLOCK = 50_000

Search = Callable[[int], object]  # number of the batch → search with its queries


@dataclass(frozen=True)
class Way:
    """One way to search.

    Attributes:
        prepare: (folder, size, number of queries in a batch) → the search.
        batch: queries asked at once.
        most: documents up to which it is measured, and why not more.
    """

    prepare: Callable[[Path, int, int], Search]
    batch: int = 64
    most: tuple[int, str] | None = None


def _lexical(engine: EngineName) -> Callable[[Path, int, int], Search]:
    def prepare(folder: Path, size: int, batch: int) -> Search:
        path = folder / f"{size}.arrow"
        if not path.exists():
            corpora.write_documents(path, size)
        place = folder / f"{size}-{engine}"
        chosen = LexicalSettings(engine=engine)
        LexicalRetriever(corpora.documents(path), chosen, place)
        retriever = LexicalRetriever(corpora.documents(path), chosen, place, cache_size=0)
        asked = corpora.queries(size, BATCHES * batch)
        return lambda number: retriever.search(asked[number * batch :][:batch], K)

    return prepare


def _semantic(graph: bool) -> Callable[[Path, int, int], Search]:
    def prepare(folder: Path, size: int, batch: int) -> Search:
        decision = Decision(_rows(folder, size), np.arange(size, dtype=np.int32), "cosine", None)
        search: ExactSearch | HnswSearch = ExactSearch(decision)
        if graph:
            chosen = HnswSettings()
            search = HnswSearch(decision, chosen, hnsw.build(decision.rows, "cosine", chosen))
        asked = corpora.embeddings(np.random.default_rng(1), BATCHES * batch)
        if isinstance(search, HnswSearch):
            shared = overlap(ExactSearch(decision), search, asked, K)
            found = f"{shared:.3f} of the first {K} are those of exact search"
            print(f"semantic hnsw, {size:,}: {found}", flush=True)
        return lambda number: search.best(asked[number * batch :][:batch], K)

    return prepare


def _rows(folder: Path, size: int) -> Rows:
    path = folder / f"{size}.npy"
    if not path.exists():
        rng, shape = np.random.default_rng(0), (size, corpora.DIMENSION)
        file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
        for start in range(0, size, BLOCK):
            block = corpora.embeddings(rng, min(BLOCK, size - start))
            file[start : start + len(block)] = as_stored(block, "float16")
    return Rows(np.load(path, mmap_mode="r"), "float16", 1.01)


WAYS = {
    "lexical bm25s": Way(_lexical("bm25s")),
    "lexical rank-bm25": Way(
        _lexical("rank-bm25"),
        batch=4,
        most=(100_000, "a dictionary a document takes some 5 GiB, and a query seconds"),
    ),
    "semantic exact": Way(_semantic(False)),
    "semantic hnsw": Way(_semantic(True), most=(100_000, "building the graph takes about an hour")),
}


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="up to 2,000 documents, no goals")
    small = parser.parse_args().small
    sizes = SMALL if small else SIZES
    with tempfile.TemporaryDirectory() as name:
        found = {way: dict(_times(way, Path(name), sizes)) for way in WAYS}
    print(_table(found, sizes))
    for way, chosen in WAYS.items():
        if chosen.most and chosen.most[0] < sizes[-1]:
            print(f"{way}: left out above {chosen.most[0]:,} documents; {chosen.most[1]}")
    show(dict(_figures(found)), small)


def _times(name: str, folder: Path, sizes: Sequence[int]) -> Iterator[tuple[int, float]]:
    """(documents, ms a query) of one way."""
    way = WAYS[name]
    for size in sizes:
        if way.most is None or size <= way.most[0]:
            started = time.perf_counter()
            search = way.prepare(folder, size, way.batch)
            ready = time.perf_counter() - started
            search(0)  # first-use costs are not the search's
            ms = min(_seconds(search, number) for number in range(BATCHES)) / way.batch * 1000
            print(f"{name}, {size:,}: {ms:.4g} ms a query (prepared in {ready:.0f} s)", flush=True)
            yield size, ms


def _seconds(search: Search, number: int) -> float:
    started = time.process_time()
    search(number)
    return time.process_time() - started


def growth(times: dict[int, float]) -> float:
    """The exponent e of cost ~ documents^e, by least squares on the logarithms."""
    sizes, costs = np.log(list(times)), np.log(list(times.values()))
    return float(np.polyfit(sizes, costs, 1)[0])


def _table(found: dict[str, dict[int, float]], sizes: Sequence[int]) -> str:
    """Markdown, as the README holds it."""
    head = ["ms a query", *(f"{size:,} documents" for size in sizes), "growth"]
    rows = [
        [name, *(f"{times[s]:.3g}" if s in times else "–" for s in sizes), _named(growth(times))]
        for name, times in found.items()
    ]
    lines = [head, ["---", *("--:" for _ in sizes), "---"], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _named(exponent: float) -> str:
    steps = ((0.2, "hardly any"), (0.85, "slower than linear"), (LINEAR, "linear"))
    name = next((name for most, name in steps if exponent < most), "faster than linear")
    return f"{name} (N^{exponent:.2f})"


def _figures(found: dict[str, dict[int, float]]) -> Iterator[tuple[str, Figure]]:
    for name, times in found.items():
        key = name.replace(" ", "_").replace("-", "_")
        yield f"{key}_growth", Figure(growth(times), LINEAR, "lower", "exponent")


if __name__ == "__main__":
    main()
