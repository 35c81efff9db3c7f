"""The report's numbers and tables."""

import re
from pathlib import Path
from typing import Any

from rewriter.evaluation import summarise
from rewriter.report import numbers, summary
from rewriter.report.diagnostics import diagnostics
from rewriter.report.gather import gather
from rewriter.tables import heading
from tests import report_folder
from tests.report_folder import records

folder, page = report_folder.folder, report_folder.page  # fixtures


def test_numbers() -> None:
    assert numbers.value(0.46984) == "0.470"
    assert [numbers.change(x) for x in (0.0992, -0.29067, -0.0001)] == [
        "+0.099",
        "−0.291",
        "+0.000",
    ]
    found = {"low": -0.0118, "high": 0.2088}
    assert numbers.interval(found) == "[−.012, .209]"
    assert numbers.interval(found, signed=True) == "[−.012, +.209]"
    assert numbers.interval({"low": 0.9, "high": 1.0}) == "[.900, 1.000]"
    assert [numbers.p(x) for x in (0.0823, 0.0001, 1.0)] == [".082", "< .001", "1.000"]
    keys = ("ndcg@3", "mrr", "recall@10", "graded_ndcg@3", "ndcg_exp@5", "graded_ndcg_exp@5")
    assert [heading(key) for key in keys] == [
        "NDCG@3",
        "MRR",
        "Recall@10",
        "graded NDCG@3",
        "NDCG@5 (2^grade)",
        "graded NDCG@5 (2^grade)",
    ]
    sides = [numbers.sign({"low": low, "high": high}) for low, high in ((1, 2), (-2, -1), (-1, 1))]
    assert sides == ["gain", "loss", ""]


def test_table_of_systems_and_backends(folder: Path) -> None:
    source = gather(folder)
    assert [(c.name, c.said) for c in summary.columns(source)] == [
        ("lexical", "n = 4, 1 excluded"),
        ("semantic", "n = 4, 1 excluded"),
    ]
    raw, trained = summary.rows(source)
    assert (raw.label, trained.label) == ("raw query", "trained rewriter")
    # raw: .63093, 1, 0, .5; trained: 1, 0, 0, .63093
    assert (raw.cells[0].mean, raw.cells[0].change) == ("0.533", "")
    cell = trained.cells[1]
    assert (cell.mean, cell.change, cell.games, cell.side) == ("0.408", "−0.125", "2 / 1 / 1", "")
    assert (raw.fallbacks, trained.fallbacks) == ("0", "1")
    first, second = summary.verdicts(source)
    assert (first["backend"], first["before"], first["after"]) == ("lexical", "0.533", "0.408")
    assert (second["change"], second["said"], second["n"]) == ("−0.125", "no clear difference", "4")


def test_numbers_of_the_page_say_what_they_are(page: str) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.partition('id="plots"')[0]))
    for said in (
        "n = 4, 1 excluded",
        "2 / 1 / 1",
        "Fallbacks: queries whose rewrite failed",
        "Intervals: 95% percentile bootstrap over queries",
        "paired by query",
    ):
        assert said in text


def test_where_systems_differ_counts_are_ranges() -> None:
    means = [
        {"ndcg@3": {"n": n}, "failed": failed, "excluded": 0} for n, failed in ((5, 0), (3, 2))
    ]
    assert summary.counted(means) == "n = 3–5, 0–2 failed"


def test_parts_by_origin(folder: Path) -> None:
    parts = summary.breakdowns(gather(folder))["origin"]
    raw = [part for part in parts if (part["backend"], part["system"]) == ("lexical", "raw query")]
    # human: q2 1; synthetic: .63093, 0, .5; macro (1 + .37698) / 2, micro .53273
    assert [(part["part"], part["mean"], part["n"]) for part in raw] == [
        ("human", "1.000", "1"),
        ("synthetic", "0.377", "3"),
        ("macro average", "0.688", ""),
        ("micro average", "0.533", ""),
    ]


def test_parts_show_the_collections_own_measure_and_what_is_left_out() -> None:
    rows = [r for r in records(backends=["lexical"]) if r.system == "raw"]
    result = summarise(rows, samples=100, primary="mrr@10")
    parts = summary.breakdowns(gather_like(result))["origin"]
    shown = [(p["measure"], p["part"], p["mean"], p["n"], p["left"]) for p in parts]
    # One query of the synthetic ones has nothing relevant. MRR: human 1; others 1/2, 0, 1/3.
    assert shown == [
        ("NDCG@3", "human", "1.000", "1", ""),
        ("NDCG@3", "synthetic", "0.377", "3", "1 excluded"),
        ("NDCG@3", "macro average", "0.688", "", ""),
        ("NDCG@3", "micro average", "0.533", "", ""),
        ("MRR@10", "human", "1.000", "1", ""),
        ("MRR@10", "synthetic", "0.278", "3", "1 excluded"),
        ("MRR@10", "macro average", "0.639", "", ""),
        ("MRR@10", "micro average", "0.458", "", ""),
    ]


def test_comparisons_name_p_and_queries_needed() -> None:
    found = {"diff": 0.1, "low": 0.05, "high": 0.15, "win": 3, "tie": 1, "loss": 0}
    trained = {
        "vs_raw": found,
        "p_vs_raw": 0.02,
        "p_holm_vs_raw": 0.04,
        "queries_needed": 1234,
        "primary_vs_raw": {"measure": "recall@5", **found, "n": 4, "p": 0.5},
    }
    source = gather_like({"lexical": {"raw": {}, "trained": trained}})
    headline, primary = summary.comparisons(source)
    assert (headline["measure"], headline["p"], headline["holm"]) == ("NDCG@3", ".020", ".040")
    assert (headline["needed"], headline["side"]) == ("1,234", "gain")
    assert (primary["measure"], primary["p"], primary["holm"]) == ("Recall@5", ".500", "–")


def gather_like(result: dict[str, Any]) -> Any:
    class Like:
        baseline = "raw"
        label = staticmethod(lambda name: name)

    like: Any = Like()
    like.result = result
    return like


def test_markdown_table(folder: Path) -> None:
    text = (folder / "table.md").read_text(encoding="utf-8")
    assert "| lexical, 4 test queries | NDCG@3 [95% CI] | MRR@10 | vs raw [95% CI] |" in text
    assert re.search(
        r"\| trained rewriter \| 0\.408 \[.*\] \| .* \| -0\.125 \[.*\] \| 2/1/1 \|", text
    )
    assert "Queries left out, having no relevant document: 1." in text
    assert "semantic, 4 test queries" in text


def test_diagnostics_become_tables() -> None:
    found = diagnostics(
        {"lexical": {"trained": {"length": 9.5, "n": 1200, "said": "x"}}, "note": 3}
    )
    assert [(t.heading, t.columns, t.rows) for t in found] == [
        ("lexical", ["length", "n"], [("trained", ["9.500", "1,200"])])
    ]
    assert [t.rows for t in diagnostics({"a": {"x": 1}, "b": {"y": 2}})] == [
        [("a", ["1", "–"]), ("b", ["–", "2"])]
    ]
    assert diagnostics(None) == diagnostics([1]) == []
