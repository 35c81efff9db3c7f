"""Matrices and transfer losses, with values worked out by hand."""

import csv
from dataclasses import replace
from io import StringIO

from rewriter.ablation.cells import Evaluated
from rewriter.ablation.matrix import matrices, transfers
from tests.ablation_results import FOUND, results_grid


def test_the_matrix_of_training_and_evaluation() -> None:
    matrix = matrices(results_grid(), FOUND, samples=100)[0]
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
    grid = results_grid(exclude=[{"on": "mixed", "seed": 2}])
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
    _, lexical, semantic = matrices(results_grid(), FOUND, samples=100)
    assert (lexical.title, semantic.title) == ("on.seed.lexical", "on.seed.semantic")
    assert (lexical.rows, lexical.columns) == (["lexical", "semantic", "mixed"], ["1", "2"])
    assert [[c and c[0] for c in row] for row in semantic.as_json()["values"]] == [
        [0.25, 0.25],
        [0.5, None],
        [0.5, 0.5],
    ]
    assert semantic.as_json()["diagonal"] == []


def test_transfer_losses() -> None:
    lost = transfers(results_grid(), FOUND, "on", samples=100)
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
    grid = results_grid(axes=axes, seeds=[], evaluate=evaluate, matrices=[])
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
    grid = results_grid(evaluate=evaluate, matrices=[])
    found = [Evaluated("by-hand", {}, {"lexical": {"q": 0.5}})]
    matrix = matrices(grid, found, samples=100)[0]
    assert matrix.rows == ["raw", "by-hand", "lexical", "semantic", "mixed"]
    assert matrix.as_json()["values"][1] == [[0.5, 0.5, 0.5]]


def test_a_pooled_loss_is_over_all_backends_or_not_there() -> None:
    """Over those alone whose own rewriter is there already, it would be another figure."""
    names = ["lexical", "semantic", "hybrid"]
    axes = {"on": {name: {"reward.backends": name} for name in names} | {"all": {"lora.r": 8}}}
    evaluate = {"backends": names, "systems": ["raw"]}
    grid = results_grid(axes=axes, seeds=[], evaluate=evaluate, matrices=[])
    found = [Evaluated(on, {"on": on}, {b: {"q": 0.5} for b in names}) for on in axes["on"]]
    for missing, pooled in ((None, True), ("hybrid", False)):
        there = [one for one in found if one.name != missing]
        lost = transfers(grid, there, "on", samples=100)
        over_all = [one for one in lost if (one.trained_on, one.evaluated_on) == ("all", None)]
        assert bool(over_all) == pooled


def test_searches_that_failed_are_seen() -> None:
    part = replace(FOUND[1], values={"lexical": {"q": 0.75}, "semantic": {"q": 0.25, "r": 0.25}})
    matrix = matrices(results_grid(), [FOUND[0], part, FOUND[2]], samples=100)[0]
    line = matrix.as_markdown().splitlines()[3]
    assert line == "| lexical | ◆ 0.750 [.750, .750] (1 of 2 queries) | 0.250 [.250, .250] |"
