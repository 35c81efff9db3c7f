"""A small result folder, worked out by hand, for the tests of the report."""

import gzip
import json
import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import Hit
from rewriter.evaluation import summarise, write_result
from rewriter.records import Record, write_lines, write_records
from rewriter.report import write

NDCG = {0: 0.0, 1: 1.0, 2: 0.6309297535714575, 3: 0.5, 4: 0.0}  # by rank of the one relevant
MALICE = '<script>alert(1)</script> & "quotes" </script><img src=x onerror=alert(2)>'

# Query → text, the trained rewrite (None: it failed), rank of the relevant document in four hits
# (0: not among them) with raw and with trained.
QUERIES: dict[str, tuple[str, str | None, int, int]] = {
    "q1": ("how do I list all weekdays of a month, please", "list all days of a month", 2, 1),
    "q2": ("who closes the pool", "closes pool", 1, 0),
    "q3": (MALICE, None, 0, 0),
    "q4": ("서울시 예산 공고는 언제 나오나요", "서울시 예산 공고 일정", 3, 2),
}


def record(
    system: str, query: str, text: str, rewrite: str | None, rank: int, backend: str = "lexical"
) -> Record:
    """One query with four hits, `doc-QUERY` at the rank."""
    ids = [f"other-{query}-{place}" for place in range(1, 5)]
    if rank:
        ids[rank - 1] = f"doc-{query}"
    failed = system != "raw" and rewrite is None
    return Record(
        system=system,
        backend=backend,
        split="test",
        query_id=query,
        origin="human" if query == "q2" else "synthetic",
        query=text,
        rewrite=rewrite,
        failure="no_answer_tag" if failed else None,
        text=rewrite or text,
        hits=tuple(Hit(identity, 4.0 - place) for place, identity in enumerate(ids)),
        grades=tuple(float(identity == f"doc-{query}") for identity in ids),
        metrics={"ndcg@3": NDCG[rank], "mrr@10": 1 / rank if rank else 0.0},
        source=f"doc-{query}",
    )


def records(fillers: int = 0, backends: Sequence[str] = ("lexical", "semantic")) -> list[Record]:
    """Those of `QUERIES`, one without a relevant document, and fillers that do not change."""
    queries = QUERIES | {
        f"z{n:03}": (f"filler number {n:03}", f"filler {n:03}", 2, 2) for n in range(fillers)
    }
    rows = []
    for backend in backends:
        for query, (text, rewrite, before, after) in queries.items():
            rows.append(record("raw", query, text, None, before, backend))
            rows.append(record("trained", query, text, rewrite, after, backend))
        for system, rewrite in (("raw", None), ("trained", "nothing")):
            row = record(system, "excluded", "nothing helps", rewrite, 0, backend)
            rows.append(replace(row, metrics={}, source=None))
    return rows


def fill(folder: Path, fillers: int = 0, backends: Sequence[str] = ("lexical", "semantic")) -> Path:
    """Write records.jsonl, result.json, documents.jsonl and qrels.trec."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = records(fillers, backends)
    write_records(rows, folder / "records.jsonl")
    write_result(summarise(rows, samples=200), folder / "result.json")
    documents = [
        {"id": f"doc-{query}", "title": f"Title of {query} <b>", "text": f"Text of {query}. " * 30}
        for query in QUERIES
    ]
    write_lines(map(json.dumps, documents), folder / "documents.jsonl")
    write_lines([f"{query} 0 doc-{query} 1" for query in QUERIES], folder / "qrels.trec")
    return folder


def add_training(folder: Path) -> None:
    """The logs of a training of four steps."""
    steps = [
        {
            "step": step,
            "rewards/lexical_ndcg@3/mean": step / 4,
            "completions/mean_length": 9.0,
            "groups/equal_reward": 0.25,
        }
        for step in range(1, 5)
    ]
    held_out = [{"step": 0, "eval_lexical_ndcg@3": 0.25}, {"step": 4, "eval_lexical_ndcg@3": 0.5}]
    write_lines(map(json.dumps, [held_out[0], *steps, held_out[1]]), folder / "metrics.jsonl")
    write_lines([json.dumps({"step": 0, "n": 80})], folder / "evaluations.jsonl")


def add_matrix(folder: Path) -> None:
    """Two by two, one cell not evaluated."""
    values = [[[0.8, 0.7, 0.9], None], [[0.4, 0.3, 0.5], [0.6, 0.5, 0.7]]]
    names = ["lexical", "semantic"]
    matrix = {"rows": names, "columns": names, "values": values}
    matrix["diagonal"] = [[name, name] for name in names]
    write_lines([json.dumps(matrix)], folder / "matrix.json")


def add_pages(folder: Path) -> None:
    """A page's picture for every document of documents.jsonl."""
    from PIL import Image

    rows = [json.loads(line) for line in (folder / "documents.jsonl").read_text().splitlines()]
    (folder / "pages").mkdir()
    for number, row in enumerate(rows):
        row["image"] = f"pages/{number}.png"
        Image.new("RGB", (300, 400), (40 * number, 90, 90)).save(folder / row["image"])
    write_lines(map(json.dumps, rows), folder / "documents.jsonl")


def unpacked(text: str) -> Any:
    return json.loads(gzip.decompress(b64decode(text)))


def data(page: str, name: str) -> Any:
    found = re.search(rf'id="data-{name}">([A-Za-z0-9+/=]*)<', page)
    assert found is not None
    return unpacked(found.group(1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = fill(tmp_path_factory.mktemp("runs") / "a <b>bold name")
    add_training(place)
    add_matrix(place)
    write_lines([json.dumps({"versions": {"torch": "1 </pre>"}})], place / "facts.json")
    write(place)
    return place


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")
