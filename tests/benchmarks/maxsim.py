"""Late interaction against the bare float32 product and colpali-engine's scorer, in one run.

    python -m tests.benchmarks.maxsim            2,000 pages; two stages: 20,000
    python -m tests.benchmarks.maxsim --small    a tenth of that

64 queries of 20 random unit vectors of 128 numbers, on pages of 256 vectors, or of 64 to 768,
equally often. Our side has the pages' vectors as float16, mapped from a file as an index is, except
where its scores are compared. The bare side computes `queries @ pages.T` of float32 in memory, and
colpali-engine's scorer has a float32 tensor a page. The sides take turns; a ratio is that of the
medians. Seconds are of the processor, which what else runs on the machine hardly changes. Memory is
what our side takes beside the mapped file while it scores, in a process of its own.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrievers.multimodal.centroids import CentroidSettings, build
from retrievers.multimodal.maxsim import MaxSim
from retrievers.multimodal.pooled import candidates
from retrievers.semantic.stored import Rows, as_stored
from tests.benchmarks.figures import Figure, show

if TYPE_CHECKING:
    from torch import Tensor

DIMENSION = 128
QUERIES = 64
QUERY_VECTORS = 20
PAGE_VECTORS = 256
UNEVEN = (64, 768)
BLOCK = 4096
CENTROIDS = CentroidSettings(count=4096, rounds=1)  # random vectors have no groups to find
SHARES = (0.02, 0.05, 0.1)  # the first is judged
ROUNDS = 5
WRITTEN = 2**16  # vectors drawn at once
MIB = 2**20

Queries = list[NDArray[np.float32]]
Offsets = NDArray[np.int64]


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a tenth, no goal is judged")
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(_memory(Path(options.memory[0]), int(options.memory[1])))
        return
    with tempfile.TemporaryDirectory() as name:
        figures = dict(_figures(Path(name), 200 if options.small else 2000))
    show(figures, options.small)


def _figures(folder: Path, pages: int) -> Iterator[tuple[str, Figure]]:
    import torch

    print(f"{QUERIES} queries of {QUERY_VECTORS} vectors, threads: {torch.get_num_threads()}")
    yield from _even(folder, pages)
    yield from _uneven(folder, pages)
    yield from _two_stages(folder, 10 * pages)


def _even(folder: Path, pages: int) -> Iterator[tuple[str, Figure]]:
    import torch

    offsets = np.arange(pages + 1) * PAGE_VECTORS
    vectors, asked = _write(folder, offsets), _queries()
    product = torch.from_numpy(np.concatenate(asked))
    engine = partial(_engine, asked, vectors, offsets)
    ours = _scorer(folder, offsets)
    times = _take_turns(lambda: product @ vectors.T, engine, lambda: ours.scores(asked))
    bare, _, own = times
    _print(f"{pages} pages of {PAGE_VECTORS}: bare, colpali-engine, ours", times)
    yield "even_over_bare", Figure(own / bare, 1.25, "lower", "times the bare product's time")
    exact = MaxSim(Rows(vectors.numpy(), "float32", 1.01), offsets, BLOCK).scores(asked)
    difference = float(np.abs(exact - engine().numpy()).max())
    yield "difference", Figure(difference, 1e-4, "lower", "from colpali-engine, both in float32")


def _uneven(folder: Path, pages: int) -> Iterator[tuple[str, Figure]]:
    low, high = UNEVEN
    lengths = np.random.default_rng(2).integers(low, high + 1, pages)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    vectors, asked = _write(folder, offsets), _queries()
    ours = _scorer(folder, offsets)
    times = _take_turns(partial(_engine, asked, vectors, offsets), lambda: ours.scores(asked))
    _print(f"{pages} pages of {low} to {high}: colpali-engine, ours", times)
    yield "uneven_throughput", Figure(times[0] / times[1], 1.5, "higher", "times colpali-engine's")
    np.save(folder / "offsets.npy", offsets)
    few, all_of_them = (_memory_of(folder, count) for count in (pages // 10, pages))
    yield "memory", Figure(all_of_them / MIB, 64.0, "lower", "MiB")
    growth = (all_of_them - few) / MIB
    yield "memory_growth", Figure(growth, 16.0, "lower", "MiB from a tenth of the pages to all")


def _two_stages(folder: Path, pages: int) -> Iterator[tuple[str, Figure]]:
    offsets = np.arange(pages + 1) * PAGE_VECTORS
    _write(folder, offsets, keep=False)
    asked, ours = _queries(), _scorer(folder, offsets)
    rows = Rows(np.load(folder / "pages.npy", mmap_mode="r"), "float16", 1.01)
    started = time.process_time()
    groups = build(rows, offsets, CENTROIDS)
    print(f"{CENTROIDS.count} centroids: built in {time.process_time() - started:.0f} s")
    owners = np.arange(pages, dtype=np.int32)

    def staged(share: float) -> NDArray[np.float32]:
        wanted = candidates(groups.scores(asked, CENTROIDS.probes), share, 1, owners)
        return ours.chosen(asked, wanted)

    sides = [partial(staged, share) for share in SHARES]
    exact, *found = times = _take_turns(lambda: ours.scores(asked), *sides, rounds=3)
    _print(f"{pages} pages of {PAGE_VECTORS}: exact, two stages", times)
    for share, seconds in zip(SHARES, found, strict=True):
        print(f"  {share:.0%} of the pages as candidates: {exact / seconds:.1f} times exact's")
    unit = f"times exact's, with {SHARES[0]:.0%} of the pages as candidates"
    yield "two_stages", Figure(exact / found[0], 10.0, "higher", unit)


def _engine(asked: Queries, vectors: "Tensor", offsets: Offsets) -> "Tensor":
    import torch
    from colpali_engine.models import ColPaliProcessor

    pages = list(vectors.split(np.diff(offsets).tolist()))
    queries = [torch.from_numpy(query) for query in asked]
    return ColPaliProcessor.score_multi_vector(queries, pages, device="cpu")


def _scorer(folder: Path, offsets: Offsets) -> MaxSim:
    stored = np.load(folder / "pages.npy", mmap_mode="r")[: offsets[-1]]
    return MaxSim(Rows(stored, "float16", 1.01), offsets, BLOCK)


def _take_turns(*sides: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Median seconds of each, after one round that is not counted."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(1 + rounds):
        for side, work in zip(times, sides, strict=True):
            started = time.process_time()
            work()
            side.append(time.process_time() - started)
    return [median(side[1:]) for side in times]


def _memory_of(folder: Path, pages: int) -> int:
    command = [sys.executable, "-m", "tests.benchmarks.maxsim", "--memory", str(folder), str(pages)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _memory(folder: Path, pages: int) -> int:
    """Bytes that scoring takes at most, the mapped file left out; looked at every 2 ms."""
    import torch

    torch.mm(torch.ones(64, 64), torch.ones(64, 64))  # the library's own buffers
    asked, ours = _queries(), _scorer(folder, np.load(folder / "offsets.npy")[: pages + 1])
    seen = [_anonymous()]
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.002):
            seen.append(_anonymous())

    looking = threading.Thread(target=look)
    looking.start()
    ours.scores(asked)
    done.set()
    looking.join()
    return max(seen) - seen[0]


def _anonymous() -> int:
    """Bytes of memory of this process that belong to no file (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def _queries() -> Queries:
    rng = np.random.default_rng(1)
    return [_unit(rng, QUERY_VECTORS) for _ in range(QUERIES)]


def _unit(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    vectors = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _write(folder: Path, offsets: Offsets, keep: bool = True) -> "Tensor":
    """Write random vectors as float16; return them as float32, or none of them."""
    import torch

    count = int(offsets[-1])
    rng = np.random.default_rng(0)
    kept = torch.empty(count if keep else 0, DIMENSION)
    file = np.lib.format.open_memmap(
        folder / "pages.npy", mode="w+", dtype=np.float16, shape=(count, DIMENSION)
    )
    for start in range(0, count, WRITTEN):
        block = _unit(rng, min(WRITTEN, count - start))
        file[start : start + len(block)] = as_stored(block, "float16")
        if keep:
            kept[start : start + len(block)] = torch.from_numpy(block)
    return kept


def _print(what: str, seconds: list[float]) -> None:
    print(f"{what}: {', '.join(f'{one * 1000:.0f}' for one in seconds)} ms")


if __name__ == "__main__":
    main()
