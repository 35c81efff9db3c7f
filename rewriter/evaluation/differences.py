"""Two result folders side by side: what differs besides the system, and what the systems gain.

found = compare(Path("runs/a-eval"), Path("runs/b-eval"))
found.differences   must be empty for the figures to mean anything
found.pairs         backend, system of the first, system of the second, paired difference
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rewards.comparison import SAMPLES, Paired, paired
from rewriter.evaluation.folder import read_facts
from rewriter.evaluation.judging import HEADLINE, EvaluationError
from rewriter.evaluation.summary import pair
from rewriter.records import Record, by, read_records

# Of the facts, what must be equal. The systems are what is compared; the configuration is compared
# by what it did: documents, backends, measures.
SAME: tuple[str, ...] = (
    "collection",
    "documents",
    "split",
    "queries",
    "qrels",
    "measures",
    "depth",
)
SAME += ("primary", "subset", "drop_query_id", "backends", "versions")
ABSENT = "absent"


class Difference(NamedTuple):
    """A fact that is not the same in both folders; values as texts."""

    key: str
    first: str
    second: str


class SystemPair(NamedTuple):
    """One system of each folder, on one backend: means of NDCG@3, and second − first."""

    backend: str
    first: str
    second: str
    means: tuple[float, float]
    found: Paired


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. left_out: backend → queries that only one of the folders counts."""

    differences: list[Difference]
    pairs: list[SystemPair]
    left_out: Mapping[str, int]


def compare(
    first: Path,
    second: Path,
    systems: tuple[str, str] | None = None,
    *,
    samples: int = SAMPLES,
) -> Comparison:
    """Compare two finished folders.

    Args:
        first, second: the folders.
        systems: one of the first and one of the second; None: those with the same name in both,
            and those that only one folder has where it is one each.
        samples: bootstrap resamples.

    Raises:
        EvaluationError: a folder is not finished, or has no such system or no common backend.
    """
    one, other = read_facts(first), read_facts(second)
    records = [read_records(folder / "records.jsonl") for folder in (first, second)]
    parted = [_parted(some) for some in records]
    backends = [name for name in parted[0] if name in parted[1]]
    if not backends:
        raise EvaluationError(
            f"{first} has the backends {', '.join(parted[0])}, {second} has "
            f"{', '.join(parted[1])}: there is nothing to compare"
        )
    pairs: list[SystemPair] = []
    left_out = {}
    for backend in backends:
        sides = parted[0][backend], parted[1][backend]
        for names in _names(sides[0], sides[1], systems):
            made, left_out[backend] = _pair(backend, names, *sides, samples)
            pairs.append(made)
    return Comparison(list(differences(one, other)), pairs, left_out)


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Difference]:
    """Facts that differ, besides the systems; of nested ones the innermost key."""
    for key in SAME:
        for name, one, other in _walk(key, first.get(key, ABSENT), second.get(key, ABSENT)):
            yield Difference(name, _text(one), _text(other))


def _walk(key: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for inner in dict.fromkeys([*one, *other]):
            yield from _walk(f"{key}.{inner}", one.get(inner, ABSENT), other.get(inner, ABSENT))
    elif one != other:
        yield key, one, other


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _parted(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    return {backend: by(rows, "system") for backend, rows in by(records, "backend").items()}


def _names(
    first: Mapping[str, Any], second: Mapping[str, Any], systems: tuple[str, str] | None
) -> list[tuple[str, str]]:
    if systems is not None:
        for name, side in zip(systems, (first, second), strict=True):
            if name not in side:
                raise EvaluationError(f"no system {name!r}; there are: {', '.join(side)}")
        return [systems]
    same = [(name, name) for name in first if name in second]
    alone = [name for name in first if name not in second]
    others = [name for name in second if name not in first]
    return same + ([(alone[0], others[0])] if len(alone) == len(others) == 1 else [])


def _pair(
    backend: str,
    names: tuple[str, str],
    first: Mapping[str, Sequence[Record]],
    second: Mapping[str, Sequence[Record]],
    samples: int,
) -> tuple[SystemPair, int]:
    rows = first[names[0]], second[names[1]]
    one, other = ({r.query_id: r.metrics[HEADLINE] for r in some if r.metrics} for some in rows)
    one, other = pair(one, other, *rows)
    common = [query for query in one if query in other]
    if not common:
        raise EvaluationError(f"{backend}: no query is counted in both folders")
    left_out = len({*one, *other}) - len(common)
    values = [{query: side[query] for query in common} for side in (one, other)]
    means = tuple(sum(side.values()) / len(common) for side in values)
    found = paired(values[1], values[0], samples=samples)
    return SystemPair(backend, *names, (means[0], means[1]), found), left_out
