"""What one step's scoring leaves behind: rows to read, numbers to log."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retrievers.base import CacheInfo, Hit
from rewards.parsing import FAILURES, Parsed
from rewards.shaping import TOLERANCE, Group, Outcome, by_group


@dataclass(frozen=True)
class RowScores:
    """One completion, scored.

    Attributes:
        query_id, query: of the raw query.
        completion: the model's whole output.
        parsed: the rewrite, or why there is none.
        search_text: what was sent, None where there is no rewrite.
        hits: backend -> its first hits; a backend whose search failed is absent.
        rewards: reward function -> value, None where it does not apply or a search failed.
        failed: whether a search failed, so that no function rewards this row.
    """

    query_id: str
    query: str
    completion: str
    parsed: Parsed
    search_text: str | None
    hits: Mapping[str, Sequence[Hit]]
    rewards: Mapping[str, float | None]
    failed: bool


@dataclass(frozen=True)
class StepScores:
    """This rank's rows of one step.

    Attributes:
        rows: in TRL's order.
        metrics: what was logged: `search/failures` (rows), `search/distinct_texts`,
            `search/reward_seconds`, `parse/KIND` (rows), and a backend `NAME/all_hit` and
            `NAME/all_miss` (share of groups, over all ranks) and `NAME/cache_hit_rate`;
            `groups/equal_reward` (share of groups, over all ranks).
        step: TRL's global step, None where nobody said.
        outcomes: of all ranks' rows, the same on every rank.
    """

    rows: Sequence[RowScores]
    metrics: Mapping[str, float]
    step: int | None = None
    outcomes: Sequence[Outcome] = ()


def parse_counts(parsed: Iterable[Parsed]) -> dict[str, float]:
    """`parse/KIND` -> completions; all kinds, because an absent one would not count as 0."""
    counts = Counter(one.failure for one in parsed if one.failure)
    return {f"parse/{kind}": float(counts[kind]) for kind in FAILURES}


def group_shares(outcomes: Iterable[Outcome], backend: str) -> dict[str, float]:
    """Share of groups in which every search, or none, found a relevant document.

    Neither kind teaches "hit" anything. Empty where the backend applied to no group.
    """
    groups = [
        [one.found[backend] for one in group if backend in one.found]
        for group in by_group(outcomes)
    ]
    groups = [group for group in groups if group]
    if not groups:
        return {}
    return {
        f"{backend}/all_hit": sum(map(all, groups)) / len(groups),
        f"{backend}/all_miss": sum(not any(group) for group in groups) / len(groups),
    }


def equal_share(outcomes: Iterable[Outcome], terms: Iterable[float | None]) -> dict[str, float]:
    """`groups/equal_reward`: share of groups whose completions all earn the same.

    Such a group teaches nothing. TRL's `frac_reward_zero_std` counts them too, but with
    `scale_rewards: batch` it looks at the spread of the whole batch instead.

    Args:
        outcomes: of whole groups, those of other ranks included.
        terms: their format terms, None or 0 without any. A row that no function rewards does not
            count: its search failed, or no backend applies and the user's function gives None.

    Returns:
        Nothing where no row counts.
    """
    earned: dict[Group, list[float]] = defaultdict(list)
    for outcome, term in zip(outcomes, terms, strict=True):
        if outcome.search is not None and (outcome.found or outcome.own is not None or term):
            earned[outcome.group].append(outcome.search + (outcome.own or 0.0) + (term or 0.0))
    equal = [max(values) - min(values) <= TOLERANCE for values in earned.values()]
    return {"groups/equal_reward": sum(equal) / len(equal)} if equal else {}


def cache_rate(backend: str, before: CacheInfo, after: CacheInfo) -> dict[str, float]:
    """Share of the step's texts that cost no search; empty where nothing was searched."""
    hits, misses = after.hits - before.hits, after.misses - before.misses
    return {f"{backend}/cache_hit_rate": hits / (hits + misses)} if hits + misses else {}
