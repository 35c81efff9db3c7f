"""Judging: one metric and one parser, used by training, evaluation and serving alike.

Names are imported when they are asked for: who needs a metric only does not load the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewards.search import RewardPanel, SearchReward, StepScores
    from rewards.settings import BackendReward, RewardSettings

__all__ = ["BackendReward", "RewardPanel", "RewardSettings", "SearchReward", "StepScores"]

_HOMES = {
    "BackendReward": "rewards.settings",
    "RewardPanel": "rewards.search",
    "RewardSettings": "rewards.settings",
    "SearchReward": "rewards.search",
    "StepScores": "rewards.search",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
