"""The reward that searches: its input, its functions' names, and functions of one's own."""

from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any

import numpy as np
import pytest

from rewards import SearchReward
from rewards.search import RewardFunctionResultError, RewardInputError
from tests.search_panels import Fake, columns, panel, rewards

# --- input and names


@pytest.mark.parametrize("column", ["query_id", "query", "relevant"])
def test_a_missing_column_is_named(column: str) -> None:
    given = columns(1)
    del given[column]
    with pytest.raises(RewardInputError, match=f'no column "{column}"'):
        panel(Fake()).functions[0](completions=["r1"], **given)


@pytest.mark.parametrize(
    "relevant", [[], None, ["gold"], [{"id": "gold"}], [{"id": "gold", "grade": 0.0}]]
)
def test_a_row_without_a_relevant_document_is_refused(relevant: Any) -> None:
    with pytest.raises(RewardInputError, match="q1"):
        rewards(panel(Fake()), ["r1"], relevant=[relevant])


def test_a_backend_without_a_retriever_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'semantic', but the retrievers are lexical"):
        panel(Fake("lexical"), backends="semantic")


def test_format_stands_only_where_it_can_charge() -> None:
    assert [f.__name__ for f in panel(Fake()).functions] == ["lexical_ndcg@3"]
    for given in ({"failure_penalty": 0.1}, {"length_weight": 0.1}):
        assert [f.__name__ for f in panel(Fake(), **given).functions][1:] == ["format"]


def test_length_is_charged_where_outcomes_differ() -> None:
    found = rewards(panel(Fake(), length_weight=0.1), ["12</think>r1", "no"])
    assert found["format"] == pytest.approx([-0.1, 0.0])


def test_a_backend_without_weight_makes_no_difference_to_length() -> None:
    weights = {"lexical": {"kind": "hit"}, "semantic": {"weight": 0.0}}
    both = panel(Fake("lexical"), Fake("semantic"), backends=weights, length_weight=0.1)
    found = rewards(both, ["12</think>r1", "r2"])
    assert found["semantic_ndcg@3"] == pytest.approx([1.0, 0.63093], abs=1e-5)
    assert found["format"] == [0.0, 0.0]


def test_search_reward_takes_no_backends() -> None:
    with pytest.raises(ValueError, match="backends: SearchReward has its retriever"):
        SearchReward(Fake("lexical"), backends="semantic")  # type: ignore[arg-type]


def test_search_reward_is_a_panel_of_one() -> None:
    reward = SearchReward(Fake("semantic", bad=["x"]), "hit", 1, retries=0)
    assert reward.__name__ == "semantic_hit@1"
    assert reward(["r1", "r2", "x", ""], **columns(4)) == [1.0, 0.0, None, 0.0]
    with pytest.raises(ValueError, match="RewardPanel"):
        SearchReward(Fake(), length_weight=0.1)


def test_trl_can_name_and_call_the_functions() -> None:
    both = panel(Fake("lexical"), Fake("semantic"), kind="rank")
    functions: list[Any] = [*both.functions, SearchReward(Fake())]
    # get_callable_name and is_async_callable of trl.trainer.utils look at these
    names = [one.__name__ for one in functions]
    assert names == ["lexical_rank@100", "semantic_rank@100", "lexical_ndcg@3"]
    assert not any(iscoroutinefunction(one.__call__) for one in functions)


# --- functions of one's own


def own(completions: Any, rewrites: Any, extra: Sequence[float], **_: Any) -> list[float]:
    assert len(completions) == len(rewrites)
    return list(extra)


def format(rewrites: Sequence[str | None], **_: Any) -> list[int]:
    return [len(text or "") for text in rewrites]


def given(values: Any, **_: Any) -> Any:
    """The first of the column is what it returns."""
    return values[0]


def test_where_one_of_two_backends_fails_no_function_has_a_number() -> None:
    both = panel(
        Fake("lexical"),
        Fake("semantic", bad=["r2"]),
        failure_penalty=0.5,
        function=f"{__name__}:own",
    )
    found = rewards(both, ["r1", "r2", ""], extra=[5.0, 6.0, 7.0])
    assert found == {
        "lexical_ndcg@3": [1.0, None, 0.0],
        "semantic_ndcg@3": [1.0, None, 0.0],
        "format": [0.0, None, -0.5],
        "own": [5.0, None, 7.0],
    }
    assert both.weights == [1.0, 1.0, 1.0, 1.0]


def test_two_functions_never_share_a_name() -> None:
    found = rewards(
        panel(Fake(), failure_penalty=0.5, function=f"{__name__}:format"), ["Query: r1", ""]
    )
    assert found["format"] == [0.0, -0.5]
    assert found["own_format"] == [2, 0]  # it gets the rewrite, not the completion


def test_an_own_function_of_the_wrong_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="own returned 1 values for 2 completions"):
        rewards(panel(Fake(), function=f"{__name__}:own"), ["r1", "r2"], extra=[1.0])


def test_values_of_an_own_function_are_plain_numbers() -> None:
    """numpy's and torch's would end the run where they are logged."""
    returned = np.array([0.5, np.nan], dtype=np.float32)
    found = rewards(
        panel(Fake(), function=f"{__name__}:given"), ["r1", "r2"], values=[returned] * 2
    )
    assert found["given"] == [0.5, None]
    assert type(found["given"][0]) is float


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, r"given returned None; return a list"),
        ([1.0, "good"], r"given returned 'good' for completion 1; return a finite number"),
        ([float("inf"), 0.0], r"given returned inf for completion 0; return a finite number"),
    ],
)
def test_what_an_own_function_may_not_return(returned: Any, says: str) -> None:
    with pytest.raises(RewardFunctionResultError, match=says):
        rewards(panel(Fake(), function=f"{__name__}:given"), ["r1", "r2"], values=[returned] * 2)
