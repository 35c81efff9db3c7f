"""The reward section of the config: every short form, its defaults, its refusals."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rewards import BackendReward, RewardSettings
from rewards.settings import RewardFunctionError


def read(**given: Any) -> RewardSettings:
    return RewardSettings.model_validate(given)


def test_the_default_is_ndcg_at_3_on_lexical() -> None:
    assert RewardSettings().backends == {"lexical": BackendReward(kind="ndcg", k=3)}
    assert RewardSettings().label("lexical") == "lexical_ndcg@3"


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        ("lexical", {"lexical": 1.0}),
        (["lexical", "semantic"], {"lexical": 1.0, "semantic": 1.0}),
        ({"lexical": 0.7, "semantic": 0.3}, {"lexical": 0.7, "semantic": 0.3}),
        ({"lexical": 2, "semantic": None}, {"lexical": 2.0, "semantic": 1.0}),
        ({"lexical": {"weight": 0.5, "k": 10}}, {"lexical": 0.5}),
    ],
)
def test_backends_have_short_forms(given: Any, weights: dict[str, float]) -> None:
    assert {name: one.weight for name, one in read(backends=given).backends.items()} == weights


def test_the_top_speaks_for_backends_that_do_not_say_otherwise() -> None:
    settings = read(
        backends={"lexical": {"kind": "hit", "gain": False}, "semantic": 0.5},
        kind="mrr",
        k=10,
        gain=True,
    )
    assert settings.backends == {
        "lexical": BackendReward(kind="hit", k=10, gain=False, weight=1.0),
        "semantic": BackendReward(kind="mrr", k=10, gain=True, weight=0.5),
    }
    assert settings.label("lexical") == "lexical_hit@10"
    assert settings.label("semantic") == "semantic_gain_mrr@10"


def test_a_backend_already_built_keeps_what_it_says() -> None:
    settings = read(backends={"lexical": BackendReward(kind="hit")}, kind="mrr", k=7)
    assert settings.backends["lexical"] == BackendReward(kind="hit", k=7)


def test_rank_looks_to_its_own_depth() -> None:
    settings = read(kind="rank", k=3, depth_rank=50)
    assert settings.depth("lexical") == 50
    assert settings.label("lexical") == "lexical_rank@50"


def test_a_dump_reads_back_the_same() -> None:
    settings = read(backends={"lexical": {"k": 5}, "hybrid": 0.2}, kind="recall", gain=True)
    assert RewardSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"k": 0}, "greater than or equal to 1"),
        ({"kind": "map"}, "'hit', 'ndcg', 'mrr', 'recall' or 'rank'"),
        ({"backends": []}, "no backend is named"),
        ({"backends": ["lexical", "lexical"]}, "names one twice"),
        ({"backends": {"a/b": 1.0}}, "'a/b'"),
        ({"backends": {"lexical": {"depth": 3}}}, "Extra inputs"),
        ({"backends": {"lexical": -1.0}}, "greater than or equal to 0"),
        ({"backends": {"lexical": 0.0}}, "nothing can be learned"),
        ({"backends": {"lexical": True}}, "a boolean is no weight; give a number"),
        ({"backends": {"lexical": {"weight": True}}}, "a boolean is no weight; give a number"),
        ({"backends": 3}, "valid dictionary"),
        ({"function": "package.module.function"}, "package.module:function"),
        ({"length_weight": float("nan")}, "finite"),
        ({"failure_penalty": -0.1}, "greater than or equal to 0"),
        ({"retry": 3}, "Extra inputs"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says.replace("(", r"\(")):
        read(**given)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        RewardSettings().k = 5


def test_no_function_loads_none() -> None:
    assert RewardSettings().load_function() is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("reward = 3", "int, which cannot be called"),
        ("async def reward(**given): ...", "asynchronous"),
        ("other = 1", "cannot be imported"),
    ],
)
def test_a_function_is_checked_before_it_is_needed(
    line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"own_{abs(hash(line))}"
    (tmp_path / f"{module}.py").write_text(line, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RewardFunctionError, match=says):
        read(function=f"{module}:reward").load_function()


def test_a_module_that_is_not_there_says_how_to_start() -> None:
    with pytest.raises(RewardFunctionError, match="PYTHONPATH"):
        read(function="not.there:reward").load_function()


def test_importing_the_reward_does_not_import_torch() -> None:
    code = (
        "import sys; from rewards import RewardPanel, RewardSettings; print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "False"
