"""What is read of which documents."""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from retrievers.collection import Collection, Document
from retrievers.index import fingerprint
from retrievers.pages import Page, page_source
from rewriter.synthesis.settings import SynthesisSettings

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Reading:
    """What the generator is given for one query.

    Attributes:
        document: read.
        number: of the query among those of the document, the first is 0.
        digest: hash of what is read.
        page: its number, where a page is read.
        image: of that page, PNG.
    """

    document: Document
    number: int
    digest: str
    page: int | None = None
    image: bytes | None = field(default=None, repr=False)


def draw(
    collection: Collection, settings: SynthesisSettings, limit: int | None
) -> tuple[list[int], Counter[str]]:
    """Rows of the documents to read, ascending, and how many were passed over, by reason.

    A larger limit draws the same documents and more.
    """
    wanted = len(collection) if settings.documents is None else settings.documents
    wanted = wanted if limit is None else min(wanted, limit)
    judged = _judged(collection, settings.keep)
    rows: list[int] = []
    passed: Counter[str] = Counter()
    for row in np.random.default_rng(settings.seed).permutation(len(collection)).tolist():
        if len(rows) == wanted:
            break
        reason = _unfit(collection, row, settings, judged)
        if reason:
            passed[reason] += 1
        else:
            rows.append(row)
    return sorted(rows), passed


def readings(
    collection: Collection, settings: SynthesisSettings, rows: Sequence[int]
) -> Iterator[Reading]:
    """What is read of each document, `per_document` readings of each, in corpus order.

    Raises:
        retrievers.pages.PageError: a page that cannot be drawn.
    """
    if settings.reads == "text":
        for row in rows:
            document = collection.document(collection.ids[row])
            digest = fingerprint({"title": document.title, "text": document.text})
            for number in range(settings.per_document):
                yield Reading(document, number, digest)
        return
    wanted = set(rows)
    source = page_source(collection, settings.pages)
    for row, pages in enumerate(source.documents()):
        if row in wanted:
            document = collection.document(collection.ids[row])
            yield from _pages(document, _chosen(document.id, pages, settings))


def _chosen(identity: str, pages: Iterable[Page], settings: SynthesisSettings) -> list[Page | None]:
    """One page at random for each query, blank ones passed over; one image of each is held."""
    chosen: list[Page | None] = [None] * settings.per_document
    draws = [
        Random(f"{settings.seed} {number} {identity}") for number in range(settings.per_document)
    ]
    seen = 0
    for page in pages:
        if page.image is None:
            continue
        seen += 1
        for number, chance in enumerate(draws):
            if chance.randrange(seen) == 0:
                chosen[number] = page
    return chosen


def _pages(document: Document, chosen: Sequence[Page | None]) -> Iterator[Reading]:
    for number, page in enumerate(chosen):
        if page is None or page.image is None:
            yield Reading(document, number, "blank")
        else:
            image = _png(page.image)
            yield Reading(document, number, sha256(image).hexdigest(), page.number, image)


def _png(image: "Image") -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _judged(collection: Collection, splits: Sequence[str]) -> set[str]:
    return {
        document
        for split in splits
        for grades in collection.qrels(split).values()
        for document, grade in grades.items()
        if grade > 0
    }


def _unfit(
    collection: Collection, row: int, settings: SynthesisSettings, judged: set[str]
) -> str | None:
    identity = collection.ids[row]
    if identity in judged:
        return "judged in a split that is kept"
    if settings.reads == "text":
        length = len(collection.document(identity).text.strip())
        if length < settings.min_chars:
            return "text blank or too short"
    return None
