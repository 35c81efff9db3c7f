"""Opening indexes that exist: seconds, and memory before and after searches.

    python -m tests.benchmarks.opening            1,000,000 documents
    python -m tests.benchmarks.opening --small    5,000 documents

A lexical index (bm25s) and a semantic one (384 numbers a document, float16) are built by the
backends themselves, each in a process of its own, and opened in a fresh process. Opening is all
that leads from an Arrow file of documents to the first search: the collection and its ids, the hash
of the documents, the manifest, checksums, arrays, the vocabulary. Importing bm25s or torch is shown
apart, and the model is no part of the semantic index: a stand-in gives random vectors. Files were
just written, so that they are read from the system's cache.

Memory counts pages of mapped files that were touched. What opening an index adds should be small
beside it; searches then add what they read.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import retrievers.semantic.retriever as semantic
from retrievers.base import Retriever
from retrievers.index_files import facts
from retrievers.lexical import LexicalRetriever, LexicalSettings
from retrievers.semantic import SemanticRetriever, SemanticSettings
from tests.benchmarks import corpora
from tests.benchmarks.figures import Figure, show
from tests.benchmarks.memory import GIB, resident

SIZE, SMALL = 1_000_000, 5_000
PACKAGES = {"lexical": "bm25s", "semantic": "torch"}
SEARCHES = 64
TIMES = ("packages", "collection", "hash", "index")
MEMORY = ("opening", "one search", f"{SEARCHES} searches more")
K = 10
MIB = 2**20


def main() -> None:
    """Measure and show; with --work, be one of the processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="5,000 documents, no goal is judged")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        step, backend, folder = options.work
        print(json.dumps(STEPS[step](backend, Path(folder))))
        return
    with tempfile.TemporaryDirectory() as name:
        corpora.write_documents(Path(name) / "documents.arrow", SMALL if options.small else SIZE)
        found = {backend: _measured(backend, Path(name)) for backend in PACKAGES}
    show(dict(_figures(found)), options.small)


def _measured(backend: str, folder: Path) -> dict[str, float]:
    built, opened = (_process(step, backend, folder) for step in STEPS)
    size = facts(folder / backend).size
    seconds = ", ".join(f"{name} {opened[name]:.2f}" for name in TIMES)
    memory = ", ".join(f"{name} {opened[name] / MIB:.0f}" for name in MEMORY)
    print(
        f"{backend}: {built['documents']:,} documents, {size / MIB:.0f} MiB on disk, built in "
        f"{built['seconds']:.0f} s with {built['peak'] / GIB:.1f} GiB\n"
        f"    seconds: {seconds}\n    MiB added: {memory}",
        flush=True,
    )
    return {**opened, "size": size}


def _figures(found: dict[str, dict[str, float]]) -> Iterator[tuple[str, Figure]]:
    for backend, one in found.items():
        seconds = sum(one[name] for name in TIMES[1:])
        yield f"{backend}_opening", Figure(seconds, 2, "lower", "seconds")
        share = one[MEMORY[0]] / one["size"]
        yield f"{backend}_memory", Figure(share, 0.1, "lower", "of the index, added by opening it")


def _process(step: str, backend: str, folder: Path) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.opening", "--work", step, backend]
    done = subprocess.run([*command, str(folder)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def _build(backend: str, folder: Path) -> dict[str, float]:
    documents = corpora.documents(folder / "documents.arrow")
    started = time.perf_counter()
    _retriever(backend, documents, folder)
    seconds = time.perf_counter() - started
    return {"documents": len(documents), "seconds": seconds, "peak": resident("peak")}


def _open(backend: str, folder: Path) -> dict[str, float]:
    asked = corpora.queries(SMALL, 1 + SEARCHES)
    marks, memory = [time.perf_counter()], [resident()]

    def mark() -> None:
        marks.append(time.perf_counter())
        memory.append(resident())

    import_module(PACKAGES[backend])
    mark()
    documents = corpora.documents(folder / "documents.arrow")
    mark()
    documents.fingerprint  # noqa: B018 - kept by the collection
    mark()
    retriever = _retriever(backend, documents, folder)
    mark()
    for some in (asked[:1], asked[1:]):
        retriever.search(some, K)
        mark()
    seconds = [late - early for early, late in pairwise(marks)]
    added = [late - early for early, late in pairwise(memory)]
    return {
        **dict(zip(TIMES, seconds, strict=False)),
        **dict(zip(MEMORY, added[len(TIMES) - 1 :], strict=True)),
    }


STEPS = {"build": _build, "open": _open}


def _retriever(backend: str, documents: Any, folder: Path) -> Retriever:
    if backend == "lexical":
        chosen = LexicalSettings(engine="bm25s")
        return LexicalRetriever(documents, chosen, folder / backend, cache_size=0)
    semantic.Encoder = corpora.RandomEncoder  # type: ignore[assignment, misc]
    return SemanticRetriever(documents, SemanticSettings(), folder / backend, cache_size=0)


if __name__ == "__main__":
    main()
