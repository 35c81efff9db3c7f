"""The result as Markdown tables, for a paper or a README."""

from rewriter.evaluation import HEADLINE
from rewriter.report.gather import Source
from rewriter.report.summary import measures
from rewriter.tables import markdown


def tables(source: Source) -> str:
    """One table a backend, and what the numbers are."""
    columns = [key for key in measures(source.result) if key != HEADLINE]
    parts = [
        markdown(source.result, backend, labels=source.labels, split=source.split, columns=columns)
        for backend in source.result
    ]
    return "\n\n".join([*parts, _note(source)])


def _note(source: Source) -> str:
    compared = (
        f" Differences and win/tie/loss are paired with {source.label(source.baseline)}, by query."
        if source.baseline
        else ""
    )
    return f"Means over queries; 95% percentile bootstrap intervals over queries.{compared}"
