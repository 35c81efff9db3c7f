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
    names = ("corpus.jsonl", "corpus.jsonl.gz")
    corpus = next((folder / name for name in names if (folder / name).is_file()), None)
    if corpus is None:
        return None
    if not (folder / "qrels").is_dir():
        topics, qrels = _asked_and_judged(folder, _is_asked, _is_judged)
        # Queries that lie there in another form than BEIR's would be passed over.
        if topics and (qrels or not any(folder.glob("queries.jsonl*"))):
            options = {"corpus": corpus, "topics": topics, "qrels": qrels}
            options["name"] = folder.resolve().name
            return Guess("trec", options, f"queries beside {corpus.name}, and no folder qrels/")
    return Guess("beir", {"folder": folder}, corpus.name)


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
    places = (folder / name for name in ("corpus", "collection", "docs"))
    corpus = next((place for place in places if place.is_dir()), None)
    if corpus is None or not any(_named(folder, _is_topics)):
        return None
    topics, qrels = _asked_and_judged(folder, _is_topics, lambda name: "qrels" in name)
    options = {"corpus": corpus, "topics": topics, "qrels": qrels}
    return Guess("trec", options, f"topics* beside {corpus.name}/")


def _files(folder: Path) -> Guess | None:
    if not any(ending(path) in READERS for path in folder.rglob("*") if path.is_file()):
        return None
    topics, qrels = _asked_and_judged(folder, _is_asked, _is_judged)
    options = {"folder": folder, "queries": topics, "qrels": qrels, "failed": "skip"}
    return Guess("files", options, "files of documents")


def _is_topics(name: str) -> bool:
    return name.startswith("topics")


def _is_asked(name: str) -> bool:
    return name.startswith("queries") and name.removesuffix(".gz").endswith(ASKED)


def _is_judged(name: str) -> bool:
    return name.startswith("qrels") and name.removesuffix(".gz").endswith(JUDGED)


def _named(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return (path for path in files if wanted(path.name.lower()))


def _asked_and_judged(
    folder: Path, asked: Callable[[str], bool], judged: Callable[[str], bool]
) -> tuple[dict[str, Path], dict[str, Path]]:
    """Files of queries and of judgements by split, as their names say.

    Queries whose name says no split are those of every split that has judgements and no queries of
    its own; where there are none, of "test".

    Raises:
        CollectionError: a file that fits nowhere, which would be passed over or taken for a
            document.
    """
    queries, qrels = (_by_split(_named(folder, wanted)) for wanted in (asked, judged))
    if None in qrels:
        _only(qrels, "test", qrels.pop(None))
    if None in queries:
        of_all = queries.pop(None)
        for split in [split for split in qrels if split not in queries] or ["test"]:
            _only(queries, split, of_all)
    if alone := [path for split, path in qrels.items() if split not in queries]:
        raise CollectionError(
            f"{alone[0]} judges queries, and no file of them is beside it; add queries.jsonl (or "
            ".tsv, .txt), or rename this"
        )
    return _splits(queries), _splits(qrels)


def _by_split(files: Iterator[Path]) -> dict[str | None, Path]:
    """Split → file; None for a name that says no split."""
    found: dict[str | None, Path] = {}
    for path in files:
        name = path.name.lower()
        said = next((split for split in SPLITS if split in name), None)
        _only(found, said or ("validation" if "dev" in name else None), path)
    return found


def _only(found: dict[str | None, Path], split: str | None, path: Path) -> None:
    if found.setdefault(split, path) != path:
        raise CollectionError(
            f"{found[split]} and {path} are both for one split ({split or 'unnamed'}); rename one, "
            "or name the files in a configuration, as in configs/collections/, and give --config"
        )


def _splits(found: dict[str | None, Path]) -> dict[str, Path]:
    return {split: path for split, path in found.items() if split is not None}
