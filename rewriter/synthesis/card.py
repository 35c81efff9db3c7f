"""The data card: what was written, what was kept, and how hard it is.

The same tables and samples as Markdown and, with the extra `report`, as an HTML page.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, TypeVar

from retrievers.base import Hit
from retrievers.leaks import words
from rewards.metrics import ndcg
from rewriter.records import write_lines
from rewriter.synthesis.asking import note_of, prompt_hash
from rewriter.synthesis.card_forms import html, markdown
from rewriter.synthesis.filters import Context, Draft
from rewriter.synthesis.filters.copied import copied_share

if TYPE_CHECKING:
    from rewriter.synthesis.pipeline import Outcome

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

DEPTHS = (1, 3, 10, 100)


@dataclass(frozen=True)
class Table:
    """A table: head, rows of as many cells, and a note above it."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


@dataclass(frozen=True)
class Sample:
    """A query, the document it was written from, and why it was dropped (empty: it is kept)."""

    text: str
    document: str
    reason: str = ""


@dataclass(frozen=True)
class Card:
    """The card: its title, what is to be known first, tables, samples."""

    title: str
    notes: list[str]
    tables: list[Table]
    kept: list[Sample]
    dropped: list[Sample]


def make_card(outcome: "Outcome", context: Context) -> Card:
    """Count everything, and search for the queries that are kept.

    Raises:
        PermanentSearchError: a backend cannot be searched.
    """
    kept, dropped = outcome.kept, outcome.dropped
    samples = outcome.settings.samples
    tables = [_origin(outcome), _funnel(outcome), _splits(outcome)]
    if kept:
        tables += [_overlap(kept, context), _difficulty(kept, context)]
    return Card(
        f"Synthetic queries: {len(kept)} kept",
        list(_notes(outcome)),
        tables,
        [Sample(one.text, one.document) for one in _spread(kept, samples)],
        [
            Sample(one.draft.text, one.draft.document, f"{one.filter}: {one.reason}")
            for one in _spread(dropped, samples)
        ],
    )


def write_card(card: Card, folder: Path) -> None:
    """`card.md`, and `card.html` where jinja2 is installed."""
    write_lines([markdown(card)], folder / "card.md")
    page = html(card)
    if page is None:
        logger.info('card.html is left out; pip install "rlqr[report]" for it')
    else:
        write_lines([page], folder / "card.html")


def _notes(outcome: "Outcome") -> Iterator[str]:
    yield "Every query was written from a document by a program (origin: synthetic)."
    if note := note_of(outcome.settings):
        yield note
    if "near_duplicates" in outcome.settings.filters:
        yield "Near-duplicates are found by exact Jaccard similarity of three-word runs."
    if not outcome.splits:
        yield "There are too few queries to fill the splits; no collection was written."


def _origin(outcome: "Outcome") -> Table:
    settings = outcome.settings
    facts = settings.generator.options.identity()
    rows = [
        ("generator", f"{facts['generator']} {facts.get('model', '')}".strip()),
        ("prompt hash", prompt_hash(settings)[:16]),
        ("reads", settings.reads),
        ("seed", str(settings.seed)),
        ("documents in the source", str(len(outcome.collection))),
        ("documents read", str(outcome.read)),
        *((f"passed over: {why}", str(count)) for why, count in sorted(outcome.passed.items())),
        ("prompt tokens", f"{outcome.tokens[0]:,}"),
        ("answer tokens", f"{outcome.tokens[1]:,}"),
    ]
    return Table("Origin", ("", ""), rows)


def _funnel(outcome: "Outcome") -> Table:
    counts = Counter((one.filter, one.reason) for one in outcome.dropped)
    wanted = len(outcome.kept) + len(outcome.dropped)
    left = wanted
    rows = [("queries wanted", "", "", str(wanted))]
    for name in ("answer", *outcome.settings.filters):
        found = sorted((why, count) for (one, why), count in counts.items() if one == name)
        for why, count in found or [("", 0)]:
            left -= count
            rows.append((name, why, str(count), str(left)))
    return Table(
        "Filters",
        ("filter", "reason", "dropped", "left"),
        rows,
        "In the order in which they are applied; “answer” is what held no query.",
    )


def _splits(outcome: "Outcome") -> Table:
    sources = {one.id: one.document for one in outcome.kept}
    rows = [
        (split, str(len(ids)), str(len({sources[query] for query in ids})))
        for split, ids in outcome.splits.items()
    ]
    for split in outcome.settings.keep:
        rows.append((f"{split} (of the source)", str(len(outcome.collection.queries(split))), ""))
    return Table("Splits", ("split", "queries", "source documents"), rows)


def _overlap(kept: Sequence[Draft], context: Context) -> Table:
    shares, copied, lengths = [], [], []
    for one in kept:
        lengths.append(float(len(one.text)))
        asked, held = words(one.text), words(context.text_of(one))
        if not held:  # a page that has no text
            continue
        shares.append(len(set(asked) & set(held)) / len(set(asked)) if asked else 0.0)
        copied.append(copied_share(asked, held))
    return Table(
        "Lexical overlap of kept queries with their documents",
        ("", "mean", "median", "lowest", "highest"),
        [
            _range("share of words", shares, ".2f"),
            _range("share of three-word runs", copied, ".2f"),
            _range("characters", lengths, ".0f"),
        ],
        "High shares mean that keyword search finds the document without any rewriting. "
        "Documents without a text are not counted.",
    )


def _range(name: str, values: Sequence[float], form: str) -> tuple[str, ...]:
    if not values:
        return (name, *["–"] * 4)
    shown = (mean(values), median(values), min(values), max(values))
    return (name, *(format(value, form) for value in shown))


def _difficulty(kept: Sequence[Draft], context: Context) -> Table:
    rows = []
    for backend in context.config.reward.backends:
        found = context.find(backend, [one.text for one in kept], max(DEPTHS))
        ranked = [(one.document, hits) for one in kept if (hits := found[one.text]) is not None]
        rows.append((backend, str(len(ranked)), *_shares(ranked)))
    return Table(
        "Difficulty: kept queries as they are",
        ("backend", "searched", *(f"found within {depth}" for depth in DEPTHS), "NDCG@3"),
        rows,
        "Against the source document alone; others may answer a query too.",
    )


def _shares(ranked: Sequence[tuple[str, list[Hit]]]) -> Iterator[str]:
    if not ranked:
        yield from ["–"] * (len(DEPTHS) + 1)
        return
    rankings = [(document, [hit.id for hit in hits]) for document, hits in ranked]
    for depth in DEPTHS:
        found = sum(document in ids[:depth] for document, ids in rankings)
        yield f"{found / len(rankings):.0%}"
    yield f"{mean(ndcg(ids, {document: 1.0}, 3) for document, ids in rankings):.3f}"


def _spread(items: Sequence[Item], wanted: int) -> list[Item]:
    """So many of them, evenly spread."""
    step = max(1, len(items) // wanted) if wanted else 1
    return list(items[::step][:wanted])
