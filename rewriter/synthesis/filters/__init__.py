"""Filters by name, in the order in which they are applied: cheap ones first.

A new one is one module and one line in `FILTERS`.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from rewriter.synthesis.filters.base import Context, Draft, Filter

__all__ = ["FILTERS", "Context", "Draft", "Dropped", "Filter", "apply_filters"]

# Name → (module, filter class, settings class).
FILTERS: dict[str, tuple[str, str, str]] = {
    "length": ("rewriter.synthesis.filters.length", "LengthFilter", "LengthSettings"),
    "script": ("rewriter.synthesis.filters.script", "ScriptFilter", "ScriptSettings"),
    "names": ("rewriter.synthesis.filters.names", "NamesFilter", "NamesSettings"),
    "copied": ("rewriter.synthesis.filters.copied", "CopiedFilter", "CopiedSettings"),
    "near_duplicates": (
        "rewriter.synthesis.filters.near_duplicates",
        "NearDuplicatesFilter",
        "NearDuplicatesSettings",
    ),
    "round_trip": (
        "rewriter.synthesis.filters.round_trip",
        "RoundTripFilter",
        "RoundTripSettings",
    ),
    "learnable": ("rewriter.synthesis.filters.learnable", "LearnableFilter", "LearnableSettings"),
}


class Dropped(NamedTuple):
    """A query that is not kept, and why: the filter's name, and what it says."""

    draft: Draft
    filter: str
    reason: str


def apply_filters(
    drafts: Sequence[Draft], filters: Mapping[str, Any], context: Context
) -> tuple[list[Draft], list[Dropped]]:
    """Put queries through filters, one filter after the other.

    Args:
        drafts: the queries.
        filters: name → settings, in the order of `FILTERS`.
        context: what filters may ask for.

    Returns:
        Those kept, and those dropped, both in their order.
    """
    kept, dropped = list(drafts), []
    for name, settings in filters.items():
        module, made, _ = FILTERS[name]
        judge: Filter = getattr(import_module(module), made)(settings, context)
        reasons = judge(kept)
        pairs = list(zip(kept, reasons, strict=True))
        dropped += [Dropped(draft, name, reason) for draft, reason in pairs if reason is not None]
        kept = [draft for draft, reason in pairs if reason is None]
    return kept, dropped
