"""Format and length terms that never become the whole advantage.

By default GRPO divides by the spread inside a group. In a group whose searches all came out alike,
the smallest difference in length would be scaled up to a full advantage; so the length term applies
only where the search outcome differs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Group: TypeAlias = tuple[str, ...]

# Sums of the same rewards in another order differ by less than this, real outcomes by more.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Outcome:
    """What shaping and counting need of one completion; small enough to send between ranks.

    Attributes:
        group: equal for the completions that are compared with each other.
        search: weighted sum of its search rewards, None where a search failed.
        own: what the user's own reward function gives it, None where it gives nothing.
        unparsed: whether no rewrite could be read from it.
        outside: characters of the output that are not the rewrite.
        found: backend -> whether its search found a relevant document, for those that applied.
    """

    group: Group
    search: float | None
    unparsed: bool
    outside: int
    found: Mapping[str, bool] = field(default_factory=dict)
    own: float | None = None


def by_group(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """The outcomes whose search did not fail, by group, in order of first appearance."""
    groups: dict[Group, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.search is not None:
            groups[outcome.group].append(outcome)
    return list(groups.values())


def format_terms(
    outcomes: Sequence[Outcome], *, failure_penalty: float, length_weight: float
) -> list[float | None]:
    """Format and length terms, weights included.

    The length penalty is that of arXiv 2507.23242: |output| - |rewrite|, normalised within the
    group, here by the group's maximum; unlike there, a completion without a rewrite costs a finite
    amount and only groups with differing outcomes are charged.

    Args:
        outcomes: (R,) completions of whole groups, those of other ranks included.
        failure_penalty: what a completion without a rewrite costs, in every group.
        length_weight: what the longest surplus of a group costs.

    Returns:
        R terms of at most 0: -failure_penalty for an unparsed completion,
        -length_weight * outside / maximum in groups whose searches differ, otherwise 0; None where
        a search failed.
    """
    longest = {group[0].group: _longest(group) for group in by_group(outcomes) if differs(group)}
    terms: list[float | None] = []
    for one in outcomes:
        if one.search is None:
            terms.append(None)
        elif one.unparsed:
            terms.append(-failure_penalty)
        else:
            maximum = longest.get(one.group, 0)
            terms.append(-length_weight * one.outside / maximum if maximum else 0.0)
    return terms


def differs(group: Sequence[Outcome]) -> bool:
    """Whether the searches of a group came out differently."""
    values = [one.search for one in group if one.search is not None]
    return bool(values) and max(values) - min(values) > TOLERANCE


def _longest(group: Sequence[Outcome]) -> int:
    return max((one.outside for one in group if not one.unparsed), default=0)
