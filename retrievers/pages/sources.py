"""The pages of a collection: those it has, or its texts rendered."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from retrievers.base import Documents, extra_version
from retrievers.pages.digests import FileDigests
from retrievers.pages.images import (
    PDF,
    files_at,
    folder_files,
    is_pdf,
    pages_of_bytes,
    pages_of_file,
)
from retrievers.pages.page import Page, PageError, PageSettings
from retrievers.pages.pdf import EXTRA, pdf_pages
from retrievers.pages.rendering import missing_characters, render_pages
from retrievers.pages.style import PageStyle

if TYPE_CHECKING:
    from PIL.Image import Image

COLUMNS = ("images", "image")
# What a cell of such a column holds: a path, a file's bytes, either as the struct that the datasets
# library writes (with `page`: that page of a PDF, the first is 1), or a list of these.
Cell: TypeAlias = "str | bytes | Mapping[str, Any] | list[Any] | None"


class PageSource(Protocol):
    """Where the pages of a collection's documents come from.

    Attributes:
        missing: characters met so far that the font of rendered pages cannot draw.
    """

    missing: set[str]

    def identity(self) -> dict[str, Any]:
        """JSON values that every page depends on."""

    def documents(self) -> Iterator[Iterable[Page]]:
        """The pages of each document in corpus order; nothing is drawn before it is asked for."""


class TextPages:
    """Pages rendered from title and text.

    Args:
        collection: the documents.
        style: of the pages.
    """

    def __init__(self, collection: Documents, style: PageStyle) -> None:
        self._collection = collection
        self._style = style
        self.missing: set[str] = set()

    def identity(self) -> dict[str, Any]:
        """See `PageSource`; the texts are in the collection's own fingerprint."""
        return {"source": "text", "style": self._style.identity()}

    def documents(self) -> Iterator[Iterable[Page]]:
        """See `PageSource`."""
        for title, text in self._collection.texts():
            yield self._pages(title, text)

    def _pages(self, title: str, text: str) -> Iterator[Page]:
        self.missing |= missing_characters(title + text, self._style)
        for number, image in enumerate(render_pages(title, text, self._style), 1):
            yield Page(number, image)


class ImagePages:
    """Pages that the collection has, in a column of its documents.

    Args:
        table: the documents, Arrow.
        column: a text column of paths of images, PDFs or folders of them; or their bytes; or
            structs of `bytes` and `path`, with `page` for one page of a PDF; or lists of any of
            these. A null is no page.
        settings: resolution and limits.
        digests: of the files; a file whose digest is remembered there is not read for `identity`.
    """

    def __init__(
        self, table: Any, column: str, settings: PageSettings, digests: FileDigests
    ) -> None:
        self.missing: set[str] = set()
        self._ids = table.column("id")
        self._cells = table.column(column)
        self._column = column
        self._settings = settings
        self._digests = digests

    def identity(self) -> dict[str, Any]:
        """See `PageSource`; every file is read that is new or was changed."""
        digest = hashlib.sha256()
        pdf = False
        for row in range(len(self._cells)):
            for kind, part in _files(self._cells[row].as_py(), self._name(row), self._digests):
                pdf |= kind == PDF
                digest.update(part)
            digest.update(b"document")
        self._digests.keep()
        drawn = {"pypdfium2": extra_version("pypdfium2", EXTRA)} if pdf else {}
        # Neither of `failed` and `max_pages` changes a page that is there: see `PageSettings`.
        chosen = self._settings.model_dump(mode="json", include={"dpi", "max_side"})
        return {
            "source": "images",
            "sha256": digest.hexdigest(),
            **chosen,
            "versions": {"pillow": version("pillow"), **drawn},
        }

    def documents(self) -> Iterator[Iterable[Page]]:
        """See `PageSource`."""
        for row in range(len(self._cells)):
            yield self._pages(row)

    def _pages(self, row: int) -> Iterator[Page]:
        found = _images(self._cells[row].as_py(), self._name(row), self._settings)
        for number, (file, image) in enumerate(found, 1):
            if not isinstance(image, PageError):
                yield Page(number, image, file=file)
            elif self._settings.failed == "stop":
                raise image
            else:
                yield Page(number, None, failed=True, file=file)

    def _name(self, row: int) -> str:
        return f"document {self._ids[row].as_py()!r}, column {self._column!r}"


def page_source(
    collection: Documents, settings: PageSettings, remembered: Path | None = None
) -> PageSource:
    """The pages that the settings ask for.

    Args:
        collection: the documents.
        settings: where their pages are.
        remembered: where checksums of image files are kept; see `FileDigests`.

    Raises:
        PageError: the collection's own images are asked for, and it has none.
    """
    table = getattr(collection, "documents", None)
    columns = [name for name in COLUMNS if name in getattr(table, "column_names", ())]
    if settings.source == "text" or (settings.source == "auto" and not columns):
        return TextPages(collection, settings.style)
    if not columns:
        raise PageError(
            "pages.source is 'images', and the documents have neither a column 'images' nor "
            "'image'; add one, or choose 'text' to have their texts rendered"
        )
    return ImagePages(table, columns[0], settings, FileDigests(remembered))


def _images(
    cell: Cell, name: str, settings: PageSettings
) -> Iterator[tuple[str, "Image | PageError | None"]]:
    """(file, or name of the cell that holds it; page) of each page."""
    if isinstance(cell, list):
        for part in cell:
            yield from _images(part, name, settings)
    elif isinstance(cell, Mapping):
        inner, page = cell.get("bytes"), cell.get("page")
        inner = cell.get("path") if inner is None else inner
        if page is None or not isinstance(inner, str | bytes):
            yield from _images(inner, name, settings)
            return
        content, called = (inner, name) if isinstance(inner, bytes) else (Path(inner), inner)
        yield from ((called, image) for image in pdf_pages(content, called, settings, page))
    elif isinstance(cell, bytes):
        yield from ((name, image) for image in pages_of_bytes(cell, name, settings))
    elif isinstance(cell, str):
        for file in files_at(Path(cell)):
            yield from ((str(file), image) for image in pages_of_file(file, settings))
    elif cell is not None:
        raise PageError(f"{name}: {cell!r:.60} is neither a path nor a file's bytes")


def _files(cell: Cell, name: str, digests: FileDigests) -> Iterator[tuple[str, bytes]]:
    """(suffix, digest) of each file behind a cell."""
    if isinstance(cell, list):
        for part in cell:
            yield from _files(part, name, digests)
    elif isinstance(cell, Mapping):
        inner, page = cell.get("bytes"), cell.get("page")
        inner = cell.get("path") if inner is None else inner
        for kind, digest in _files(inner, name, digests):
            yield kind, digest if page is None else digest + page.to_bytes(4, "big", signed=True)
    elif isinstance(cell, bytes):
        yield PDF if is_pdf(cell) else "", hashlib.sha256(cell).digest()
    elif isinstance(cell, str):
        path = Path(cell)
        if not path.exists():
            raise PageError(f"{name}: {cell}: no such file")
        for file in folder_files(path) if path.is_dir() else [path]:
            yield file.suffix.lower(), digests.of(file)
