"""Small pictures of the pages behind a multimodal result, so that a report can show them.

Only for the queries that changed most: a collection may hold a hundred thousand pages, and drawing
them would take longer than the evaluation.
"""

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
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

    from retrievers.pages import PageSettings

logger = logging.getLogger(__name__)

QUERIES = 300
PAGES = 6  # a query: the judged pages first, then the hits of all systems by rank
SIZE = (300, 400)  # at most, in pixels
FOLDER = "pages"


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
        Id of a document → file of its first page that can be seen, relative to the folder. One that
        cannot be drawn has none; how many is logged.
    """
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    if settings is None:
        return {}
    (folder / FOLDER).mkdir(parents=True)
    wanted = {identity for identity in _wanted(records, qrels) if identity in collection}
    return dict(_written(wanted, collection, settings, folder))


def _wanted(records: Sequence[Record], qrels: Mapping[str, Grades]) -> Iterator[str]:
    rows = by(records, "query_id")
    for query in by_change(records, "raw")[:QUERIES]:
        judged = [document for document, grade in qrels.get(query, {}).items() if grade > 0]
        lists = [[hit.id for hit in row.hits[:PAGES]] for row in rows[query]]
        yield from in_sight(judged, lists)[:PAGES]


def _written(
    wanted: Set[str], collection: Collection, settings: "PageSettings", folder: Path
) -> Iterator[tuple[str, str]]:
    from retrievers.pages import PageError, page_source

    failed: list[PageError] = []
    drawn = page_source(collection, settings).documents()
    for row, (document, pages) in enumerate(zip(collection.ids, drawn, strict=True)):
        if document not in wanted:
            continue
        try:
            # The first that can be seen; none is drawn after it.
            seen = next(((p.number, p.image) for p in pages if p.image is not None), None)
        except PageError as error:
            failed.append(error)
            continue
        if seen is not None:
            number, image = seen
            # By row and number: an id is never part of a path.
            name = f"{FOLDER}/{row}-{number}.webp"
            _save(image, folder / name)
            yield document, name
    if failed:
        logger.warning("%d documents have no picture: %s", len(failed), failed[0])


def _save(image: "Image", path: Path) -> None:
    small = image.convert("RGB")
    small.thumbnail(SIZE, reducing_gap=2)
    small.save(path, "WEBP", quality=80)
