"""How far two annotators agree, what they disagree on, and the judgements that come of it.

    found = agreement(first, second)
    found.raw, found.kappa, found.quadratic
    merged = merge(first, second, settled)

Measured over the pairs (query, document) that both judged. Cohen's kappa takes off the agreement
that chance alone would bring (Cohen, 1960); the weighted forms count a disagreement by how far the
two grades lie apart, or by the square of it (Cohen, 1968).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple, TypeAlias

from rewards.metrics import Grades

BAR = 0.85  # raw agreement that judgements should reach before they are used

Pair: TypeAlias = tuple[str, str]  # query id, document id
Judgements: TypeAlias = Mapping[str, Grades]


class AgreementError(ValueError):
    """Judgements that cannot be compared or merged."""


class Conflict(NamedTuple):
    """A pair to settle: the two grades, None where an annotator did not judge it."""

    query: str
    document: str
    first: float | None
    second: float | None


@dataclass(frozen=True)
class Agreement:
    """What two annotators have in common.

    Attributes:
        n: pairs that both judged.
        raw: share of them with equal grades.
        kappa, linear, quadratic: Cohen's kappa, unweighted and with the two weights; None where
            both gave one and the same grade throughout, so that chance alone would agree too.
        only_first, only_second: pairs that one of them judged alone.
        conflicts: pairs with unequal grades, then those judged by one alone; by query.
    """

    n: int
    raw: float
    kappa: float | None
    linear: float | None
    quadratic: float | None
    only_first: int
    only_second: int
    conflicts: tuple[Conflict, ...]

    @property
    def reached(self) -> bool:
        """Whether the raw agreement reaches the bar of 85%."""
        return self.raw >= BAR


def agreement(first: Judgements, second: Judgements) -> Agreement:
    """Compare the judgements of two annotators.

    Raises:
        AgreementError: there is no pair that both judged.
    """
    one, other = _pairs(first), _pairs(second)
    both = [pair for pair in one if pair in other]
    if not both:
        raise AgreementError(
            f"no pair of query and document is judged by both ({len(one)} by the first, "
            f"{len(other)} by the second); check that the ids are of one collection"
        )
    grades = [(one[pair], other[pair]) for pair in both]
    unequal = [pair for pair in both if one[pair] != other[pair]]
    alone = [pair for pair in [*one, *other] if (pair in one) != (pair in other)]
    return Agreement(
        n=len(both),
        raw=sum(a == b for a, b in grades) / len(both),
        kappa=_kappa(grades, lambda a, b: float(a != b)),
        linear=_kappa(grades, lambda a, b: abs(a - b)),
        quadratic=_kappa(grades, lambda a, b: (a - b) ** 2),
        only_first=sum(pair in one for pair in alone),
        only_second=sum(pair in other for pair in alone),
        conflicts=tuple(
            Conflict(*pair, one.get(pair), other.get(pair)) for pair in unequal + alone
        ),
    )


def merge(
    first: Judgements, second: Judgements, settled: Judgements | None = None
) -> dict[str, dict[str, float]]:
    """One set of judgements: what both agree on, and for the rest what a third one settled.

    Args:
        first, second: of the two annotators.
        settled: grades of the conflicts; where it judges what the two agree on, theirs stands.

    Raises:
        AgreementError: a conflict is not settled, or `settled` judges a pair that neither did.
    """
    one, other, third = _pairs(first), _pairs(second), _pairs(settled or {})
    check_settled(first, second, settled or {})
    merged: dict[str, dict[str, float]] = {}
    open_pairs: list[Pair] = []
    for pair in dict.fromkeys([*one, *other]):
        agreed = pair in one and pair in other and one[pair] == other[pair]
        if not agreed and pair not in third:
            open_pairs.append(pair)
            continue
        merged.setdefault(pair[0], {})[pair[1]] = one[pair] if agreed else third[pair]
    if open_pairs:
        raise AgreementError(
            f"{len(open_pairs)} conflicts are not settled, for example query {open_pairs[0][0]!r}, "
            f"document {open_pairs[0][1]!r}; give each a grade first"
        )
    return merged


def check_settled(first: Judgements, second: Judgements, settled: Judgements) -> None:
    """Raise AgreementError where `settled` judges a pair that neither annotator did."""
    one, other = _pairs(first), _pairs(second)
    strange = [pair for pair in _pairs(settled) if pair not in one and pair not in other]
    if strange:
        raise AgreementError(
            f"{len(strange)} settled pairs are in neither set of judgements, for example query "
            f"{strange[0][0]!r}, document {strange[0][1]!r}; remove them, or check the ids"
        )


def _pairs(judgements: Judgements) -> dict[Pair, float]:
    return {
        (query, document): float(grade)
        for query, grades in judgements.items()
        for document, grade in grades.items()
    }


def _kappa(
    grades: list[tuple[float, float]], distance: Callable[[float, float], float]
) -> float | None:
    """1 − observed over expected disagreement; None where none is expected."""
    n = len(grades)
    first, second = Counter(a for a, _ in grades), Counter(b for _, b in grades)
    observed = fsum(distance(a, b) for a, b in grades) / n
    expected = fsum(
        distance(a, b) * count * other for a, count in first.items() for b, other in second.items()
    ) / (n * n)
    return None if expected == 0 else 1 - observed / expected
