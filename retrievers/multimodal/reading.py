"""Images of pages → vectors; a page that the model refuses is found, and named or left out."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.multimodal.encoder import ImageRefused, PageEncoder
from retrievers.pages.page import Page, PageError
from retrievers.semantic.stored import DType, as_float32, as_stored
from retrievers.semantic.vectors import VectorError

if TYPE_CHECKING:
    from PIL.Image import Image

Batch = tuple[int, list[Iterable[Page]]]  # position of the first document, the pages of each


class Seen(NamedTuple):
    """A page that shows something; owner: position of its document; rest as in `Page`."""

    owner: int
    number: int
    file: str
    digest: int
    image: Any  # of PIL


class PageReading:
    """Encodes pages, a few batches at a time.

    Args:
        ids: of the documents, for messages.
        encoder: the model.
        dtype: of what is stored.
        skip: see `PageVectorBuilder`.

    Raises:
        PageError: the model's processor refuses a page, and none is to be skipped.
        VectorError: a vector holds NaN, or numbers too large for the type.
    """

    def __init__(self, ids: Sequence[str], encoder: PageEncoder, dtype: DType, skip: bool) -> None:
        self._ids = ids
        self._encoder = encoder
        self._dtype = dtype
        self._skip = skip

    def vectors(self, pages: Sequence[Seen]) -> list[NDArray[Any] | None]:
        """The stored vectors of each page; None where it failed."""
        # Images of about the same size together, so that little is padded; the largest first, so
        # that it is known at once whether the memory is enough.
        areas = [page.image.width * page.image.height for page in pages]
        order = sorted(range(len(pages)), key=lambda place: -areas[place])
        found: list[NDArray[Any] | None] = [None] * len(pages)
        step = self._encoder.batch_size
        for start in range(0, len(order), step):
            some = order[start : start + step]
            encoded = self._read([pages[place] for place in some])
            for place, vectors in zip(some, encoded, strict=True):
                if vectors is not None:
                    found[place] = self._stored(vectors, pages[place])
        return found

    def _read(self, pages: Sequence[Seen]) -> list[NDArray[np.float32] | None]:
        """(n, D) vectors of each page; None where it failed."""
        try:
            return [*self._encoder.pages([page.image for page in pages])]
        except ImageRefused as error:
            if len(pages) > 1:  # each alone, to learn which it is
                return [vectors for page in pages for vectors in self._read([page])]
            if self._skip:
                return [None]
            raise PageError(self._refused(pages[0], error)) from error

    def _refused(self, page: Seen, error: ImageRefused) -> str:
        file = f"{page.file}: " if page.file else ""
        width, height = page.image.size
        return (
            f"{file}page {page.number} of document {self._ids[page.owner]!r}, {width} x {height} "
            f"pixels: the model does not take it: {error}; change or remove the page, or set "
            "pages.failed to 'skip' to go on without it"
        )

    def _stored(self, vectors: NDArray[np.float32], page: Seen) -> NDArray[Any]:
        stored = as_stored(vectors, self._dtype)
        if not np.isfinite(as_float32(stored, self._dtype)).all():
            raise VectorError(
                f"a vector of page {page.number} of document {self._ids[page.owner]!r} holds NaN, "
                f"or numbers too large for {self._dtype}: look for NaN in the model, or choose "
                "another dtype, or another model_dtype"
            )
        return stored


def visible(batch: Batch, counts: dict[str, int], bar: Any) -> Iterator[Seen]:
    """Yield the pages that show something; count the rest."""
    first, documents = batch
    for owner, document in enumerate(documents, first):
        for page in document:
            counts["pages"] += 1
            counts["failed_pages"] += page.failed
            counts["blank_pages"] += page.blank
            if page.image is not None:
                yield Seen(owner, page.number, page.file, _digest(page.image), page.image)
        bar.update(1)


def _digest(image: "Image") -> int:
    """64 bits: of a million images two different ones are taken for equal once in 10^7 builds."""
    digest = hashlib.blake2b(f"{image.mode} {image.size}".encode(), digest_size=8)
    digest.update(image.tobytes())
    return int.from_bytes(digest.digest())
