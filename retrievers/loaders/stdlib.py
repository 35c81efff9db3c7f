"""The demo collection: docstrings of the running Python's standard library, and messages that ask
for them without their names.

The documents follow the Python version. Questions whose document this version lacks are left out
and counted.
"""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from retrievers.collection import Collection, Query
from retrievers.demo.stdlib import documents
from retrievers.documents import build_table
from retrievers.loaders.fields import optional_field, text_field
from retrievers.loaders.lines import json_objects, judgements, lines
from retrievers.qrels import SOURCE, Qrels

SPLITS = ("train", "validation", "test")


def load(questions: Path | None = None) -> Collection:
    """Load the demo collection.

    questions: folder with {train,validation,test}.jsonl and test.graded.tsv, by default the one in
    this package. A line: {"id": "test-001", "doc": "collections.deque", "text": "…",
    "reference": "…"}, the reference being optional.

    Raises:
        RuntimeError: the documents could not be collected.
        CollectionError: a malformed line of the questions.
    """
    folder = questions or files("retrievers") / "demo" / "questions"
    rows = documents()
    present = {row["id"] for row in rows}
    asked = {split: list(_questions(folder, split)) for split in SPLITS}
    kept = {split: [q for q in asked[split] if q.source in present] for split in SPLITS}
    qrels = {split: {SOURCE: _sources(kept[split])} for split in SPLITS}
    graded = _graded(folder, asked["test"])
    judged = {query: graded[query] for query in qrels["test"][SOURCE] if query in graded}
    qrels["test"]["graded"] = _restricted(judged, present)
    left_out = {
        "question without its document": _size(asked.values()) - _size(kept.values()),
        "judgement without its document": sum(
            doc not in present for grades in judged.values() for doc in grades
        ),
    }
    return Collection(
        "stdlib",
        build_table(rows),
        [query for split in SPLITS for query in kept[split]],
        qrels,
        left_out={reason: count for reason, count in left_out.items() if count},
    )


def _sources(queries: Iterable[Query]) -> Qrels:
    return {query.id: {query.source: 1.0} for query in queries if query.source is not None}


def _graded(folder: Traversable, queries: Iterable[Query]) -> Qrels:
    name = "test.graded.tsv"
    with folder.joinpath(name).open("rb") as stream:
        return judgements(lines(stream, name), name, {q.id for q in queries}, "test.jsonl")


def _restricted(qrels: Qrels, present: set[str]) -> Qrels:
    kept = {q: {d: g for d, g in grades.items() if d in present} for q, grades in qrels.items()}
    return {query: grades for query, grades in kept.items() if grades}


def _size(splits: Iterable[list[Query]]) -> int:
    return sum(map(len, splits))


def _questions(folder: Traversable, split: str) -> Iterator[Query]:
    name = f"{split}.jsonl"
    with folder.joinpath(name).open("rb") as stream:
        for number, row in json_objects(lines(stream, name), name):
            where = f"{name}:{number}"
            yield Query(
                id=text_field(row, "id", where),
                text=text_field(row, "text", where),
                origin="synthetic",
                source=text_field(row, "doc", where),
                reference=optional_field(row, "reference", where),
            )
