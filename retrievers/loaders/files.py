"""A folder of your own files: PDF, Markdown, HTML, text, JSON lines, CSV, TSV, Parquet, images.

The id of a document is the file's path below the folder, and what part of it it is:

    report.pdf#page-3    notes/setup.md    faq.csv#row-12    notes/setup.md#chunk-2

A row of a table that has an id of its own is FILE#ID. Page images are left in their files, and
drawn by whoever looks at them, at the resolution that is set there (`pages.dpi`).
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from retrievers.chunks import Chunker, words
from retrievers.collection import Collection
from retrievers.identity import CollectionError, EmptyCollectionError, MissingFileError
from retrievers.loaders.fields import as_json
from retrievers.loaders.file_settings import FileFault, FilesSettings, Found
from retrievers.loaders.left_out import leave_out
from retrievers.loaders.page_files import image, pdf
from retrievers.loaders.storing import places, store
from retrievers.loaders.table_files import table
from retrievers.loaders.text_files import html, markdown, plain_text
from retrievers.loaders.trec import read_splits
from retrievers.pages.images import SUFFIXES

Reader: TypeAlias = Callable[[Path, str, FilesSettings], Iterator[Found | FileFault]]

# Ending → what reads it. A new kind of file is a function and a line.
READERS: dict[str, Reader] = {
    ".pdf": pdf,
    ".md": markdown,
    ".markdown": markdown,
    ".html": html,
    ".htm": html,
    ".txt": plain_text,
    ".text": plain_text,
    ".rst": plain_text,
    ".jsonl": table,
    ".csv": table,
    ".tsv": table,
    ".parquet": table,
    **dict.fromkeys(SUFFIXES, image),
}
PACKED = (".jsonl", ".csv", ".tsv")  # these also end in .gz


def load(settings: FilesSettings) -> Collection:
    """Load a collection. Files of a kind that is not read are counted.

    Raises:
        MissingFileError: no such folder, or a file that the settings name is not there.
        EmptyCollectionError: no document in it.
        FileFault: a file that cannot be read; names it, and the line where there is one.
        CollectionError: a malformed row, or an id that cannot be used.
    """
    known, unknown = _files(settings)
    if not known:
        raise EmptyCollectionError(
            f"{settings.folder} holds no file that is read; those are {', '.join(READERS)}"
        )
    options = settings.model_dump(mode="json", exclude={"name", "queries", "qrels"})
    stored, left_out = store(
        known, options, lambda count: _rows(known, settings, count), images=_has_pages(known)
    )
    queries, qrels = read_splits(settings.queries, settings.qrels)
    return Collection(
        settings.name or settings.folder.resolve().name,
        stored,
        queries,
        qrels,
        left_out={**left_out, **unknown},
        where=places(stored),
    )


def _files(settings: FilesSettings) -> tuple[list[Path], Counter[str]]:
    """Files that are read, in the order of their paths, and counts of the others."""
    folder = settings.folder
    if not folder.is_dir():
        raise MissingFileError(f"{folder} is no folder; give the one with your files")
    aside = {path.resolve() for path in (*settings.queries.values(), *settings.qrels.values())}
    known, unknown = [], Counter[str]()
    for path in sorted(_below(folder), key=lambda path: path.relative_to(folder).parts):
        if not path.is_file():
            what = "link to a folder, not followed" if path.is_dir() else "link to nothing"
            leave_out(unknown, what, path)
        elif path.resolve() in aside:
            continue
        elif ending(path) in READERS:
            known.append(path)
        else:
            unknown[f"file of a kind that is not read ({path.suffix.lower() or 'no ending'})"] += 1
    return known, unknown


def _below(folder: Path) -> Iterator[Path]:
    """Files and links in a folder and those inside it; hidden ones are passed over.

    Raises:
        CollectionError: a folder that may not be looked into.
    """

    def stop(error: OSError) -> None:
        raise CollectionError(
            f"{error.filename}: {error.strerror}; make the folder readable, or move it away"
        ) from error

    for place, folders, names in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if Path(place, name).is_symlink()]
        shown = [name for name in names if not name.startswith(".")]
        yield from (Path(place, name) for name in (*shown, *links))


def ending(path: Path) -> str:
    """The key of `READERS` for a file, if there is one."""
    suffix = path.suffix.lower()
    if suffix == ".gz" and Path(path.stem).suffix.lower() in PACKED:
        return Path(path.stem).suffix.lower()
    return suffix


def _has_pages(files: list[Path]) -> bool:
    return any(READERS[ending(path)] in (pdf, image) for path in files)


def _rows(
    files: list[Path], settings: FilesSettings, left_out: Counter[str]
) -> Iterator[dict[str, Any]]:
    chunker = settings.chunk_words and Chunker(words, settings.chunk_words, settings.chunk_overlap)
    for path in files:
        for found in _read(path, settings, left_out):
            for one in _chunks(found, chunker) if chunker else [found]:
                yield {
                    "id": one.id,
                    "title": one.title,
                    "text": one.text,
                    "metadata": as_json(one.facts),
                    "place": one.place,
                    "image": one.image,
                }


def _read(path: Path, settings: FilesSettings, left_out: Counter[str]) -> Iterator[Found]:
    name = path.relative_to(settings.folder).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise CollectionError(f"{path!r}: a name that is not UTF-8; rename the file") from error
    try:
        for found in READERS[ending(path)](path, name, settings):
            if not isinstance(found, FileFault):
                yield found
            elif settings.failed == "stop":
                raise found
            else:
                leave_out(left_out, found.reason, found)
    except FileFault as fault:
        if settings.failed == "stop":
            raise
        leave_out(left_out, fault.reason, fault)


def _chunks(found: Found, chunker: Chunker) -> Iterator[Found]:
    """Pieces are of text: the page's image would be the same in each."""
    if not found.text.strip():
        yield found
        return
    for number, piece in enumerate(chunker(found.text), 1):
        yield found.part("chunk", number, text=piece, image=None)
