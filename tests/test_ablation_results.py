"""Cells, matrices and transfer losses, with values worked out by hand."""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import Hit
from rewriter.ablation.cells import Evaluated, difference, headline, mean_of, pooled
from rewriter.ablation.grid import Grid
from rewriter.ablation.items import Item
from rewriter.ablation.matrix import matrices, transfers
from rewriter.ablation.results import write_results
from rewriter.ablation.state import Outcome, State
from rewriter.config import Config
from rewriter.records import Record, write_records
from rewriter.report.matrix import Matrix as ReportMatrix

close = pytest.approx


def test_a_mean_over_runs_and_queries() -> None:
    found = mean_of([{"a": 0.0, "b": 1.0}, {"a": 0.5, "b": 1.0, "c": 9.0}], samples=2000)
    assert found is not None
    assert found.mean == close(2.5 / 4)  # only queries that both have
    assert (found.runs, found.queries) == (2, 2)
    # Both runs the first one and both queries a: 0, with a chance of 1/16; the best is 1.
    assert (found.low, found.high) == (0.0, 1.0)


def test_equal_values_have_no_interval() -> None:
    found = mean_of([{"a": 0.3, "b": 0.3}] * 3, samples=100)
    assert found is not None
    assert found[:3] == close((0.3, 0.3, 0.3))
    assert found.low <= found.mean <= found.high


def test_seeds_that_differ_widen_the_interval() -> None:
    queries = [str(n) for n in range(200)]
    one_run = mean_of([dict.fromkeys(queries, 0.5)], samples=500)
    apart = mean_of([dict.fromkeys(queries, 0.4), dict.fromkeys(queries, 0.6)], samples=500)
    assert one_run is not None
    assert apart is not None
    assert one_run.high - one_run.low == close(0)
    assert (apart.low, apart.high) == close((0.4, 0.6))


def test_with_one_run_it_is_the_bootstrap_over_queries() -> None:
    from rewards.comparison import mean_interval

    values = {str(n): (n % 7) / 6 for n in range(150)}
    mine, usual = mean_of([values]), mean_interval(list(values.values()))
    assert mine is not None
    assert mine.mean == close(usual.mean)
    assert (mine.low, mine.high) == close((usual.low, usual.high), abs=0.005)


def test_nothing_has_no_mean() -> None:
    assert mean_of([]) is None
    assert mean_of([{"a": 1.0}, {"b": 1.0}]) is None
    assert pooled([]) is None


def test_differences_are_paired_by_run_and_query() -> None:
    ones = {"seed1": {"a": 1.0, "b": 0.5}, "seed2": {"a": 0.0}, "seed3": {"a": 0.9}}
    others = {"seed1": {"a": 0.5, "b": 0.0}, "seed2": {"a": 0.5, "c": 1.0}}
    found = difference(ones, others, samples=200)
    assert found is not None
    # Query a alone is in both seeds: +.5 and −.5.
    assert (found.mean, found.runs, found.queries) == (0.0, 2, 1)
    assert (found.low, found.high) == (-0.5, 0.5)


def test_pooling_is_over_backends_within_a_query() -> None:
    lexical = {"seed1": {"a": -0.2, "b": 0.0}}
    semantic = {"seed1": {"a": 0.4, "b": 0.2}, "seed2": {"a": 1.0, "b": 1.0}}
    found = pooled([lexical, semantic], samples=200)
    assert found is not None
    assert (found.mean, found.low, found.high) == close((0.1, 0.1, 0.1))
    assert found.runs == 1


def _grid(**more: Any) -> Grid:
    axes = {
        "on": {
            "lexical": {"reward.backends": "lexical"},
            "semantic": {"reward.backends": "semantic"},
            "mixed": {"reward.backends": ["lexical", "semantic"]},
        }
    }
    values: dict[str, Any] = {
        "base": "b",
        "output": "o",
        "axes": axes,
        "seeds": [1, 2],
        "evaluate": {"backends": ["lexical", "semantic"], "systems": ["raw"]},
        "matrices": [["on", "evaluated_on"], ["on", "seed"]],
    }
    return Grid.model_validate(values | more)


def _at(on: str, seed: int, lexical: float, semantic: float) -> Evaluated:
    values = {"lexical": {"q": lexical, "r": lexical}, "semantic": {"q": semantic, "r": semantic}}
    return Evaluated(f"{on}-{seed}", {"on": on, "seed": str(seed)}, values)


FOUND = [
    Evaluated("raw", {}, {"lexical": {"q": 0.5, "r": 0.5}, "semantic": {"q": 0.25, "r": 0.25}}),
    _at("lexical", 1, 0.75, 0.25),
    _at("lexical", 2, 0.75, 0.25),
    _at("semantic", 1, 0.5, 0.5),
    _at("mixed", 1, 0.5, 0.5),
    _at("mixed", 2, 0.5, 0.5),
]


def test_the_matrix_of_training_and_evaluation() -> None:
    matrix = matrices(_grid(), FOUND, samples=100)[0]
    assert matrix.rows == ["raw", "lexical", "semantic", "mixed"]
    values = matrix.as_json()["values"]
    assert [[cell[0] for cell in row] for row in values] == [
        [0.5, 0.25],
        [0.75, 0.25],
        [0.5, 0.5],
        [0.5, 0.5],
    ]
    assert matrix.as_json()["diagonal"] == [["lexical", "lexical"], ["semantic", "semantic"]]
    assert matrix.as_json()["runs"] == [[[1, 1]] * 2, [[2, 2]] * 2, [[1, 2]] * 2, [[2, 2]] * 2]
    assert matrix.as_markdown().splitlines() == [
        "| on ↓, evaluated_on → | lexical | semantic |",
        "| --- | --: | --: |",
        "| raw | 0.500 [.500, .500] | 0.250 [.250, .250] |",
        "| lexical | ◆ 0.750 [.750, .750] | 0.250 [.250, .250] |",
        "| semantic | 0.500 [.500, .500] (1 of 2 runs) | ◆ 0.500 [.500, .500] (1 of 2 runs) |",
        "| mixed | 0.500 [.500, .500] | 0.500 [.500, .500] |",
    ]


def test_what_is_missing_is_shown_as_missing() -> None:
    grid = _grid(exclude=[{"on": "mixed", "seed": 2}])
    by_backend, by_seed, *_ = matrices(grid, FOUND[:2], samples=100)
    assert by_backend.as_json()["values"][2:] == [[None, None], [None, None]]
    assert "| semantic | missing | missing |" in by_backend.as_markdown()
    rows = list(csv.DictReader(StringIO(by_backend.as_csv())))
    assert rows[4] == {
        "on": "semantic",
        "evaluated_on": "lexical",
        "ndcg@3": "",
        "low": "",
        "high": "",
        "queries": "",
        "runs": "0",
        "wanted": "2",
        "diagonal": "0",
    }
    assert (rows[2]["ndcg@3"], rows[2]["runs"], rows[2]["diagonal"]) == ("0.75", "1", "1")
    # A combination that is excluded is not missing.
    assert by_seed.as_markdown().splitlines()[-1] == "| mixed | missing | – |"


def test_any_two_axes_on_each_backend() -> None:
    _, lexical, semantic = matrices(_grid(), FOUND, samples=100)
    assert (lexical.title, semantic.title) == ("on.seed.lexical", "on.seed.semantic")
    assert (lexical.rows, lexical.columns) == (["lexical", "semantic", "mixed"], ["1", "2"])
    assert [[c and c[0] for c in row] for row in semantic.as_json()["values"]] == [
        [0.25, 0.25],
        [0.5, None],
        [0.5, 0.5],
    ]
    assert semantic.as_json()["diagonal"] == []


def test_transfer_losses() -> None:
    lost = transfers(_grid(), FOUND, "on", samples=100)
    named = {(one.trained_on, one.evaluated_on): (one.found.mean, one.found.runs) for one in lost}
    assert named == {
        ("lexical", "semantic"): (-0.25, 1),  # seed 2 has no semantic run to compare with
        ("semantic", "lexical"): (-0.25, 1),
        ("mixed", "lexical"): (-0.25, 2),
        ("mixed", "semantic"): (0.0, 1),
        ("mixed", None): (-0.125, 1),
    }


def _record(system: str, backend: str, query: str, value: float | None) -> Record:
    return Record(
        system=system,
        backend=backend,
        split="test",
        query_id=query,
        origin="human",
        query="text",
        rewrite=None,
        failure=None,
        text="text",
        hits=tuple(Hit(f"d{n}", 1.0) for n in range(20)),
        grades=(1.0, *[0.0] * 19),
        metrics={} if value is None else {"ndcg@3": value},
    )


def test_a_query_without_a_mean_is_left_out() -> None:
    records = [_record("a", "lexical", "q", 0.5), _record("a", "lexical", "r", None)]
    assert headline([*records, _record("b", "lexical", "q", 1.0)], "a") == {"lexical": {"q": 0.5}}


def test_the_files(tmp_path: Path) -> None:
    """One baseline, a run that is done, one that failed and one that is open."""
    config = Config.model_validate({"model": {"name": "x"}, "reward": {"backends": "lexical"}})
    grid = _grid(seeds=[], matrices=[["on", "evaluated_on"]])
    state = State(tmp_path)
    items = [Item("baselines.0", {}, config, "0", "0")]
    items += [
        Item(f"{on}.1", {"on": on}, config, on, "e") for on in ("lexical", "semantic", "mixed")
    ]
    run = tmp_path / "run"
    run.mkdir()
    (run / "evaluations.jsonl").write_text(
        '{"step": 0, "score": 0.25}\n{"step": 2, "score": 0.5}\n'
    )
    for item, system in ((items[0], "untrained"), (items[1], "trained")):
        rows = [_record(name, "lexical", "q", 0.5) for name in ("raw", system)]
        write_records(rows, state.evaluation(item) / "records.jsonl")
        state.end(item, Outcome("done", item.evaluation, run=str(run) if item.trains else None))
    state.end(items[2], Outcome("failed", "e", "train", "no such model"))
    text = write_results(grid, items, state, samples=100)
    assert f"- semantic.1 (train): no such model; see {tmp_path}/logs/semantic.1.log" in text
    assert "Not over yet: mixed.1." in text
    assert "| lexical | ◆ 0.500 [.500, .500] | missing |" in text
    assert (tmp_path / "results.md").read_text() == text + "\n"
    read = ReportMatrix.read(tmp_path / "matrix.json")
    assert read is not None
    assert (read.rows, read.columns) == (
        ["raw", "lexical", "semantic", "mixed"],
        ["lexical", "semantic"],
    )
    assert read.values == [[(0.5, 0.5, 0.5), None]] * 2 + [[None, None]] * 2
    factors = json.loads((tmp_path / "factors.json").read_text())
    (factor,) = factors["factors"]
    assert (factor["axis"], factor["backend"]) == ("on", "lexical")
    assert [(level["name"], level["mean"]) for level in factor["levels"]] == [("lexical", 0.5)]
    assert factors["curves"] == [
        {
            "axis": "on",
            "runs": [
                {"level": "lexical", "name": "lexical.1", "steps": [0, 2], "values": [0.25, 0.5]}
            ],
        }
    ]


def test_the_page_has_the_matrix_the_factors_and_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    from rewriter.report import write

    test_the_files(tmp_path)
    page = write(tmp_path / "report").read_text(encoding="utf-8")
    plots = {path.stem for path in (tmp_path / "report" / "plots").glob("*.svg")}
    assert {"transfer", "factor-on-lexical", "curve-on-0"} <= plots
    assert "One factor at a time" in page
    systems = [json.loads(line) for line in (tmp_path / "report" / "records.jsonl").open()]
    assert [(row["system"], len(row["hits"])) for row in systems] == [
        ("raw", 10),
        ("untrained", 10),
        ("lexical", 10),
    ]
