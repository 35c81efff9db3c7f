"""Titles and texts of the documents, as much as the page has room for."""

from collections.abc import Mapping, Sequence
from typing import Any

from rewriter.report.files import Document
from rewriter.report.packed import packed

CUTS = (1_500, 1_000, 700, 400, 250, 150, 80, 0)  # characters of a text
ROOM = 15_000_000  # characters of the page, thumbnails included
SAMPLE = 2_000  # documents that the size is estimated from


def pack(documents: Mapping[str, Document], ids: Sequence[str], room: int = ROOM) -> str:
    """Titles and texts in the order of `ids`, all cut to one length so that they fit into `room`.

    The data names the length: {"cut": characters, "titles": […], "texts": […]}.
    """
    for cut in CUTS:
        if _estimate(documents, ids, cut) <= room:
            data = packed(_data(documents, ids, cut))
            if len(data) <= room:
                return data
    return packed({"cut": 0, "titles": [], "texts": []})  # ids alone


def _estimate(documents: Mapping[str, Document], ids: Sequence[str], cut: int) -> float:
    """Size from a sample, a tenth below it: what is only just too large is found out by packing."""
    step = max(1, len(ids) // SAMPLE)
    sample = ids[::step]
    return 0.9 * len(packed(_data(documents, sample, cut))) * len(ids) / max(1, len(sample))


def _data(documents: Mapping[str, Document], ids: Sequence[str], cut: int) -> dict[str, Any]:
    none = Document("", "")
    found = [documents.get(identity, none) for identity in ids]
    return {
        "cut": cut,
        "titles": [document.title[:200] for document in found],
        "texts": [_cut(document.text, cut) for document in found],
    }


def _cut(text: str, cut: int) -> str:
    return text if len(text) <= cut else text[:cut].rstrip() + ("…" if cut else "")
