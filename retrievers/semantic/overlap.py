"""How much of exact search a graph finds: measured with pieces of the documents, kept beside it.

It depends on settings that the graph does not: each choice of them has a file of its own, so that
they can be tuned over one graph.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.atomic import write_file
from retrievers.index import fingerprint
from retrievers.index_manifest import sealed, unsealed
from retrievers.semantic.exact import ExactSearch
from retrievers.semantic.hnsw import HnswSearch

logger = logging.getLogger(__name__)


def overlap(exact: ExactSearch, graph: HnswSearch, queries: NDArray[np.float32], k: int) -> float:
    """Mean share, 0 to 1, of the k documents of exact search that the graph finds too."""
    pairs = zip(exact.best(queries, k), graph.best(queries, k), strict=True)
    shares = [len(np.intersect1d(true[0], near[0])) / len(true[0]) for true, near in pairs]
    return float(np.mean(shares))


def kept(folder: Path, parts: Mapping[str, Any], measure: Callable[[], float]) -> float:
    """The overlap that was measured with these settings; measured now if there is none.

    A file that is damaged is written again. Where none can be written, a warning says so.

    Args:
        folder: of the graph's index.
        parts: JSON values that the overlap depends on.
        measure: measures it.
    """
    path = folder / f"overlap-{fingerprint(parts)[:16]}.json"
    known = _read(path, parts)
    if known is not None:
        return known
    found = measure()
    try:
        write_file(path, sealed({"parts": parts, "overlap": found}))
    except OSError as error:
        logger.warning(
            "the overlap of the graph with exact search cannot be kept (%s), and is measured each "
            "time the index is opened with these settings",
            error,
        )
    return found


def probes(texts: Callable[[], Iterable[str]], count: int) -> list[str]:
    """Queries for `overlap`: up to eight words in a row, each from a document drawn at random.

    Args:
        texts: gives the documents' texts, twice; only those that are drawn are kept.
        count: of the queries.
    """
    rng = np.random.default_rng(0)
    size = sum(1 for text in texts() if text)
    drawn = rng.choice(size, size=min(count, size), replace=False).tolist()
    wanted = set(drawn)
    filled = (text for text in texts() if text)
    chosen = {place: text for place, text in enumerate(filled) if place in wanted}
    return [_words(chosen[place], rng) for place in drawn]


def _read(path: Path, parts: Mapping[str, Any]) -> float | None:
    try:
        values = unsealed(path.read_bytes())
    except (OSError, ValueError):
        return None
    return float(values["overlap"]) if values.get("parts") == parts else None


def _words(text: str, rng: np.random.Generator) -> str:
    words = text.split()
    first = int(rng.integers(max(len(words) - 7, 1)))
    return " ".join(words[first : first + 8])[:80]  # some scripts write without spaces
