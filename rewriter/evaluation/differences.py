"""Two result folders side by side: what differs besides the system, and what the systems gain.

found = compare(Path("runs/a-eval"), Path("runs/b-eval"))
found.differences   must be empty for the figures to mean anything
found.pairs         backend, system of the first, system of the second, paired difference, and in
                    what the two systems were made otherwise: model, prompt, decoding
found.alone         what only one of the folders has, so that it is not compared
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rewards.comparison import SAMPLES, Paired, paired
from rewriter.evaluation.facts import Difference, differences, made_otherwise
from rewriter.evaluation.folder import read_facts
from rewriter.evaluation.judging import HEADLINE, EvaluationError
from rewriter.evaluation.summary import pair
from rewriter.records import Record, by, read_records


class SystemPair(NamedTuple):
    """One system of each folder, on one backend: means of NDCG@3, and second − first.

    left_out: queries that only one of the two counts. made: how the two were made otherwise.
    """

    backend: str
    first: str
    second: str
    means: tuple[float, float]
    found: Paired
    left_out: int
    made: list[Difference]


class Alone(NamedTuple):
    """A "backend" or "system" that only one folder has, by its name."""

    what: str
    name: str
    folder: Path


@dataclass(frozen=True)
class Comparison:
    """What `compare` found."""

    differences: list[Difference]
    pairs: list[SystemPair]
    alone: list[Alone]


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
    folders, facts = (first, second), (read_facts(first), read_facts(second))
    parted = [_parted(read_records(folder / "records.jsonl")) for folder in folders]
    backends = [name for name in parted[0] if name in parted[1]]
    if not backends:
        raise EvaluationError(
            f"{first} has the backends {', '.join(parted[0])}, {second} has "
            f"{', '.join(parted[1])}: there is nothing to compare"
        )
    pairs: list[SystemPair] = []
    for backend in backends:
        sides = parted[0][backend], parted[1][backend]
        for names in _names(sides, folders, systems):
            made = list(made_otherwise(facts, names))
            pairs.append(_pair(backend, names, *sides, samples, made))
    alone = list(_alone("backend", parted, folders))
    if systems is None:
        told = [{pair.first for pair in pairs}, {pair.second for pair in pairs}]
        left = [
            [name for one in some.values() for name in one if name not in known]
            for some, known in zip(parted, told, strict=True)
        ]
        alone += _alone("system", left, folders)
    return Comparison(list(differences(*facts)), pairs, alone)


def _alone(what: str, names: Sequence[Collection[str]], folders: Sequence[Path]) -> Iterator[Alone]:
    for own, others, folder in zip(names, reversed(names), folders, strict=True):
        for name in dict.fromkeys(own):
            if name not in others:
                yield Alone(what, name, folder)


def _parted(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    return {backend: by(rows, "system") for backend, rows in by(records, "backend").items()}


def _names(
    sides: tuple[Mapping[str, Any], Mapping[str, Any]],
    folders: tuple[Path, Path],
    systems: tuple[str, str] | None,
) -> list[tuple[str, str]]:
    first, second = sides
    if systems is not None:
        for name, side, folder in zip(systems, sides, folders, strict=True):
            if name not in side:
                raise EvaluationError(f"{folder}: no system {name!r}; there are: {', '.join(side)}")
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
    made: list[Difference],
) -> SystemPair:
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
    return SystemPair(backend, *names, (means[0], means[1]), found, left_out, made)
