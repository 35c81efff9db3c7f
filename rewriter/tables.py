"""A result as a table: aligned text for the terminal, Markdown for a README or model card."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rewriter.evaluation import HEADLINE, EvaluationError, Result, Summary
from rewriter.systems import SYSTEMS

WIDTH = 110
COLUMNS = ("mrr@10", "recall@10")  # beside NDCG@3
_UPPER = ("ndcg", "mrr")
_ABSENT = "–"
_CI = "[95% CI]"


def table(
    result: Result,
    backend: str,
    *,
    labels: Mapping[str, str] | None = None,
    split: str = "held-out",
    baseline: str = "raw",
    columns: Sequence[str] = COLUMNS,
) -> str:
    """Aligned text, at most 110 characters wide with the default columns.

    Args:
        result: of `summarise`.
        backend: which of its backends.
        labels: system → name shown; else that of `SYSTEMS`, else the system's own.
        split: how the queries are called: "120 held-out queries".
        baseline: the system that `summarise` compared with.
        columns: further measures.

    Raises:
        EvaluationError: the result has no such backend.
    """
    systems = _systems(result, backend)
    head, *body = _rows(systems, "", baseline, columns, labels)
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    gaps = 2 * (len(widths) - 1)
    widths[0] = min(widths[0], max(12, WIDTH - gaps - sum(widths[1:])))
    title = f"{backend}, {_n(systems)} {split} queries"
    notes = [line for note in _notes(systems, labels) for line in wrap(note, WIDTH)]
    return "\n".join([title, *(_aligned(row, widths, head) for row in (head, *body)), *notes])


def markdown(
    result: Result,
    backend: str,
    *,
    labels: Mapping[str, str] | None = None,
    split: str = "held-out",
    baseline: str = "raw",
    columns: Sequence[str] = COLUMNS,
) -> str:
    """The same as a Markdown table; arguments and errors as for `table`."""
    systems = _systems(result, backend)
    title = f"{backend}, {_n(systems)} {split} queries"
    head, *body = _rows(systems, title, baseline, columns, labels)
    rows = [head, ["---", *["--:"] * (len(head) - 1)], *body]
    # Labels may be names of folders: a bar in one would end the cell.
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
    notes = list(_notes(systems, labels))
    return "\n".join([*lines, *(["", *notes] if notes else [])])


def _systems(result: Result, backend: str) -> dict[str, Summary]:
    if not result.get(backend):
        raise EvaluationError(f"no backend {backend!r}; there are: {', '.join(result) or 'none'}")
    return result[backend]


def _n(systems: Mapping[str, Summary]) -> int:
    return max(int(summary[HEADLINE]["n"]) for summary in systems.values())


def _label(system: str, labels: Mapping[str, str] | None) -> str:
    known = {name: found.label for name, found in SYSTEMS.items()}
    return {**known, **(labels or {})}.get(system, system)


def heading(measure: str) -> str:
    """How a measure's key is written: NDCG@3, MRR, Recall@10, graded NDCG@3, NDCG@5 (2^grade)."""
    name, at, k = measure.partition("@")
    exponential = name.endswith("_exp")
    kind, _, name = name.removesuffix("_exp").rpartition("_")
    shown = name.upper() if name in _UPPER else name.capitalize()
    return f"{kind} {shown}{at}{k}{' (2^grade)' if exponential else ''}".strip()


def _rows(
    systems: Mapping[str, Summary],
    title: str,
    baseline: str,
    columns: Sequence[str],
    labels: Mapping[str, str] | None,
) -> Iterator[list[str]]:
    yield [title, f"NDCG@3 {_CI}", *map(heading, columns), f"vs {baseline} {_CI}", "win/tie/loss"]
    for name, summary in systems.items():
        main = summary[HEADLINE]
        means = (f"{summary[key]['mean']:.3f}" if key in summary else _ABSENT for key in columns)
        row = [_label(name, labels), f"{main['mean']:.3f} {_interval(main)}", *means]
        yield [*row, *_versus(summary.get(f"vs_{baseline}"))]


def _versus(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return [_ABSENT, ""]
    games = f"{found['win']}/{found['tie']}/{found['loss']}"
    return [f"{found['diff']:+z.3f} {_interval(found, '+')}", games]


def _interval(found: Mapping[str, Any], sign: str = "") -> str:
    low, high = (format(found[end], f"{sign}z.3f").replace("0.", ".", 1) for end in ("low", "high"))
    return f"[{low}, {high}]"


def _aligned(row: Sequence[str], widths: Sequence[int], head: Sequence[str]) -> str:
    cells = [
        cell if len(cell) <= width else cell[: width - 1] + "…"
        for cell, width in zip(row, widths, strict=True)
    ]
    # Numbers with an interval start alike and differ in length; the others end alike.
    left = [not title or title.endswith(_CI) for title in head]
    padded = (
        cell.ljust(width) if to_left else cell.rjust(width)
        for cell, width, to_left in zip(cells, widths, left, strict=True)
    )
    return "  ".join(padded).rstrip()


def _notes(systems: Mapping[str, Summary], labels: Mapping[str, str] | None) -> Iterator[str]:
    fallbacks = [
        f"{_label(name, labels)} {summary['fallbacks']}"
        for name, summary in systems.items()
        if summary.get("fallbacks")
    ]
    if fallbacks:
        yield f"No rewrite, so the raw query was sent: {', '.join(fallbacks)}."
    failed = [
        f"{_label(name, labels)} {summary['failed']}"
        for name, summary in systems.items()
        if summary.get("failed")
    ]
    if failed:
        yield f"Searches that failed and count nowhere: {', '.join(failed)}."
    excluded = max(summary.get("excluded", 0) for summary in systems.values())
    if excluded:
        yield f"Queries left out, having no relevant document: {excluded}."
