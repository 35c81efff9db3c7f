"""The file of conflicts between two annotators: written to be settled, read when it is.

query-id, corpus-id, first, second, settled     with that header, apart by tabs
"""

from collections.abc import Iterable
from pathlib import Path

from retrievers.atomic import write_file
from retrievers.identity import CollectionError, nfc
from retrievers.loaders.fields import check_id
from retrievers.loaders.judgements import read_qrels
from retrievers.loaders.lines import number, open_lines
from retrievers.qrels import Qrels

COLUMNS = ("query-id", "corpus-id", "first", "second", "settled")


def write_conflicts(
    conflicts: Iterable[tuple[str, str, float | None, float | None]], path: Path
) -> None:
    """Write (query, document, first's grade, second's grade); a grade that is None is left blank.

    The file is there whole, or as it was.

    Raises:
        CollectionError: an id holds a tab or another control character.
    """
    rows = ["\t".join(COLUMNS)]
    for query, document, first, second in conflicts:
        for identity in (query, document):
            check_id(identity, "conflicts")
        grades = ("" if grade is None else f"{grade:g}" for grade in (first, second))
        rows.append("\t".join((query, document, *grades, "")))
    write_file(path, ("\n".join(rows) + "\n").encode())


def read_settled(path: str | Path) -> Qrels:
    """Grades of a filled-in file of conflicts, rows that are still blank left out; or judgements.

    Raises:
        MissingFileError, EmptyCollectionError: as `read_qrels`.
        CollectionError: a malformed line, or a pair that is settled in two ways; names file and
            line.
    """
    path = Path(path)
    rows = list(open_lines(path)) if path.is_file() else []
    if not rows or tuple(rows[0][1].split("\t")) != COLUMNS:
        return read_qrels(path)
    settled: Qrels = {}
    for line, text in rows[1:]:
        columns = text.split("\t")
        if len(columns) != len(COLUMNS):
            raise CollectionError(
                f"{path}:{line}: {text[:80]!r} has {len(columns)} columns, wanted "
                f"{len(COLUMNS)}: {', '.join(COLUMNS)}"
            )
        if columns[-1].strip():
            grade = number(columns[-1], f"{path}:{line}")
            query, document = nfc(columns[0]), nfc(columns[1])
            known = settled.setdefault(query, {}).setdefault(document, grade)
            if known != grade:
                raise CollectionError(
                    f"{path}:{line}: query {query!r}, document {document!r}: settled as {grade:g} "
                    f"here and as {known:g} before; keep one of the two lines"
                )
    return settled
