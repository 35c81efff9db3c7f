"""The documents that a result speaks of, shortened, so that it is read without the collection."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from retrievers.collection import Collection
from rewards.metrics import Grades
from rewriter.records import Record, write_lines

SHOWN = 10  # hits of each query
CHARACTERS = 1_500  # of a document's text


def write_documents(
    records: Sequence[Record],
    qrels: Mapping[str, Grades],
    collection: Collection,
    path: Path,
    pictures: Mapping[str, str] | None = None,
) -> None:
    """Write {"id", "title", "text"} of every document among the first ten hits or the judgements.

    One that has a picture has its file under "image" too. Judged and found documents that the
    collection lacks are left out.
    """
    write_lines(_lines(records, qrels, collection, pictures or {}), path)


def _lines(
    records: Sequence[Record],
    qrels: Mapping[str, Grades],
    collection: Collection,
    pictures: Mapping[str, str],
) -> Iterator[str]:
    wanted = dict.fromkeys(document for grades in qrels.values() for document in grades)
    wanted |= dict.fromkeys(hit.id for record in records for hit in record.hits[:SHOWN])
    for identity in wanted:
        if identity in collection:
            found = collection.document(identity)
            row = {"id": identity, "title": found.title, "text": found.text[:CHARACTERS]}
            if identity in pictures:
                row["image"] = pictures[identity]
            yield json.dumps(row, ensure_ascii=False)
