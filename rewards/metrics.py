"""Retrieval measures per query: the one scorer behind reward, evaluation and report.

The conventions are those of trec_eval, ir_measures and pytrec_eval: discount 1 / log2(rank + 1),
ideal ranking over all judged documents, a grade of 0 or below is not relevant and gains nothing. A
document that a ranking repeats counts at its first place only; what follows moves up.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, count
from math import fsum, log2
from operator import mul
from re import fullmatch
from typing import Literal, TypeAlias

Gains: TypeAlias = Literal["linear", "exponential"]
Ranking: TypeAlias = Sequence[str]
Grades: TypeAlias = Mapping[str, float]

GAINS: dict[Gains, Callable[[float], float]] = {
    "linear": float,
    "exponential": lambda grade: 2.0**grade - 1.0,
}


class MetricError(ValueError):
    """A measure, cutoff or gain that does not exist, or a mean over nothing."""


@dataclass(slots=True)
class _Found:
    """Where one query's relevant documents stand: all that any measure needs, worked out once."""

    ranks: list[int]  # of the relevant documents that were found, ascending, the first is 1
    grades: list[float]  # of the same documents, in the same order
    ideal: list[float]  # grades of every relevant document, highest first
    length: int  # of the ranking, repeats removed
    curves: dict[Gains, tuple[list[float], list[float]]] = field(default_factory=dict)

    def hits(self, k: int | None) -> int:
        """Number of relevant documents within the first k ranks."""
        return len(self.ranks) if k is None else bisect_right(self.ranks, k)

    def curve(self, gains: Gains) -> tuple[list[float], list[float]]:
        """Cumulated DCG, found and ideal, so that every cutoff is one look-up."""
        if gains not in self.curves:
            ideal = _cumulate(self.ideal, range(1, len(self.ideal) + 1), gains)
            self.curves[gains] = _cumulate(self.grades, self.ranks, gains), ideal
        return self.curves[gains]


@cache
def _discount(rank: int) -> float:
    return 1.0 / log2(rank + 1)


def _cumulate(grades: Iterable[float], ranks: Iterable[int], gains: Gains) -> list[float]:
    return list(accumulate(map(mul, map(GAINS[gains], grades), map(_discount, ranks))))


def _find(ranking: Ranking, grades: Grades) -> _Found:
    # Both would be iterated without complaint: a text by its characters, {doc: score} by insertion.
    if isinstance(ranking, (str, dict)):
        raise TypeError(
            f"a ranking is a list of document ids, best first, not {type(ranking).__name__}"
        )
    relevant = {doc: grade for doc, grade in grades.items() if grade > 0}
    place = dict(zip(ranking, count(1)))
    if len(place) < len(ranking):  # a repeated document has its last rank there
        place = dict(zip(dict.fromkeys(ranking), count(1)))
    # Few are relevant: to look for them costs less than to look at the whole list.
    places = sorted((place[doc], doc) for doc in relevant.keys() & place.keys())
    return _Found(
        ranks=[rank for rank, _ in places],
        grades=[relevant[doc] for _, doc in places],
        ideal=sorted(relevant.values(), reverse=True),
        length=len(place),
    )


# Each measure for a query with `hits` relevant documents within the first k, at least one: without
# any, every measure is 0.


def _ndcg(found: _Found, hits: int, k: int | None, gains: Gains) -> float:
    dcg, ideal = found.curve(gains)
    return dcg[hits - 1] / ideal[-1 if k is None else min(k, len(ideal)) - 1]


def _mrr(found: _Found, hits: int, k: int | None, gains: Gains) -> float:
    return 1.0 / found.ranks[0]


def _recall(found: _Found, hits: int, k: int | None, gains: Gains) -> float:
    return hits / len(found.ideal)


def _precision(found: _Found, hits: int, k: int | None, gains: Gains) -> float:
    return hits / (k or found.length)


def _hit(found: _Found, hits: int, k: int | None, gains: Gains) -> float:
    return 1.0


MEASURES: dict[str, Callable[[_Found, int, int | None, Gains], float]] = {
    "ndcg": _ndcg,
    "mrr": _mrr,
    "recall": _recall,
    "precision": _precision,
    "hit": _hit,
}


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff: `Measure.parse("ndcg@3")(["b", "a"], {"a": 1})` is 0.63093.

    k: number of ranks looked at, None for the whole list. gains: for ndcg only; "exponential" is
    2^grade - 1. Raises MetricError for anything that does not exist.
    """

    name: str
    k: int | None = None
    gains: Gains = "linear"

    def __post_init__(self) -> None:
        if self.name not in MEASURES:
            raise _unknown(self.name)
        if self.k is not None and (not isinstance(self.k, int) or self.k < 1):
            raise MetricError(f"{self.name}: k is {self.k!r}; give a whole number from 1, or no k")
        if self.gains not in GAINS:
            raise MetricError(f"gains {self.gains!r} is unknown; choose one of {', '.join(GAINS)}")
        if self.gains != "linear" and self.name != "ndcg":
            raise MetricError(f"{self.name} has no gains; leave out {self.gains!r}")

    @classmethod
    def parse(cls, text: str) -> "Measure":
        """Read "ndcg@3", "ndcg_exp@5", "mrr" or "recall@100", in any case; raises MetricError."""
        match = fullmatch(r"([a-z]+)(_exp)?(?:@(-?\d+))?", text.strip().lower())
        if match is None or match[1] not in MEASURES:
            raise _unknown(text)
        k = None if match[3] is None else int(match[3])
        return cls(match[1], k, "exponential" if match[2] else "linear")

    def __str__(self) -> str:
        """The key that `parse` reads back and results are stored under: "ndcg@3"."""
        name = self.name if self.gains == "linear" else f"{self.name}_exp"
        return name if self.k is None else f"{name}@{self.k}"

    def __call__(self, ranking: Ranking, grades: Grades) -> float:
        """Value in [0, 1] for one query; 0 where `grades` has nothing relevant (see `evaluate`)."""
        found = _find(ranking, grades)
        hits = found.hits(self.k)
        return MEASURES[self.name](found, hits, self.k, self.gains) if hits else 0.0


def _unknown(given: str) -> MetricError:
    return MetricError(
        f"measure {given!r} is unknown; choose one of {', '.join(MEASURES)}, or ndcg_exp for "
        'exponential gains, and add a cutoff as @k: "ndcg@3"'
    )


def ndcg(ranking: Ranking, grades: Grades, k: int | None = None, gains: Gains = "linear") -> float:
    """Discounted gain of the first k over the ideal one's (Järvelin and Kekäläinen, 2002)."""
    return Measure("ndcg", k, gains)(ranking, grades)


def mrr(ranking: Ranking, grades: Grades, k: int | None = None) -> float:
    """1 / rank of the first relevant document, 0 if none is within the first k."""
    return Measure("mrr", k)(ranking, grades)


def recall(ranking: Ranking, grades: Grades, k: int | None = None) -> float:
    """Share of all relevant documents that the first k hold, found in the collection or not."""
    return Measure("recall", k)(ranking, grades)


def precision(ranking: Ranking, grades: Grades, k: int | None = None) -> float:
    """Relevant documents within the first k, over k; without k, over the list's length."""
    return Measure("precision", k)(ranking, grades)


def hit(ranking: Ranking, grades: Grades, k: int | None = None) -> float:
    """1 if any relevant document is within the first k, else 0 (Success@k elsewhere)."""
    return Measure("hit", k)(ranking, grades)


@dataclass(frozen=True)
class Evaluation:
    """A scored run. per_query: measure key -> query id -> value, queries in qrels order."""

    per_query: dict[str, dict[str, float]]
    excluded: list[str]  # queries without a relevant document: in no mean
    unjudged: list[str]  # queries of the run that the qrels do not know

    @property
    def n(self) -> int:
        """Number of queries in every mean."""
        return len(next(iter(self.per_query.values())))

    def mean(self, key: "str | Measure") -> float:
        """Mean over the n queries, those without hits included; raises MetricError if n is 0."""
        values = self.per_query.get(str(key))
        if values is None:
            raise MetricError(f"{key} was not computed; choose one of {', '.join(self.per_query)}")
        if not values:
            raise MetricError(
                f"{key} has no mean: none of the {len(self.excluded)} queries in the qrels has a "
                "document of grade above 0; check that these are the right qrels"
            )
        return fsum(values.values()) / len(values)


def evaluate(
    run: Mapping[str, Ranking],
    qrels: Mapping[str, Grades],
    measures: Sequence[Measure | str],
) -> Evaluation:
    """Score a run (query -> document ids, best first) against qrels (query -> document -> grade).

    The qrels decide which queries count: one that the run lacks scores 0, one without a relevant
    document is excluded and listed. Raises MetricError for an unknown measure or none.
    """
    if isinstance(measures, str) or not measures:
        raise MetricError(f'measures is {measures!r}; give a list such as ["ndcg@3", "mrr"]')
    chosen = [m if isinstance(m, Measure) else Measure.parse(m) for m in measures]
    per_query: dict[str, dict[str, float]] = {str(m): {} for m in chosen}
    plan = {
        k: [(per_query[str(m)], MEASURES[m.name], m.gains) for m in chosen if m.k == k]
        for k in dict.fromkeys(m.k for m in chosen)
    }
    excluded = []
    for query, grades in qrels.items():
        found = _find(run.get(query, ()), grades)
        if not found.ideal:
            excluded.append(query)
            continue
        for k, parts in plan.items():
            hits = found.hits(k)
            for column, measure, gains in parts:
                column[query] = measure(found, hits, k, gains) if hits else 0.0
    return Evaluation(per_query, excluded, [query for query in run if query not in qrels])


def dangling(qrels: Mapping[str, Grades], ids: Container[str]) -> list[tuple[str, str]]:
    """Judged (query, document) pairs whose document is not in `ids` (a set or dict, for speed).

    To report, not to drop: they still count in the ideal ranking and in recall, as in every
    outside tool.
    """
    return [(query, doc) for query, grades in qrels.items() for doc in grades if doc not in ids]
