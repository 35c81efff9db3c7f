"""Files of judgements alone, in the three forms in use; each is also written.

    .json           {"q1": {"doc": 2}}
    .tsv            BEIR: a header, then query-id, corpus-id, score, apart by tabs; or as TREC
    .trec, .qrels   TREC: query-id, 0, document-id, grade, apart by white space

Other endings are read by what the first line looks like. All may end in .gz.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from retrievers.atomic import write_file
from retrievers.identity import CollectionError, EmptyCollectionError, MissingFileError, nfc
from retrievers.loaders.fields import check_id
from retrievers.loaders.lines import HEADER, judgements, number, open_lines, whole_text
from retrievers.qrels import Judgements, Qrels


class _Anyone:
    """Every query may be judged: the file stands alone."""

    def __contains__(self, query: object) -> bool:
        return True


def read_qrels(path: str | Path) -> Qrels:
    """Read judgements: query id → document id → grade, ids in Unicode form NFC.

    Raises:
        MissingFileError: there is no such file.
        EmptyCollectionError: it holds no judgement.
        CollectionError: a malformed line or a pair judged twice; names file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"{path} is no file; give one of judgements (.json, .tsv, .trec)")
    qrels = _READERS[_form(path)](path)
    if not any(qrels.values()):
        raise EmptyCollectionError(f"{path} holds no judgement; add some, or give another file")
    return qrels


def write_qrels(qrels: Judgements, path: str | Path) -> None:
    """Write judgements in the form that the file's ending names (JSON for another ending).

    The file is there whole, or as it was; one that ends in .gz is compressed.

    Raises:
        CollectionError: TREC holds whole grades and no white space in ids, TSV no tabs in ids.
    """
    path = Path(path)
    plain = Path(path.name.removesuffix(".gz"))
    content = _WRITERS.get(plain.suffix, _json_text)(qrels).encode()
    write_file(path, content if plain.name == path.name else gzip.compress(content, mtime=0))


def _form(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    known = {".json": "json", ".tsv": "tsv", ".trec": "trec", ".qrels": "trec"}
    first = next((text for _, text in open_lines(path)), "").strip()
    if Path(name).suffix == ".tsv" and len(first.split("\t")) == 4:  # as MS MARCO's are
        return "trec"
    if Path(name).suffix in known:
        return known[Path(name).suffix]
    if first.startswith("{"):
        return "json"
    return "tsv" if "\t".join(HEADER) in first.lower() else "trec"


def _read_json(path: Path) -> Qrels:
    text = whole_text(path)
    try:
        given = json.loads(text, object_pairs_hook=_once)
    except CollectionError as error:
        raise CollectionError(f"{path}: {error}") from error
    except json.JSONDecodeError as error:
        raise CollectionError(
            f'{path}:{error.lineno}: no JSON ({error}); wanted: {{"query": {{"document": 2}}}}'
        ) from error
    except (ValueError, RecursionError) as error:
        raise CollectionError(
            f'{path}: no JSON ({error}); wanted: {{"query": {{"document": 2}}}}'
        ) from error
    if not isinstance(given, dict):
        raise CollectionError(
            f'{path}: {type(given).__name__}; wanted: {{"query": {{"document": 2}}}}'
        )
    return {nfc(query): _grades(query, grades, path) for query, grades in given.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; json alone would keep the last of two grades and say nothing."""
    row = {nfc(key): value for key, value in pairs}
    if len(row) < len(pairs):
        keys = [nfc(key) for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise CollectionError(f"{twice!r} is given twice in one object; keep one of the two")
    return row


def _grades(query: str, given: Any, path: Path) -> dict[str, float]:
    if not isinstance(given, dict):
        raise CollectionError(
            f'{path}: query {query!r} has {given!r:.80}; wanted its documents: {{"document": 2}}'
        )
    for document, grade in given.items():
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not isfinite(grade):
            raise CollectionError(
                f"{path}: query {query!r}, document {document!r}: grade {grade!r:.80} is not a "
                "finite number; write the grade, as in 1 or 0.5"
            )
    return {document: float(grade) for document, grade in given.items()}


def _read_tsv(path: Path) -> Qrels:
    return judgements(open_lines(path), str(path), _Anyone(), "the queries")


def _read_trec(path: Path) -> Qrels:
    qrels: Qrels = {}
    for line, text in open_lines(path):
        columns = text.split()
        if len(columns) != 4:
            raise CollectionError(
                f"{path}:{line}: {text[:80]!r} has {len(columns)} columns; wanted: query-id 0 "
                "document-id grade"
            )
        query, document = nfc(columns[0]), nfc(columns[2])
        if document in qrels.setdefault(query, {}):
            raise CollectionError(
                f"{path}:{line}: query {query!r} and document {document!r} were judged already; "
                "keep one of the two lines"
            )
        qrels[query][document] = number(columns[3], f"{path}:{line}")
    return qrels


def _json_text(qrels: Judgements) -> str:
    whole = {q: {d: _shortest(g) for d, g in grades.items()} for q, grades in qrels.items()}
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _tsv_text(qrels: Judgements) -> str:
    rows = ["\t".join(HEADER)]
    for query, document, grade in _rows(qrels):
        for identity in (query, document):
            check_id(identity, "judgements")
        rows.append(f"{query}\t{document}\t{_shortest(grade)}")
    return "\n".join(rows) + "\n"


def _trec_text(qrels: Judgements) -> str:
    rows = []
    for query, document, grade in _rows(qrels):
        if not float(grade).is_integer() or len(query.split()) != 1 or len(document.split()) != 1:
            raise CollectionError(
                f"query {query!r}, document {document!r}, grade {grade!r}: TREC holds whole grades "
                "and ids without white space; write .json or .tsv"
            )
        rows.append(f"{query} 0 {document} {int(grade)}")
    return "\n".join(rows) + "\n"


def _rows(qrels: Judgements) -> Iterator[tuple[str, str, float]]:
    for query, grades in qrels.items():
        yield from ((query, document, grade) for document, grade in grades.items())


def _shortest(grade: float) -> float:
    return int(grade) if float(grade).is_integer() else grade


_READERS: dict[str, Callable[[Path], Qrels]] = {
    "json": _read_json,
    "tsv": _read_tsv,
    "trec": _read_trec,
}
_WRITERS: dict[str, Callable[[Judgements], str]] = {
    ".json": _json_text,
    ".tsv": _tsv_text,
    ".trec": _trec_text,
    ".qrels": _trec_text,
}
