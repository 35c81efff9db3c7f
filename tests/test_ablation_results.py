"""The files of a grid: matrix, tables, curves, and the page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rewriter.ablation.curves import curves
from rewriter.ablation.items import Item
from rewriter.ablation.results import write_results
from rewriter.ablation.state import Outcome, State
from rewriter.config import Config
from rewriter.records import write_records
from rewriter.report.matrix import Matrix as ReportMatrix
from tests.ablation_results import finished, results_grid
from tests.tiny_records import record


def test_the_files(tmp_path: Path) -> None:
    """One baseline, a run that is done, one that failed and one that is open."""
    config = Config.model_validate({"model": {"name": "x"}, "reward": {"backends": "lexical"}})
    grid = results_grid(seeds=[], matrices=[["on", "evaluated_on"]])
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
        rows = [record(name, "q", 0.5) for name in ("raw", system)]
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
    assert read.diagonal == {("lexical", "lexical"), ("semantic", "semantic")}
    assert read.values == [[(0.5, 0.5, 0.5), None]] * 2 + [[None, None]] * 2
    factors = json.loads((tmp_path / "factors.json").read_text())
    (factor,) = factors["factors"]
    assert (factor["axis"], factor["backend"]) == ("on", "lexical")
    assert [(level["name"], level["mean"]) for level in factor["levels"]] == [("lexical", 0.5)]
    assert factors["curves"] == [
        {
            "axis": "on",
            "runs": [
                {
                    "level": "lexical",
                    "name": "lexical.1",
                    "steps": [0, 2],
                    "completions": [0, 16],  # of TRL's 8 a step
                    "values": [0.25, 0.5],
                }
            ],
        }
    ]


def test_the_tables_beside_the_matrix(tmp_path: Path) -> None:
    test_the_files(tmp_path)
    assert (tmp_path / "curves.csv").read_text().splitlines() == [
        "run,level,step,completions,ndcg@3",
        "lexical.1,lexical,0,0,0.25",
        "lexical.1,lexical,2,16,0.5",
    ]
    assert (tmp_path / "factors.csv").read_text().splitlines() == [
        "axis,backend,level,mean,low,high,runs,queries,wanted",
        "on,lexical,lexical,0.5,0.5,0.5,1,1,1",
        "on,lexical,semantic,,,,0,,1",
        "on,lexical,mixed,,,,0,,1",
    ]
    # No other level has a run yet, so that nothing is lost.
    head = "axis,trained_on,evaluated_on,difference,low,high,runs,queries"
    assert (tmp_path / "transfers.csv").read_text() == f"{head}\n"
    assert "| lexical.1 | 0: 0.250, 16: 0.500 |" in (tmp_path / "results.md").read_text()


def test_a_grid_of_seeds_alone_has_curves(tmp_path: Path) -> None:
    grid, _, state = finished(tmp_path, ["one"])
    grid = results_grid(axes={}, seeds=[1, 2], matrices=[], evaluate=grid.evaluate.model_dump())
    config = Config.model_validate({"model": {"name": "x"}, "reward": {"backends": "lexical"}})
    (tmp_path / "evaluations.jsonl").write_text('{"step": 0, "score": 0.25}\n')
    item = Item("seed1.1", {"seed": "1"}, config, "s", "s")
    state.end(item, Outcome("done", "s", run=str(tmp_path)))
    (found,) = curves(grid, [item], state)
    assert (found["axis"], found["runs"][0]["values"]) == ("seed", [0.25])
    (tmp_path / "evaluations.jsonl").write_text("")
    assert curves(grid, [item], state) == []


def test_the_page_has_the_matrix_the_factors_and_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    from rewriter.report import write

    test_the_files(tmp_path)
    page = write(tmp_path / "report").read_text(encoding="utf-8")
    plots = {path.stem for path in (tmp_path / "report" / "plots").glob("*.svg")}
    assert {"transfer", "factor-on-lexical", "curve-on-0"} <= plots
    curve = (tmp_path / "report" / "plots" / "curve-on-0.svg").read_text(encoding="utf-8")
    assert ">completions<" in curve
    assert "One factor at a time" in page
    systems = [json.loads(line) for line in (tmp_path / "report" / "records.jsonl").open()]
    assert [(row["system"], len(row["hits"])) for row in systems] == [
        ("raw", 10),
        ("untrained", 10),
        ("lexical", 10),
    ]


def test_the_page_has_the_documents_of_all_evaluations(tmp_path: Path) -> None:
    write_results(*finished(tmp_path, ["one", "two"]), samples=100)
    folder = tmp_path / "report"
    found = {row["id"]: row for row in map(json.loads, (folder / "documents.jsonl").open())}
    assert list(found) == ["d0", "own0", "own1"]
    assert found["d0"]["image"] == "pages/0.png"
    assert (folder / "pages" / "0.png").read_bytes() == b"picture"
    assert (folder / "qrels.trec").read_text() == "q 0 d0 1\n"


def test_a_run_called_as_a_system_is_another_one_on_the_page(tmp_path: Path) -> None:
    write_results(*finished(tmp_path, ["raw"]), samples=100)
    rows = map(json.loads, (tmp_path / "report" / "records.jsonl").open())
    assert [row["system"] for row in rows] == ["raw-2"]


def test_what_an_earlier_grid_found_is_not_on_the_page(tmp_path: Path) -> None:
    grid, items, state = finished(tmp_path, ["one", "two"])
    write_results(grid, items, state, samples=100)
    changed = [replace(item, evaluation="other") for item in items]
    assert "| one | missing |" in write_results(grid, changed, state, samples=100)
    assert not (tmp_path / "report" / "records.jsonl").exists()


def test_a_warm_start_counts_what_it_sampled(tmp_path: Path) -> None:
    """A training set may have fewer prompts than it was to sample."""
    grid, _, state = finished(tmp_path, ["one"])
    values = {"model": {"name": "x"}, "reward": {"backends": "lexical"}}
    config = Config.model_validate(values | {"warm_start": {"prompts": 500}})
    item = Item("one.1", {"on": "one"}, config, "s", "s")
    state.end(item, Outcome("done", "s", run=str(tmp_path)))
    (tmp_path / "evaluations.jsonl").write_text('{"step": 2, "score": 0.25}\n')
    (one,) = curves(grid, [item], state)
    assert one["runs"][0]["completions"] == [500 * 8 + 2 * 8]
    (tmp_path / "warm_start").mkdir()
    (tmp_path / "warm_start" / "cost.json").write_text('{"completions": 96}')
    (one,) = curves(grid, [item], state)
    assert one["runs"][0]["completions"] == [96 + 2 * 8]
