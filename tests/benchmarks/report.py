"""Size of a large report, the time to write it, and the time until its list is sorted.

    python -m tests.benchmarks.report            5,000 queries × 3 backends × 3 systems
    python -m tests.benchmarks.report --small    100 queries × 3 backends × 3 systems

Four documents a query, each of 200 words that follow Zipf's law; ten hits a record; every third
document is a page with a picture. `first_sort` runs from opening the page in headless Chromium
until the list is there as sorted by the first click on a heading; `sort` is that click alone.
Needs Chromium: apt-get install --no-install-recommends chromium
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.base import Hit
from rewriter.evaluation import summarise, write_result
from rewriter.records import Record, write_lines, write_records
from rewriter.report import write
from tests.benchmarks.figures import Figure, show
from tests.browser import chromium

BACKENDS = ("lexical", "semantic", "multimodal")
SYSTEMS = ("raw", "untrained", "trained")
HITS = 10
WORDS = 50_000
PICTURES = 900  # a third of them is drawn
# Clicks as soon as the list is there; a frame later the sorted list has been painted.
CLICK = """
new MutationObserver((_, observer) => {
    if (!document.documentElement.dataset.ready) return;
    observer.disconnect();
    const started = performance.now();
    document.querySelector('th[data-column="change"] button').click();
    requestAnimationFrame(() => setTimeout(() => {
        const sorted = document.querySelector('th[data-column="change"]').ariaSort;
        window.measured = { sort: performance.now() - started, all: performance.now(), sorted };
    }));
}).observe(document, { attributes: true, childList: true, subtree: true });
"""


class World:
    """Random words, documents and records; the same count gives the same ones."""

    def __init__(self, queries: int) -> None:
        self.queries, self.documents = queries, 4 * queries
        self._rng = np.random.default_rng(0)
        letters = np.array(list("etaoinshrdlu"))
        self._words = ["".join(self._rng.choice(letters, size=2 + n % 8)) for n in range(WORDS)]
        chances = 1 / np.arange(1, WORDS + 1)
        self._sums = np.cumsum(chances / chances.sum())

    def text(self, words: int) -> str:
        drawn = np.searchsorted(self._sums, self._rng.random(words))
        return " ".join(self._words[min(n, WORDS - 1)] for n in drawn)

    def records(self) -> Iterator[Record]:
        queries = [self.text(30) for _ in range(self.queries)]
        for system in SYSTEMS:
            rewrites = [None if system == "raw" else self.text(9) for _ in queries]
            for backend in BACKENDS:
                for number, (query, rewrite) in enumerate(zip(queries, rewrites, strict=True)):
                    yield self._record(system, backend, number, query, rewrite)

    def _record(
        self, system: str, backend: str, number: int, query: str, rewrite: str | None
    ) -> Record:
        # Steps of at most a tenth of all documents, once around: no document twice.
        steps = self._rng.integers(1, self.documents // HITS, size=HITS)
        drawn = ((self._rng.integers(self.documents) + np.cumsum(steps)) % self.documents).tolist()
        rank = int(self._rng.integers(1, 14))
        found = [document for document in drawn if document != number]
        if rank <= len(found):
            found[rank - 1] = number
        scores = np.sort(self._rng.random(len(found)) * 30)[::-1].tolist()
        return Record(
            system=system,
            backend=backend,
            split="test",
            query_id=f"q{number:05d}",
            origin="synthetic",
            query=query,
            rewrite=rewrite,
            failure=None,
            text=rewrite or query,
            hits=tuple(Hit(f"doc-{d:06d}", s) for d, s in zip(found, scores, strict=True)),
            grades=tuple(float(d == number) for d in found),
            metrics={
                "ndcg@3": 1 / log2(rank + 1) if rank <= 3 else 0.0,
                "mrr@10": 1 / rank if rank <= len(found) else 0.0,
                "recall@10": float(rank <= len(found)),
            },
        )

    def lines(self, folder: Path) -> Iterator[str]:
        """Of documents.jsonl; draws the pictures, which several pages share."""
        for number in range(self.documents):
            text = self.text(200)
            row = {"id": f"doc-{number:06d}", "title": self.text(4), "text": text}
            if number % 3 == 0:
                row["image"] = f"pages/{number % PICTURES}.webp"
                if number < PICTURES:
                    _draw(text, folder / row["image"])
            yield json.dumps(row)


def _draw(text: str, path: Path) -> None:
    from PIL import Image, ImageDraw

    page = Image.new("L", (300, 400), 255)
    lines = "\n".join(text[start : start + 45] for start in range(0, len(text), 45))
    ImageDraw.Draw(page).text((15, 15), lines, fill=0)
    page.save(path, quality=70, method=0)


def _prepare(folder: Path, queries: int) -> None:
    (folder / "pages").mkdir()
    world = World(queries)
    records = list(world.records())
    write_records(records, folder / "records.jsonl")
    write_result(summarise(records, samples=200), folder / "result.json")
    write_lines(world.lines(folder), folder / "documents.jsonl")


def _browse(page: Path) -> dict[str, float]:
    """Seconds: `sort` of the click, `all` since the page was opened."""
    with chromium() as browser:
        tab = browser.new_page()
        tab.add_init_script(CLICK)
        tab.goto(page.as_uri())
        found: dict[str, Any] = tab.wait_for_function("window.measured").json_value()
    assert found.pop("sorted") == "descending"
    return {name: milliseconds / 1000 for name, milliseconds in found.items()}


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="100 queries, no goal is judged")
    small = parser.parse_args().small
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _prepare(folder, 100 if small else 5_000)
        started = time.perf_counter()
        page = write(folder)
        written = time.perf_counter() - started
        size = page.stat().st_size / 1e6
        seconds = _browse(page)
    figures = {
        "written": Figure(written, 20, better="lower", unit="seconds"),
        "size": Figure(size, 20, better="lower", unit="MB"),
        "first_sort": Figure(seconds["all"], 1, better="lower", unit="seconds from opening"),
        "sort": Figure(seconds["sort"], 1, better="lower", unit="seconds"),
    }
    show(figures, small)


if __name__ == "__main__":
    main()
