"""Which loader reads a folder, by what lies in it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from retrievers.identity import CollectionError, MissingFileError
from retrievers.loaders.files import READERS, ending
from retrievers.loaders.kopub import CORPUS, QA
from retrievers.loaders.rows import TABLES, column_names, table_kind
from retrievers.loaders.vidore import V1_COLUMNS

JUDGED = (".json", ".tsv", ".trec", ".qrels", ".txt")
ASKED = (".jsonl", ".tsv", ".txt", ".xml", ".sgml", ".trec")
SPLITS = ("train", "validation", "test")
MSMARCO_COLUMNS = {"query", "query_id", "passages"}


class Guess(NamedTuple):
    """A loader, its options, and what in the folder speaks for it."""

    loader: str
    options: dict[str, Any]
    reason: str


def guess(folder: Path) -> Guess:
    """The loader of a folder.

    Raises:
        MissingFileError: no such folder.
        CollectionError: no loader reads what lies there.
    """
    if not folder.is_dir():
        raise MissingFileError(f"{folder} is no folder; give one that holds a collection")
    for one in (_beir, _kopub, _vidore, _table, _trec, _files):
        if found := one(folder):
            return found
    raise CollectionError(f"{folder} holds no file that a loader reads; name one with --loader")


def _beir(folder: Path) -> Guess | None:
    for name in ("corpus.jsonl", "corpus.jsonl.gz"):
        if (folder / name).is_file():
            return Guess("beir", {"folder": folder}, name)
    return None


def _kopub(folder: Path) -> Guess | None:
    if (folder / CORPUS).is_dir() and (folder / QA).is_dir():
        return Guess("kopub", {"folder": str(folder), "task": "image"}, f"{CORPUS}/ and {QA}/")
    return None


def _vidore(folder: Path) -> Guess | None:
    if all((folder / part).is_dir() for part in ("corpus", "queries", "qrels")):
        if any(_tables(folder / "qrels", "parquet")):
            return Guess(
                "vidore",
                {"folders": [str(folder)], "split": _split(folder / "corpus")},
                "corpus/, queries/ and qrels/ of Parquet files",
            )
        if any(_tables(folder / "corpus", "parquet")):
            return Guess("beir", {"folder": folder}, "corpus/ and queries/ of Parquet files")
    return None


def _table(folder: Path) -> Guess | None:
    """Data sets that are one table, recognised by its columns."""
    for place in [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]:
        first = next(_tables(place, *TABLES), None)
        columns = set(column_names(first)) if first else set()
        if columns >= V1_COLUMNS and place.name in (folder.name, "data"):
            options = {"folders": [str(folder)], "split": _split(place)}
            return Guess("vidore", options, f"the columns of {first}")
        if columns >= MSMARCO_COLUMNS and place != folder:
            taken = {
                "folder": str(folder),
                "config": place.name,
                "splits": {_split(place): 1.0},
                "documents": "all",
            }
            return Guess("msmarco", taken, f"the columns of {first}")
    return None


def _split(folder: Path) -> str:
    """The last of the usual splits that the folder has files of: test before train."""
    names = [path.name for path in folder.iterdir()]
    return next((s for s in reversed(SPLITS) if any(n.startswith(s) for n in names)), "test")


def _tables(folder: Path, *kinds: str) -> Iterator[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return (path for path in files if table_kind(path) in kinds)


def _trec(folder: Path) -> Guess | None:
    """Topics and judgements by their names, and a folder of documents beside them."""
    topics = _by_split(folder, lambda name: name.startswith("topics"))
    places = (folder / name for name in ("corpus", "collection", "docs"))
    corpus = next((place for place in places if place.is_dir()), None)
    if not topics or corpus is None:
        return None
    qrels = _by_split(folder, lambda name: "qrels" in name)
    judged = {split: path for split, path in qrels.items() if split in topics}
    options = {"corpus": corpus, "topics": topics, "qrels": judged}
    return Guess("trec", options, f"topics* beside {corpus.name}/")


def _files(folder: Path) -> Guess | None:
    if not any(ending(path) in READERS for path in folder.rglob("*") if path.is_file()):
        return None
    queries = _by_split(folder, lambda n: n.startswith("queries") and n.endswith(ASKED))
    qrels = _by_split(folder, lambda n: n.startswith("qrels") and n.endswith(JUDGED))
    judged = {split: path for split, path in qrels.items() if split in queries}
    options = {"folder": folder, "queries": queries, "qrels": judged, "failed": "skip"}
    return Guess("files", options, "files of documents")


def _by_split(folder: Path, wanted: Callable[[str], bool]) -> dict[str, Path]:
    """Split → file; a name that says no split is that of "test"."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    found: dict[str, Path] = {}
    for path in files:
        name = path.name.lower()
        if wanted(name):
            split = next(
                (s for s in SPLITS if s in name), "validation" if "dev" in name else "test"
            )
            found.setdefault(split, path)
    return found
