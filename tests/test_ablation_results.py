"""Cells, matrices and transfer losses, with values worked out by hand."""

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import Hit
from rewriter.ablation.cells import Evaluated, difference, headline, mean_of, pooled
from rewriter.ablation.curves import completions_at, curves
from rewriter.ablation.grid import Grid, read_grid
from rewriter.ablation.items import Item, plan
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


def test_what_a_level_was_trained_for_is_read_from_its_reward() -> None:
    """Levels may be called as one likes; one that sets no reward was trained for none of them."""
    axes = {
        "on": {
            "bm25": {"reward.backends": "lexical"},
            "vectors": {"reward.backends": {"semantic": 1.0}},
            "hybrid": {"lora.r": 8},
        }
    }
    evaluate = {"backends": ["lexical", "semantic", "hybrid"], "systems": ["raw"]}
    grid = _grid(axes=axes, seeds=[], evaluate=evaluate, matrices=[])
    values = {"lexical": {"q": 0.5}, "semantic": {"q": 0.25}, "hybrid": {"q": 1.0}}
    found = [Evaluated(on, {"on": on}, values) for on in axes["on"]]
    (matrix,) = matrices(grid, found, samples=100)
    assert matrix.as_json()["diagonal"] == [["bm25", "lexical"], ["vectors", "semantic"]]
    lost = transfers(grid, found, "on", samples=100)
    assert [(one.trained_on, one.evaluated_on) for one in lost] == [
        ("bm25", "semantic"),
        ("vectors", "lexical"),
        ("hybrid", "lexical"),
        ("hybrid", "semantic"),
        ("hybrid", None),
    ]


def test_a_file_of_rewrites_is_a_row_by_its_name() -> None:
    evaluate = {"backends": ["lexical"], "systems": ["raw", "file:made/by hand.jsonl", "raw"]}
    grid = _grid(evaluate=evaluate, matrices=[])
    found = [Evaluated("by-hand", {}, {"lexical": {"q": 0.5}})]
    matrix = matrices(grid, found, samples=100)[0]
    assert matrix.rows == ["raw", "by-hand", "lexical", "semantic", "mixed"]
    assert matrix.as_json()["values"][1] == [[0.5, 0.5, 0.5]]


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
        "axis,backend,level,mean,low,high,runs,queries",
        "on,lexical,lexical,0.5,0.5,0.5,1,1",
    ]
    # No other level has a run yet, so that nothing is lost.
    head = "axis,trained_on,evaluated_on,difference,low,high,runs,queries"
    assert (tmp_path / "transfers.csv").read_text() == f"{head}\n"
    assert "| lexical.1 | 0: 0.250, 16: 0.500 |" in (tmp_path / "results.md").read_text()


def test_completions_are_counted_with_those_of_a_warm_start() -> None:
    """The shipped grid compares a warm with a cold start at equal samples."""
    path = Path(__file__).parent.parent / "configs" / "ablations" / "sampling.yaml"
    made = {
        item.at["start"]: completions_at(item.config, 1, item.steps or 0)
        for item in plan(read_grid(path), path, Path("out"))
        if item.trains
    }
    assert made["warm"] == made["uniform"] == made["informative"]
    values = {"model": {"name": "x"}, "reward": {"backends": "lexical"}}
    trainer = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3}
    config = Config.model_validate(values | {"trainer": trainer | {"num_iterations": 2}})
    assert completions_at(config, 2, 5) == 5 * 4 * 3 * 2 // 2


def test_a_grid_of_seeds_alone_has_curves(tmp_path: Path) -> None:
    grid, _, state = _finished(tmp_path, ["one"])
    grid = _grid(axes={}, seeds=[1, 2], matrices=[], evaluate=grid.evaluate.model_dump())
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


def _finished(tmp_path: Path, names: list[str]) -> tuple[Grid, list[Item], State]:
    """Runs that are over, each with a document of its own, the second one with a picture."""
    config = Config.model_validate({"model": {"name": "x"}, "reward": {"backends": "lexical"}})
    axes = {"on": {name: {"lora.r": number} for number, name in enumerate(names)}}
    evaluate = {"backends": ["lexical"], "systems": []}
    grid = _grid(axes=axes, seeds=[], evaluate=evaluate, matrices=[])
    state = State(tmp_path)
    items = [Item(f"{name}.1", {"on": name}, config, name, name) for name in names]
    for number, item in enumerate(items):
        folder = state.evaluation(item)
        write_records(
            [_record(f"{name}-made", "lexical", "q", 0.5) for name in names[:1]],
            folder / "records.jsonl",
        )
        rows: list[dict[str, Any]] = [{"id": "d0", "title": "", "text": "both"}]
        rows.append({"id": f"own{number}", "title": "", "text": "\u2028"})
        if number == 1:
            rows[0]["image"] = "pages/0.png"
            (folder / "pages").mkdir()
            (folder / "pages" / "0.png").write_bytes(b"picture")
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / "documents.jsonl").write_text(text, encoding="utf-8")
        (folder / "qrels.trec").write_text("q 0 d0 1\n")
        state.end(item, Outcome("done", item.evaluation))
    return grid, items, state


def test_the_page_has_the_documents_of_all_evaluations(tmp_path: Path) -> None:
    write_results(*_finished(tmp_path, ["one", "two"]), samples=100)
    folder = tmp_path / "report"
    found = {row["id"]: row for row in map(json.loads, (folder / "documents.jsonl").open())}
    assert list(found) == ["d0", "own0", "own1"]
    assert found["d0"]["image"] == "pages/0.png"
    assert (folder / "pages" / "0.png").read_bytes() == b"picture"
    assert (folder / "qrels.trec").read_text() == "q 0 d0 1\n"


def test_a_run_called_as_a_system_is_another_one_on_the_page(tmp_path: Path) -> None:
    write_results(*_finished(tmp_path, ["raw"]), samples=100)
    rows = map(json.loads, (tmp_path / "report" / "records.jsonl").open())
    assert [row["system"] for row in rows] == ["raw-2"]


def test_what_an_earlier_grid_found_is_not_on_the_page(tmp_path: Path) -> None:
    grid, items, state = _finished(tmp_path, ["one", "two"])
    write_results(grid, items, state, samples=100)
    changed = [replace(item, evaluation="other") for item in items]
    assert "| one | missing |" in write_results(grid, changed, state, samples=100)
    assert not (tmp_path / "report" / "records.jsonl").exists()
