"""Folders in the layout of BEIR, with what a test changes of them."""

from pathlib import Path
from typing import Any

from retrievers.collection import Collection

HEADER = "query-id\tcorpus-id\tscore\n"
GOOD = '{"_id": "d1", "text": "one"}\n'
FILES = {
    "corpus.jsonl": '{"_id": "d1", "text": "one"}\n{"_id": "d2", "title": null, "text": "two"}\n'
    '{"_id": "d3", "title": "Three", "text": "three", "metadata": {"url": "x"}, "more": 1}\n',
    "queries.jsonl": '{"_id": "q1", "text": "first"}\n{"_id": "q2", "text": "second", "metadata": '
    '{"origin": "synthetic", "source": "d2", "reference": "2", "tone": "curt"}}\n',
    "qrels/test.tsv": HEADER + "q1\td1\t1\nq1\td2\t0\n",
    "qrels/train.tsv": HEADER + "q2\td2\t1\n",
    "qrels/test.graded.tsv": HEADER + "q1\td3\t2\nq1\td1\t0.5\n",
}


def make(folder: Path, **changes: str | bytes | None) -> Path:
    """Write `FILES` with some changed; `qrels_test` stands for qrels/test.tsv, None removes."""
    names = {"corpus": "corpus.jsonl", "queries": "queries.jsonl"}
    changed = {names.get(k, k.replace("_", "/", 1) + ".tsv"): v for k, v in changes.items()}
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, content in {**FILES, **changed}.items():
        if content is not None:
            data = content if isinstance(content, bytes) else content.encode()
            (folder / name).write_bytes(data)
    return folder


def contents(collection: Collection) -> dict[str, Any]:
    """Everything that a folder holds of a collection."""
    return {
        "documents": [collection.document(identity) for identity in collection.ids],
        "fingerprint": collection.fingerprint,
        "queries": {split: collection.queries(split) for split in collection.splits},
        "qrels": {
            (split, kind): [(q, list(g.items())) for q, g in collection.qrels(split, kind).items()]
            for split in collection.splits
            for kind in collection.kinds(split)
        },
        "dangling": collection.dangling,
    }
