"""What the loader of folders of files is told, and what its readers give back."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from retrievers.chunks import check_sizes
from retrievers.identity import CollectionError
from retrievers.loaders.settings import LoaderSettings


class FilesSettings(LoaderSettings):
    """What is read, and how.

    Attributes:
        folder: all files in it and in folders inside it; hidden ones (".git") are passed over.
        queries: split → file of queries, see `retrievers.loaders.query_files`.
        qrels: split → file of judgements by document id, see `retrievers.loaders.judgements`.
            Queries of a split without judgements are listed, and none has a relevant document.
        pdf: a document for each of its "pages", or one for a "file".
        chunk_words: longest document in words; longer ones are cut. None: nothing is cut.
        chunk_overlap: words that a piece shares with the one before it.
        id, title, text: columns of tables (.jsonl, .csv, .tsv, .parquet); None or none: the first
            usual name that a row has, and rows without an id are named by their number.
        encoding: of Markdown, plain text.
        failed: what a file or row that cannot be read does: "stop", or "skip" to count it.
        max_pages: of one PDF; a longer one is such a file.
    """

    folder: Path
    queries: dict[str, Path] = Field(default={})
    qrels: dict[str, Path] = Field(default={})
    pdf: Literal["pages", "files"] = "pages"
    chunk_words: int | None = Field(default=None, ge=1)
    chunk_overlap: int = Field(default=0, ge=0)
    id: str | None = None
    title: str | None = None
    text: tuple[str, ...] = ()
    encoding: str = "utf-8"
    failed: Literal["stop", "skip"] = "stop"
    max_pages: int = Field(default=5000, ge=1)

    @model_validator(mode="after")
    def _sizes(self) -> "FilesSettings":
        check_sizes("chunk_words", self.chunk_words, self.chunk_overlap)
        return self


class FileFault(CollectionError):
    """A file that cannot be read. reason: short and the same for all of its kind, to count by."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Found:
    """A document in a file.

    Attributes:
        id: the file's path below the folder, with "/", and after "#" what part of it this is.
        place: for messages.
        image: where its pages are: `path`, and `page` for one of a PDF.
        facts: for the metadata.
    """

    id: str
    title: str
    text: str
    place: str
    image: dict[str, Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def part(self, what: str, number: int, **changes: Any) -> "Found":
        """A part of it: "a.pdf" → "a.pdf#page-3", and of that "a.pdf#page-3#chunk-1"."""
        facts = {**self.facts, what: number}
        return replace(self, id=f"{self.id}#{what}-{number}", facts=facts, **changes)
