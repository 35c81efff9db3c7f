"""Why a rewriter gains or not: what its rewrites look like, and what is left to be gained.

Terms are those of the lexical analysis. Scripts stand in for languages: see `main_script`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from retrievers.collection import Collection
from rewards.texts import main_script, repetition
from rewriter.evaluation.judging import HEADLINE
from rewriter.records import Record, by
from rewriter.systems import Statistics


class _Shape(NamedTuple):
    """One rewrite beside its query; shares are of the rewrite's or the document's terms."""

    characters: int
    terms: int
    length_ratio: float  # characters over the query's
    copied: float  # of the rewrite's distinct terms, those that the query holds too
    new: float  # those that it does not hold
    kept: float  # of the query's distinct terms, those that the rewrite holds too
    repetition: float
    same_script: float
    source_overlap: float | None  # of the rewrite's distinct terms, those in the source document
    query_source_overlap: float | None  # the same of the query's


def diagnose(
    records: Sequence[Record], statistics: Statistics, collection: Collection
) -> dict[str, Any]:
    """Figures for `diagnostics.json`.

    Returns:
        "rewrites": system → means over its rewrites (queries that it leaves as they are do not
        count; failed ones are "fallbacks"), with the backend where it wrote others for one;
        "scripts": system → "hangul→latin", query's and rewrite's → rewrites; "search": backend →
        system → "samples", "headroom" (mean NDCG@3 if the best sample of each query were known),
        "mean", "always_hit" and "never_hit" (share of queries for which every sample, or none,
        brings a relevant document into the first three).
    """
    backends = by(records, "backend")
    first = dict(_rewritten(backends))
    terms = _remembered(statistics.analyse)
    sources = _Sources(collection, terms)
    shapes = {system: _shapes(rows, terms, sources) for system, rows in first.items()}
    return {
        "rewrites": {
            system: _averages(found) | {"fallbacks": sum(row.fallbacks for row in first[system])}
            for system, found in shapes.items()
        },
        "scripts": {system: _scripts(rows) for system, rows in first.items() if shapes[system]},
        "search": {
            backend: {system: _search(rows) for system, rows in by(found, "system").items()}
            for backend, found in backends.items()
        },
    }


def _rewritten(
    backends: Mapping[str, Sequence[Record]],
) -> Iterator[tuple[str, Sequence[Record]]]:
    """Systems, and "SYSTEM, BACKEND" where it has other rewrites for a backend than before."""
    seen: dict[str, list[list[str]]] = {}
    for backend, found in backends.items():
        for system, rows in by(found, "system").items():
            made = [rewrite for row in rows for rewrite in _rewrites(row)]
            before = seen.setdefault(system, [])
            if made not in before:
                yield (f"{system}, {backend}" if before else system), rows
                before.append(made)


class _Sources:
    """Terms of source documents, each document analysed once."""

    def __init__(self, collection: Collection, terms: Callable[[str], frozenset[str]]) -> None:
        self._collection = collection
        self._terms = terms

    def of(self, record: Record) -> frozenset[str] | None:
        """Terms of the record's source document; None if it has none, or one without a word.

        The image of a page has no terms: that would not mean that a query shares none with it.
        """
        if record.source is None or record.source not in self._collection:
            return None
        found = self._collection.document(record.source)
        return self._terms(f"{found.title}\n{found.text}") or None


def _remembered(analyse: Callable[[str], list[str]]) -> Callable[[str], frozenset[str]]:
    known: dict[str, frozenset[str]] = {}

    def terms(text: str) -> frozenset[str]:
        if text not in known:
            known[text] = frozenset(analyse(text))
        return known[text]

    return terms


def _rewrites(record: Record) -> list[str]:
    made = record.samples or (record,)
    return [one.rewrite for one in made if one.rewrite is not None]


def _shapes(
    records: Sequence[Record], terms: Callable[[str], frozenset[str]], sources: _Sources
) -> list[_Shape]:
    return [
        _shape(record.query, rewrite, terms, sources.of(record))
        for record in records
        for rewrite in _rewrites(record)
    ]


def _shape(
    query: str,
    rewrite: str,
    terms: Callable[[str], frozenset[str]],
    source: frozenset[str] | None,
) -> _Shape:
    asked, written = terms(query), terms(rewrite)
    copied = _share(written & asked, written)
    return _Shape(
        characters=len(rewrite),
        terms=len(written),
        length_ratio=len(rewrite) / max(1, len(query)),
        copied=copied,
        new=1 - copied if written else 0.0,
        kept=_share(written & asked, asked),
        repetition=repetition(rewrite),
        same_script=float(main_script(rewrite) == main_script(query)),
        source_overlap=None if source is None else _share(written & source, written),
        query_source_overlap=None if source is None else _share(asked & source, asked),
    )


def _share(part: frozenset[str], whole: frozenset[str]) -> float:
    return len(part) / len(whole) if whole else 0.0


def _averages(shapes: Sequence[_Shape]) -> dict[str, float]:
    found: dict[str, float] = {"rewrites": len(shapes)}
    for name in _Shape._fields:
        values = [getattr(shape, name) for shape in shapes]
        known = [value for value in values if value is not None]
        if known:
            found[name] = fsum(known) / len(known)
    return found


def _scripts(records: Sequence[Record]) -> Mapping[str, int]:
    pairs = (
        f"{main_script(record.query)}→{main_script(rewrite)}"
        for record in records
        for rewrite in _rewrites(record)
    )
    return dict(Counter(pairs).most_common())


def _search(records: Sequence[Record]) -> dict[str, float]:
    scored = [record for record in records if not record.excluded]
    values = [
        [one.metrics[HEADLINE] for one in record.samples] or [record.metrics[HEADLINE]]
        for record in scored
    ]
    n = max(1, len(values))
    return {
        "samples": max(map(len, values), default=0),
        "mean": fsum(fsum(some) / len(some) for some in values) / n,
        "headroom": fsum(map(max, values)) / n,
        # NDCG@3 is above 0 exactly where a relevant document is among the first three.
        "always_hit": sum(min(some) > 0 for some in values) / n,
        "never_hit": sum(max(some) == 0 for some in values) / n,
    }
