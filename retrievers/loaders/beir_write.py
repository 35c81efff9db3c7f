"""Writing a collection as a folder in the layout of BEIR; see `retrievers.loaders.beir`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from retrievers.atomic import write_once
from retrievers.collection import Collection, Query
from retrievers.documents import values
from retrievers.identity import CollectionError
from retrievers.loaders.fields import check_id
from retrievers.loaders.lines import HEADER
from retrievers.qrels import SOURCE, Qrels


def write(collection: Collection, folder: str | Path) -> None:
    """Write corpus.jsonl, queries.jsonl and qrels/ so that `load(folder)` gives the same back.

    The folder appears whole or not at all: everything is written beside it, then renamed.

    Raises:
        CollectionError: the folder holds something already, an id holds a control character such
            as a tab or a line break, or a query has no judgement at all, for which the layout has
            no place.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CollectionError(f"{folder} is there already; choose another folder or remove it")
    write_once(folder, partial(_write_files, collection))


def _write_files(collection: Collection, folder: Path) -> None:
    _write_lines(folder / "corpus.jsonl", map(_json, _documents(collection)))
    queries = {q.id: q for split in collection.splits for q in collection.queries(split)}
    if not queries:
        return
    _write_lines(folder / "queries.jsonl", (_json(_query(query)) for query in queries.values()))
    (folder / "qrels").mkdir()
    for split in collection.splits:
        for kind in collection.kinds(split):
            stem = split if kind == SOURCE else f"{split}.{kind}"
            rows = _judgements(collection.qrels(split, kind))
            _write_lines(folder / "qrels" / f"{stem}.tsv", rows)


def _write_lines(path: Path, rows: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{row}\n" for row in rows)


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _documents(collection: Collection) -> Iterator[dict[str, Any]]:
    extra = ["metadata"] if "metadata" in collection.documents.column_names else []
    for identity, title, text, *rest in values(collection.documents, "id", "title", "text", *extra):
        check_id(identity, "documents")
        row = {"_id": identity, "title": title or "", "text": text or ""}
        yield row | ({"metadata": json.loads(rest[0])} if rest and rest[0] else {})


def _query(query: Query) -> dict[str, Any]:
    fields = {"origin": query.origin, "source": query.source, "reference": query.reference}
    known = {key: value for key, value in fields.items() if value is not None}
    return {"_id": query.id, "text": query.text, "metadata": {**query.metadata, **known}}


def _judgements(qrels: Qrels) -> Iterator[str]:
    yield "\t".join(HEADER)
    for query, grades in qrels.items():
        if not grades:
            raise CollectionError(
                f"query {query!r} has no judgement, and the layout has no place for it; judge a "
                f"document with grade 0 or leave the query out"
            )
        for document, grade in grades.items():
            for identity in (query, document):
                check_id(identity, "judgements")
            yield f"{query}\t{document}\t{int(grade) if grade.is_integer() else repr(grade)}"
