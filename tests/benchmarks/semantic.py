"""Exact semantic search against the bare float32 product with top-k, in one run.

    python -m tests.benchmarks.semantic            1,000,000 vectors of 384 numbers
    python -m tests.benchmarks.semantic --small    20,000 vectors

64 queries, top 100, on random unit vectors that are mapped from a file, as an index is. The bare
side has its vectors as float32 in memory and computes `torch.topk(queries @ vectors.T, 100)`, with
the same threads. The two take turns; a ratio is that of the shortest times, to which other programs
on the machine add least. Peak memory is that of a process of its own, Python and torch included,
which maps the float16 vectors and searches.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrievers.semantic.exact import Decision, ExactSearch
from retrievers.semantic.stored import STORED, DType, Rows, as_stored
from tests.benchmarks.figures import Figure, show
from tests.benchmarks.memory import GIB, resident

if TYPE_CHECKING:
    from torch import Tensor

DIMENSION = 384
QUERIES = 64
K = 100
ROUNDS = 9
BLOCK = 50_000
DTYPES: tuple[DType, ...] = ("float16", "bfloat16", "float32")


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="20,000 vectors, no goal is judged")
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        _search_of(options.memory, "float16").best(_queries(), K)
        print(resident("peak"))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, 20_000 if options.small else 1_000_000)
        show(dict(_figures(folder)), options.small)


def _figures(folder: Path) -> Iterator[tuple[str, Figure]]:
    import torch

    vectors = torch.from_numpy(np.load(folder / "float32.npy"))
    asked = torch.from_numpy(_queries())
    threads = torch.get_num_threads()
    print(f"{len(vectors)} vectors of {DIMENSION}, {QUERIES} queries, threads: {threads}")
    for dtype in DTYPES:
        search = _search_of(folder, dtype)
        bare, ours = _take_turns(
            lambda: _bare(asked, vectors), lambda search=search: search.best(_queries(), K)
        )
        print(f"{dtype}: bare {bare * 1000:.0f} ms, ours {ours * 1000:.0f} ms")
        yield (
            f"{dtype}_over_bare",
            Figure(ours / bare, 1.5, "lower", "times the bare product's time"),
        )
    scores = np.stack([found for _, found in _search_of(folder, "float32").best(_queries(), K)])
    difference = float(np.abs(scores - _bare(asked, vectors).numpy()).max())
    yield "score_difference", Figure(difference, 1e-5, "lower", "at any rank, vectors in float32")
    stored = (folder / "float16.npy").stat().st_size
    yield "memory_beside_vectors", Figure((_peak(folder) - stored) / GIB, 1.0, "lower", "GiB")


def _bare(queries: "Tensor", vectors: "Tensor") -> "Tensor":
    import torch

    return torch.topk(queries @ vectors.T, K).values


def _take_turns(bare: Callable[[], object], ours: Callable[[], object]) -> tuple[float, float]:
    """The shortest seconds of each, after one round that is not counted."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(1 + ROUNDS):
        for side, work in zip(times, (bare, ours), strict=True):
            started = time.perf_counter()
            work()
            side.append(time.perf_counter() - started)
    return min(times[0][1:]), min(times[1][1:])


def _queries() -> NDArray[np.float32]:
    return _unit(np.random.default_rng(1), QUERIES)


def _unit(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    vectors = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _write(folder: Path, size: int) -> None:
    """One file a type, block by block."""
    rng = np.random.default_rng(0)
    files = {
        dtype: np.lib.format.open_memmap(
            folder / f"{dtype}.npy", mode="w+", dtype=STORED[dtype], shape=(size, DIMENSION)
        )
        for dtype in DTYPES
    }
    for start in range(0, size, BLOCK):
        block = _unit(rng, min(BLOCK, size - start))
        for dtype, file in files.items():
            file[start : start + len(block)] = as_stored(block, dtype)


def _search_of(folder: Path, dtype: DType) -> ExactSearch:
    stored = np.load(folder / f"{dtype}.npy", mmap_mode="r")
    owners = np.arange(len(stored), dtype=np.int32)
    return ExactSearch(Decision(Rows(stored, dtype, 1.01), owners, "cosine", None))


def _peak(folder: Path) -> int:
    """Bytes of memory that a process needs at most."""
    command = [sys.executable, "-m", "tests.benchmarks.semantic", "--memory", str(folder)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
