"""What stands at the top of the page: sentences, and rows of systems × backends."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import rewriter.report.numbers as numbers
from rewriter.evaluation import HEADLINE, Result, Summary
from rewriter.report.gather import Source
from rewriter.tables import heading


@dataclass(frozen=True)
class Cell:
    """One system on one backend. Texts; `side` is "gain", "loss" or "".

    mean, interval: of the headline. change, change_interval, games: against the baseline.
    """

    mean: str = numbers.ABSENT
    interval: str = ""
    change: str = ""
    change_interval: str = ""
    games: str = ""
    side: str = ""


@dataclass(frozen=True)
class Row:
    """One system: its name, cells in the order of the backends, rewrites that failed."""

    name: str
    label: str
    cells: list[Cell]
    fallbacks: str


@dataclass(frozen=True)
class Column:
    """One backend, and of how many queries its means are."""

    name: str
    said: str


def columns(source: Source) -> list[Column]:
    """The backends."""
    return [Column(name, counted(systems.values())) for name, systems in source.result.items()]


def counted(summaries: Iterable[Summary]) -> str:
    """n = 119, 1 excluded, 0–2 failed: where systems differ, the smallest and the largest."""
    found = list(summaries)
    n = _range(summary[HEADLINE]["n"] for summary in found)
    others = {
        name: _range(summary.get(name, 0) for summary in found) for name in ("excluded", "failed")
    }
    said = [f"{count} {name}" for name, count in others.items() if count != "0"]
    return ", ".join([f"n = {n}", *said])


def rows(source: Source) -> list[Row]:
    """The systems."""
    return [_row(source, system) for system in source.systems]


def measures(result: Result) -> list[str]:
    """Keys of all measures, the headline first."""
    keys = {
        key: None
        for systems in result.values()
        for summary in systems.values()
        for key, found in summary.items()
        if isinstance(found, dict) and "mean" in found and "n" in found
    }
    return [HEADLINE, *(key for key in keys if key != HEADLINE)]


def main_system(source: Source) -> str | None:
    """The one that the page opens with: the trained one, else the last.

    None without another, and for a grid: it has many runs, and none of them stands for it.
    """
    others = [name for name in source.systems if name != source.baseline]
    if "trained" in others:
        return "trained"
    return others[-1] if others and source.matrix is None else None


def verdicts(source: Source) -> Iterator[dict[str, str]]:
    """For each backend one sentence: the main system against the baseline."""
    system, baseline = main_system(source), source.baseline
    for backend, systems in source.result.items():
        if system is None or baseline is None or system not in systems:
            continue
        before, after = systems[baseline][HEADLINE], systems[system][HEADLINE]
        found = systems[system][f"vs_{baseline}"]
        side = numbers.sign(found)
        yield {
            "backend": backend,
            "n": f"{after['n']:,}",
            "before": numbers.value(before["mean"]),
            "after": numbers.value(after["mean"]),
            "change": numbers.change(found["diff"]),
            "interval": numbers.interval(found, signed=True),
            "side": side,
            "said": {"gain": "better", "loss": "worse"}.get(side, "no clear difference"),
        }


def all_measures(source: Source) -> list[dict[str, Any]]:
    """One line for each backend and system: every mean with its interval and n."""
    keys = measures(source.result)
    return [
        {
            "backend": backend,
            "system": source.label(system),
            "values": [_mean(summary.get(key)) for key in keys],
        }
        for backend, systems in source.result.items()
        for system, summary in systems.items()
    ]


def comparisons(source: Source) -> list[dict[str, str]]:
    """Every paired comparison of the result: difference, interval, games, p where it is known."""
    return [
        {
            "backend": backend,
            "system": source.label(system),
            "baseline": source.label(baseline),
            "measure": heading(str(found.get("measure", HEADLINE))),
            "change": numbers.change(found["diff"]),
            "interval": numbers.interval(found, signed=True),
            "side": numbers.sign(found),
            "games": _games(found),
            "needed": _needed(source, summary, baseline, found),
            **_chances(summary, baseline, found),
        }
        for backend, systems in source.result.items()
        for system, summary in systems.items()
        for baseline, found in _versus(summary)
    ]


def breakdowns(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Column, such as the origin of the query → means of its parts, if it has several."""
    found: dict[str, list[dict[str, Any]]] = {}
    for backend, systems in source.result.items():
        for system, summary in systems.items():
            for column, parts in summary.get("by", {}).items():
                if len(parts["groups"]) > 1:
                    where = {"backend": backend, "system": source.label(system)}
                    found.setdefault(column, []).extend(where | part for part in _parts(parts))
    return found


def _row(source: Source, system: str) -> Row:
    found = [systems.get(system) for systems in source.result.values()]
    fallbacks = _range(summary.get("fallbacks", 0) for summary in found if summary)
    cells = [_cell(summary, source.baseline) for summary in found]
    return Row(system, source.label(system), cells, fallbacks)


def _range(counts: Iterable[int]) -> str:
    found = list(counts)
    return "–".join(f"{count:,}" for count in sorted({min(found), max(found)}))


def _cell(summary: Summary | None, baseline: str | None) -> Cell:
    if summary is None:
        return Cell()
    main, found = summary[HEADLINE], summary.get(f"vs_{baseline}")
    mean = numbers.value(main["mean"]), numbers.interval(main)
    if found is None:
        return Cell(*mean)
    moved = numbers.change(found["diff"]), numbers.interval(found, signed=True)
    return Cell(*mean, *moved, _games(found), numbers.sign(found))


def _mean(found: Summary | None) -> dict[str, str]:
    if found is None:
        return {"mean": numbers.ABSENT, "interval": "", "n": ""}
    n = str(found["n"])
    return {"mean": numbers.value(found["mean"]), "interval": numbers.interval(found), "n": n}


def _versus(summary: Summary) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, found in summary.items():
        kind, versus, baseline = key.partition("vs_")
        if versus and kind in {"", "primary_"} and isinstance(found, dict):
            yield baseline, found


def _chances(summary: Summary, baseline: str, found: dict[str, Any]) -> dict[str, str]:
    if "measure" in found:  # of the primary measure; the others are of NDCG@3
        values = {"p": found.get("p")}
    else:
        values = {
            "p": summary.get(f"p_vs_{baseline}"),
            "holm": summary.get(f"p_holm_vs_{baseline}"),
        }
    texts = {"p": numbers.ABSENT, "holm": numbers.ABSENT}
    return texts | {name: numbers.p(p) for name, p in values.items() if p is not None}


def _needed(source: Source, summary: Summary, baseline: str, found: dict[str, Any]) -> str:
    needed = summary.get("queries_needed")
    if needed is None or baseline != source.baseline or "measure" in found:
        return numbers.ABSENT
    return f"{needed:,}"


def _games(found: dict[str, float]) -> str:
    return f"{found['win']} / {found['tie']} / {found['loss']}"


def _parts(parts: dict[str, Any]) -> Iterator[dict[str, str]]:
    """NDCG@3 of the parts, then the collection's own measure, each with what stands behind it."""
    for key in (HEADLINE, *(key for key in parts["macro"] if key != HEADLINE)):
        named = {"measure": heading(key)}
        for name, group in parts["groups"].items():
            left = [f"{group[one]} {one}" for one in ("excluded", "failed") if group.get(one)]
            counts = {"left": ", ".join(left), "fallbacks": str(group.get("fallbacks", 0))}
            yield named | {"part": name, **_mean(group.get(key)), **counts}
        for kind in ("macro", "micro"):
            if key in parts[kind]:
                mean = {"mean": numbers.value(parts[kind][key]), "interval": "", "n": ""}
                yield named | {"part": f"{kind} average", **mean, "left": "", "fallbacks": ""}
