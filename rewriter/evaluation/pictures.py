"""Small pictures of the pages behind a multimodal result, so that a report can show them.

Only for the queries that changed most: a collection may hold a hundred thousand pages, and drawing
them would take longer than the evaluation.
"""

import logging
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrievers import part_names
from retrievers.collection import Collection
from rewards.metrics import Grades
from rewriter.config import Config
from rewriter.evaluation.changes import by_change, in_sight
from rewriter.records import Record, by

if TYPE_CHECKING:
    from PIL.Image import Image

    from retrievers.pages import Page, PageSettings

logger = logging.getLogger(__name__)

QUERIES = 300
PAGES = 6  # a query: the judged pages first, then the hits of all systems by rank
SIZE = (300, 400)  # at most, in pixels
FOLDER = "pages"
_FIRST = 0  # stands for the first page that can be seen
_PAGE = re.compile(r"(.+)#page-(\d+)", re.DOTALL)  # a hit's id where pages are found, one by one


def page_settings(config: Config, backends: Iterable[str]) -> "PageSettings | None":
    """What pages look like to the multimodal backend; None where it takes no part."""
    names = list(backends)
    names += [part for name in names for part in part_names(config.retriever_settings(name))]
    if "multimodal" not in names:
        return None
    found: PageSettings = config.retriever_settings("multimodal").pages
    return found


def write_pictures(
    records: Sequence[Record],
    qrels: Mapping[str, Grades],
    collection: Collection,
    settings: "PageSettings | None",
    folder: Path,
) -> dict[str, str]:
    """Write `pages/*.webp`, in place of those that are there.

    Args:
        records: of one split and run, "raw" among the systems.
        qrels: judgements of its queries.
        collection: whose pages they are.
        settings: None where there are no pages.
        folder: the result folder.

    Returns:
        Id of a document or page → file, relative to the folder. A page that cannot be drawn has
        none; how many is logged.
    """
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    if settings is None:
        return {}
    (folder / FOLDER).mkdir(parents=True)
    return dict(
        _written(_places(_wanted(records, qrels), collection), collection, settings, folder)
    )


def place_of(identity: str, collection: Collection) -> tuple[str, int] | None:
    """(document, number of its page) of a hit; None for one that is not in the collection.

    A document that was found as a whole has page 0: whichever can be seen first.
    """
    if identity in collection:
        return identity, _FIRST
    found = _PAGE.fullmatch(identity)
    return (found[1], int(found[2])) if found and found[1] in collection else None


def _wanted(records: Sequence[Record], qrels: Mapping[str, Grades]) -> Iterator[str]:
    rows = by(records, "query_id")
    for query in by_change(records, "raw")[:QUERIES]:
        judged = [document for document, grade in qrels.get(query, {}).items() if grade > 0]
        lists = [[hit.id for hit in row.hits[:PAGES]] for row in rows[query]]
        yield from in_sight(judged, lists)[:PAGES]


def _places(ids: Iterable[str], collection: Collection) -> dict[str, dict[int, str]]:
    """Document → number of a page → the id that stands for it."""
    places: dict[str, dict[int, str]] = {}
    for identity in ids:
        if place := place_of(identity, collection):
            places.setdefault(place[0], {})[place[1]] = identity
    return places


def _written(
    places: Mapping[str, Mapping[int, str]],
    collection: Collection,
    settings: "PageSettings",
    folder: Path,
) -> Iterator[tuple[str, str]]:
    from retrievers.pages import PageError, page_source

    failed: list[PageError] = []
    drawn = page_source(collection, settings).documents()
    for row, (document, pages) in enumerate(zip(collection.ids, drawn, strict=True)):
        if document not in places:
            continue
        try:
            for number, identity, image in _seen(pages, places[document]):
                # By row and number: an id is never part of a path.
                name = f"{FOLDER}/{row}-{number}.webp"
                _save(image, folder / name)
                yield identity, name
        except PageError as error:
            failed.append(error)
    if failed:
        logger.warning("%d documents have no picture: %s", len(failed), failed[0])


def _seen(pages: "Iterable[Page]", wanted: Mapping[int, str]) -> Iterator[tuple[int, str, "Image"]]:
    """Those of a document's pages that are wanted; none is drawn after the last of them."""
    left = dict(wanted)
    for page in pages:
        for number in (_FIRST, page.number):
            if number in left and page.image is not None:
                yield page.number, left.pop(number), page.image
        if max(left, default=_FIRST) <= page.number and _FIRST not in left:
            return


def _save(image: "Image", path: Path) -> None:
    small = image.convert("RGB")
    small.thumbnail(SIZE, reducing_gap=2)
    small.save(path, "WEBP", quality=80)
