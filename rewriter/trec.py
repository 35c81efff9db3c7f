"""Runs and judgements as TREC files, so that any outside tool can check the figures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from rewards.metrics import Grades
from rewriter.records import Record, by, check_distinct, write_lines

# Columns are parted by white space; % is encoded too, or "a%20b" could mean two ids.
_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f]")


class TrecError(ValueError):
    """Something that the TREC format cannot hold."""


def write_trec(records: Sequence[Record], qrels: Mapping[str, Grades], folder: Path) -> list[Path]:
    """Write `runs/BACKEND.SYSTEM.trec` for every pair, and `qrels.trec`, each whole or not at all.

    A tool that counts every judged query, as ir_measures does and trec_eval with `-c`, gets the
    means of `summarise` from them. To that end:

    - scores are −rank: every tool sees our one ranking, whatever its rule for ties;
    - queries without a relevant document are in neither file, because tools would count them as 0;
    - grades below 0 are written as 0: neither is relevant, and trec_eval's library (pytrec_eval)
      takes the process down on a query with none but negative grades;
    - a query whose search failed has judgements but no line in the run: tools count it as 0, we do
      not count it;
    - of several samples the first is in `BACKEND.SYSTEM.trec`, the others are in
      `BACKEND.SYSTEM.sample2.trec` and so on: our mean is that of the files' means;
    - white space and % in ids are percent-encoded, alike in all files; `urllib.parse.unquote`
      gives the id back.

    Args:
        records: of one split and run.
        qrels: query id → document id → grade, as given to `evaluate`.
        folder: made if it is not there; other files in it stay.

    Returns:
        The files written, `qrels.trec` last.

    Raises:
        TrecError: a grade is no whole number, or a query with metrics has nothing relevant in
            `qrels`. Nothing is written then.
        RecordError: a (system, backend, query) is there twice.
    """
    check_distinct(records)
    folder = Path(folder)
    judged = list(_qrels_lines(records, qrels))
    paths = []
    for backend, found in by(records, "backend").items():
        for system, rows in by(found, "system").items():
            for number in range(max(1, *(len(row.samples) for row in rows))):
                more = f".sample{number + 1}" if number else ""
                paths.append(folder / "runs" / f"{backend}.{system}{more}.trec")
                write_lines(_run_lines(rows, number), paths[-1])
    write_lines(judged, folder / "qrels.trec")
    return [*paths, folder / "qrels.trec"]


def _run_lines(records: Sequence[Record], sample: int) -> Iterator[str]:
    for record in records:
        if record.excluded:
            continue
        sampled = record.samples[sample].hits if record.samples else None
        found = [hit.id for hit in record.hits] if sampled is None else sampled
        # A document that an engine repeats counts at its first place only, as in our measures.
        for rank, document in enumerate(dict.fromkeys(found), 1):
            columns = (_encoded(record.query_id), "Q0", _encoded(document), rank, -rank)
            yield " ".join(map(str, (*columns, record.system)))


def _qrels_lines(records: Sequence[Record], qrels: Mapping[str, Grades]) -> Iterator[str]:
    for query in dict.fromkeys(record.query_id for record in records if not record.excluded):
        grades = qrels.get(query, {})
        if not any(grade > 0 for grade in grades.values()):
            raise TrecError(
                f"query {query!r} has metrics, but no relevant document in the qrels; give those "
                "that it was evaluated with"
            )
        for document, grade in grades.items():
            whole = _whole(query, document, max(0.0, grade))
            yield f"{_encoded(query)} 0 {_encoded(document)} {whole}"


def _whole(query: str, document: str, grade: float) -> int:
    if grade == int(grade):
        return int(grade)
    raise TrecError(
        f"query {query!r}, document {document!r}, grade {grade!r}: TREC qrels hold whole numbers "
        "only, and rounding would change the figures; scale the grades, or do without these files"
    )


def _encoded(identity: str) -> str:
    return _UNSAFE.sub(lambda found: quote(found.group(), safe=""), identity)
