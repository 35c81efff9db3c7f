"""Pictures of pages for the queries with the largest changes; the others name their page."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from rewriter.evaluation.pictures import PAGES, QUERIES
from rewriter.report.faults import ReportError
from rewriter.report.files import Document

SIZE = (150, 200)  # at most, in pixels
QUALITIES = (60, 40, 25, 10)
SAMPLE = 50  # pages that the size is estimated from
ROOM = 9_000_000  # characters of the page


def thumbnails(
    documents: Mapping[str, Document],
    ids: Sequence[str],
    order: Sequence[tuple[str, Sequence[int]]],
    room: int = ROOM,
) -> dict[str, Any]:
    """{"queries": of how many, "pages": {document's number: WebP in base64}}.

    Args:
        documents: by id; those with an image are pages.
        ids: of all documents; what the numbers mean.
        order: (query, documents' numbers), the largest change first.
        room: quality is lowered, and at last queries are left out, to stay within it.

    Raises:
        ReportError: an image cannot be read.
    """
    images = {
        number: document.image
        for number, identity in enumerate(ids)
        if (document := documents.get(identity)) and document.image
    }
    wanted = [[n for n in numbers if n in images][:PAGES] for _, numbers in order[:QUERIES]]
    wanted = [numbers for numbers in wanted if numbers]
    small = {n: _small(images[n]) for n in dict.fromkeys(n for row in wanted for n in row)}
    found: dict[str, Any] = {"queries": 0, "pages": {}}
    for quality in _qualities(list(small.values()), room):
        found = _fitting(wanted, small, quality, room)
        if found["queries"] == len(wanted):
            break
    return found


def _qualities(images: Sequence[Any], room: int) -> list[int]:
    """Those at which all pages are likely to fit, by a sample, best first; at least the lowest."""
    sample = images[:: max(1, len(images) // SAMPLE)]
    share = len(sample) / max(1, len(images))
    fitting = [
        quality
        for quality in QUALITIES[:-1]
        if sum(len(_webp(image, quality)) for image in sample) <= room * share
    ]
    return [*fitting, QUALITIES[-1]]


def _fitting(
    wanted: Sequence[Sequence[int]], small: Mapping[int, Any], quality: int, room: int
) -> dict[str, Any]:
    drawn: dict[int, str] = {}
    for done, numbers in enumerate(wanted):
        new = {n: _webp(small[n], quality) for n in numbers if n not in drawn}
        room -= sum(map(len, new.values()))
        if room < 0:
            return {"queries": done, "pages": drawn}
        drawn |= new
    return {"queries": len(wanted), "pages": drawn}


def _small(path: Path) -> Any:
    from PIL import Image

    try:
        with Image.open(path) as image:
            image.draft("RGB", SIZE)  # a JPEG is decoded at about this size at once
            page = image.convert("RGB")
    except (OSError, Image.DecompressionBombError) as error:
        raise ReportError(f"{path} is no image that can be read: {error}") from error
    page.thumbnail(SIZE, reducing_gap=2)
    return page


def _webp(image: Any, quality: int) -> str:
    buffer = BytesIO()
    image.save(buffer, "WEBP", quality=quality, method=0)
    return b64encode(buffer.getvalue()).decode("ascii")
