"""Grids: what is read, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from rewriter.ablation.grid import GridError, read_grid
from tests.ablation_grids import EVALUATE, grid_of, written


def test_the_product_of_points_lists_and_seeds() -> None:
    grid = grid_of(
        axes={
            "on": {"a": {"reward.backends": "lexical"}, "b": {"reward.backends": "semantic"}},
            "rank": {"lora.r": [4, 8], "lora.lora_alpha": [8, 16]},
        },
        seeds=[1, 2],
        exclude=[{"on": "b", "rank": 8}, {"on": "a", "rank": 4, "seed": 2}],
    )
    assert [point.name for point in grid.points()] == [
        "a-rank4-seed1",
        "a-rank8-seed1",
        "a-rank8-seed2",
        "b-rank4-seed1",
        "b-rank4-seed2",
    ]
    first = next(grid.points())
    assert first.at == {"on": "a", "rank": "4", "seed": "1"}
    assert first.keys == {
        "reward.backends": "lexical",
        "lora.r": 4,
        "lora.lora_alpha": 8,
        "trainer.seed": 1,
    }


def test_labels_of_lists() -> None:
    grid = grid_of(
        axes={
            "on": {"reward.backends": ["lexical", ["lexical", "semantic"]]},
            "t": {"k": [0.5, None]},
        }
    )
    assert list(grid.axes["on"]) == ["lexical", "lexical+semantic"]
    assert list(grid.axes["t"]) == ["0.5", "null"]


def test_lists_that_go_together_may_repeat_a_value() -> None:
    grid = grid_of(axes={"size": {"lora.r": [4, 4, 8], "lora.lora_alpha": [8, 16, 16]}})
    assert list(grid.axes["size"]) == ["4, 8", "4, 16", "8, 16"]
    assert [point.name for point in grid.points()] == ["size4_8", "size4_16", "size8_16"]


def test_excluded_values_are_called_as_the_levels_are() -> None:
    """YAML reads true, null and lists; names such as `off` become false on both sides."""
    grid = grid_of(
        axes={
            "gain": {"reward.gain": [True, False]},
            "shaped": {False: {"reward.length_weight": 0.0}, True: {"reward.length_weight": 0.2}},
            "on": {"reward.backends": ["lexical", ["lexical", "semantic"]]},
            "patience": {"evaluation.patience": [None, 3]},
        },
        exclude=[
            {"gain": True},
            {"shaped": False},
            {"on": ["lexical", "semantic"]},
            {"patience": None},
        ],
    )
    (point,) = grid.points()
    assert point.at == {"gain": "false", "shaped": "true", "on": "lexical", "patience": "3"}
    assert point.name == "gainfalse-shapedtrue-lexical-patience3"


def test_a_grid_that_asks_for_no_matrix_has_one_for_every_axis() -> None:
    axes = {"a": {"lora.r": [4, 8]}, "b": {"trainer.beta": [0.0, 0.1]}}
    grid = grid_of(axes=axes, seeds=[1, 2])
    assert grid.tables() == (("a", "evaluated_on"), ("b", "evaluated_on"))
    assert grid_of(seeds=[1, 2]).tables() == (("seed", "evaluated_on"),)
    assert grid_of(axes=axes, matrices=[["a", "b"]]).tables() == (("a", "b"),)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"axes": {"seed": {"trainer.seed": [1]}}}, "axis 'seed': .* another name"),
        ({"axes": {"a": {"x": [1, 2], "y": [1]}}}, "lists of the same length"),
        ({"axes": {"a": {"x": [1, 1]}}}, "axis 'a': 1 is there twice"),
        ({"axes": {"a": {"x": [1, 1], "y": [2, 2]}}}, "axis 'a': 1, 2 is there twice"),
        ({"axes": {"a": {"x": []}}}, "axis 'a': its lists are empty"),
        ({"axes": {True: {"x": [1]}}}, "axis True: .* put it in quotes"),
        ({"seeds": [1], "matrices": [[True, "seed"]]}, "put it in quotes"),
        (
            {"seeds": [1], "set": {"trainer": {"max_steps": 4}}},
            "set: `trainer` as a whole .* write its keys with a dot: `trainer.max_steps`",
        ),
        (
            {"axes": {"a": {"p": {"prompt": {"system": "x"}}}}},
            "axis 'a', p: `prompt` as a whole .* `prompt.system`",
        ),
        (
            {"axes": {"a": {"lora.r": [1, 2]}, "b": {"p": {"lora.r": 8, "x": 1}}}},
            "'a' and 'b' both set `lora.r`",
        ),
        (
            {"axes": {"a": {"reward.backends.lexical": [1, 2]}, "b": {"reward.backends": ["x"]}}},
            "'a' and 'b' both set `reward.backends.lexical`",
        ),
        (
            {"axes": {"a": {"p": {"trainer.seed": 3}}}, "seeds": [1, 2]},
            "'a' and 'seed' both set `trainer.seed`",
        ),
        (
            {"axes": {"a": {"raw": {"lora.r": 8}}}},
            "axis 'a': raw is a system of `evaluate.systems` as well",
        ),
        ({"axes": {"a": 3}}, r"axis 'a': give key: \[values\]"),
        ({"axes": {"a": {"x": [1]}}, "exclude": [{"a": 2}]}, "there is no a: 2; there are a: 1"),
        ({"axes": {"a": {"x": [1]}}, "exclude": [{"a": 1}]}, "no run is left"),
        ({}, "no run is left"),
        ({"seeds": [1], "matrices": [["a", "seed"]]}, "no axis 'a'; there are: seed"),
        ({"seeds": [1], "matrices": [["evaluated_on", "seed"]]}, "as the second one"),
        ({"seeds": [1], "evaluate": {"backends": ["lexcal"]}}, "no backend 'lexcal'"),
        ({"seeds": [1], "axis": {}}, "there are: base, output"),
    ],
)
def test_what_is_refused(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    path = written(tmp_path, **{"evaluate": EVALUATE, **values})
    with pytest.raises(GridError, match=said) as error:
        read_grid(path)
    assert str(path) in str(error.value)


def test_a_fault_says_on_which_line(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    head = "base: b\noutput: o\nevaluate: {backends: [lexical]}\naxes:\n  a: {lora.r: [4, 8]}\n"
    for rest, said in (
        ("  b: {x: [1, 1]}\n", "6: `axes`: axis 'b': 1 is there twice"),
        ("  b:\n    raw: {x: 1}\n", "6: axis 'b': raw is a system"),
        ("seeds: [1]\nexclude: [{a: 5}]\n", "7: exclude: there is no a: 5"),
        ("set: {trainer: {x: 1}}\n", "6: set: `trainer` as a whole"),
        ("matrices: [[a, b]]\n", "6: matrices: no axis 'b'"),
        ("exclude: [{}]\n", "1: no run is left"),
    ):
        path.write_text(head + rest)
        with pytest.raises(GridError) as error:
            read_grid(path)
        assert str(error.value).startswith(f"{path}:{said}")
        assert "'base'" not in str(error.value)  # not the whole file
