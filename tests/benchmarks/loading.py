"""Loading large collections: memory and seconds, the first time and again.

    python -m tests.benchmarks.loading            1,000,000 documents
    python -m tests.benchmarks.loading --small    20,000 documents

Documents of sixty words (about 400 characters) are written as gzip shards of JSON lines in the
columns of MS MARCO v2.1 segments, and as Parquet files in those of the hub's MS MARCO, ten
passages a row. Each is loaded in a process of its own, twice: the first time reads the files and
stores the documents in Arrow, the second time maps what is stored. Then the documents are hashed
and a thousand of them, from all over, are read.

Memory is the most that was resident at once, pages of mapped files included, Python and its
packages too. With --small the files are stored and mapped as the large ones are.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from retrievers.collection import Collection
from retrievers.loaders import load, storing
from tests.benchmarks import corpora
from tests.benchmarks.figures import Figure, show
from tests.benchmarks.memory import GIB, resident

SIZE, SMALL = 1_000_000, 20_000
SHARD = 50_000  # documents of a file
PASSAGES = 10  # of a row
READ = 1000
LOADERS = ("trec", "msmarco")


def main() -> None:
    """Measure and show; with --work, be one of the processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="20,000 documents, no goal is judged")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        loader, folder = options.work
        print(json.dumps(_load(loader, Path(folder))))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, SMALL if options.small else SIZE)
        found = {loader: _measured(loader, folder) for loader in LOADERS}
    show(dict(_figures(found)), options.small)


def _measured(loader: str, folder: Path) -> dict[str, dict[str, float]]:
    """Of the first loading and the second; what was stored is removed again."""
    found = {which: _process(loader, folder) for which in ("first", "again")}
    for which, one in found.items():
        print(
            f"{loader}, {which}: {one['documents']:,} documents in {one['seconds']:.1f} s, hashed "
            f"in {one['hash']:.1f} s, {READ} read in {one['read'] * 1000:.0f} ms; at most "
            f"{one['peak'] / GIB:.2f} GiB resident; at the end {one['own'] / GIB:.2f} GiB that are "
            "no mapped files",
            flush=True,
        )
    shutil.rmtree(folder / "cache")
    return found


def _figures(found: dict[str, dict[str, dict[str, float]]]) -> Iterator[tuple[str, Figure]]:
    for loader, times in found.items():
        for which, one in times.items():
            yield f"{loader}_{which}_memory", Figure(one["peak"] / GIB, 2, "lower", "GiB")
        yield f"{loader}_again_seconds", Figure(times["again"]["seconds"], 30, "lower", "seconds")


def _process(loader: str, folder: Path) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.loading", "--work", loader, str(folder)]
    environment = {**os.environ, "RLQR_CACHE": str(folder / "cache")}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def _load(loader: str, folder: Path) -> dict[str, float]:
    storing.SMALL = 0
    marks = [time.perf_counter()]
    collection = _opened(loader, folder)
    marks.append(time.perf_counter())
    collection.fingerprint  # noqa: B018 - kept by the collection
    marks.append(time.perf_counter())
    for identity in collection.ids[:: max(1, len(collection) // READ)]:
        collection.document(identity)
    marks.append(time.perf_counter())
    seconds, hashing, reading = (late - early for early, late in itertools.pairwise(marks))
    return {
        "documents": len(collection),
        "seconds": seconds,
        "hash": hashing,
        "read": reading,
        "peak": resident("peak"),
        "own": resident("own"),
    }


def _opened(loader: str, folder: Path) -> Collection:
    if loader == "trec":
        return load("trec", corpus=folder / "trec", text=["headings", "segment"])
    everything = {"splits": {"validation": 0.001}, "documents": "all"}
    return load("msmarco", folder=str(folder / "msmarco"), **everything)


def _write(folder: Path, size: int) -> None:
    """Documents in both layouts, written in a process whose memory is not counted."""
    with ProcessPoolExecutor(1) as other:
        other.submit(_write_both, folder, size).result()


def _write_both(folder: Path, size: int) -> None:
    corpora.write_documents(folder / "documents.arrow", size)
    documents = corpora.documents(folder / "documents.arrow")
    (folder / "trec").mkdir()
    (folder / "msmarco" / "v2.1").mkdir(parents=True)
    rows = zip(documents.ids, (text for _, text in documents.texts()), strict=True)
    shards = -(-size // SHARD)
    for shard in range(shards):
        some = [next(rows) for _ in range(min(SHARD, size - shard * SHARD))]
        _write_segments(folder / "trec" / f"msmarco_v2.1_doc_segmented_{shard:02}.json.gz", some)
        name = f"validation-{shard:05}-of-{shards:05}.parquet"
        _write_passages(folder / "msmarco" / "v2.1" / name, some)


def _write_segments(path: Path, rows: list[tuple[str, str]]) -> None:
    import gzip

    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as out:
        for identity, text in rows:
            row = {"docid": identity, "url": "https://example.org", "title": "t", "headings": "h"}
            out.write(json.dumps({**row, "segment": text, "start_char": 0}) + "\n")


def _write_passages(path: Path, rows: list[tuple[str, str]]) -> None:
    from tests.tiny_datasets import MSMARCO, msmarco_row, parquet

    groups = [rows[start : start + PASSAGES] for start in range(0, len(rows), PASSAGES)]
    number = int(rows[0][0].rpartition("-")[2])
    parquet(
        path,
        [
            msmarco_row(number + i, [text for _, text in group], [0] * len(group))
            for i, group in enumerate(groups)
        ],
        MSMARCO,
    )


if __name__ == "__main__":
    main()
