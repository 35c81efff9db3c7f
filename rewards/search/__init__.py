"""The reward that searches: completions -> rewrites -> one batched search -> rewards."""

from rewards.search.own import RewardFunctionResultError
from rewards.search.panel import RewardPanel
from rewards.search.patience import TooManyFailures
from rewards.search.ranks import OtherRankFailed
from rewards.search.rows import RewardInputError
from rewards.search.single import SearchReward
from rewards.search.step import RowScores, StepScores

__all__ = [
    "OtherRankFailed",
    "RewardFunctionResultError",
    "RewardInputError",
    "RewardPanel",
    "RowScores",
    "SearchReward",
    "StepScores",
    "TooManyFailures",
]
