"""A user's own reward function beside the searches."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rewards.parsing import Completion
from rewards.search.scoring import Scored, Values
from rewards.settings import RewardFunction, RewardSettings


class RewardFunctionResultError(ValueError):
    """A user's reward function did not return one value a completion."""


class OwnFunction:
    """Calls the function that the settings name, and holds it to the rule for failed searches.

    Args:
        function: the function itself.
        taken: names of the panel's other functions; TRL would log two of one name as one.
    """

    def __init__(self, function: RewardFunction, taken: Collection[str]) -> None:
        name = getattr(function, "__name__", type(function).__name__)
        self.name = f"own_{name}" if name in taken else name
        self._function = function

    @classmethod
    def of(cls, settings: RewardSettings, taken: Collection[str]) -> "OwnFunction | None":
        """The settings' function, None where they name none; raises RewardFunctionError."""
        function = settings.load_function()
        return None if function is None else cls(function, taken)

    def __call__(
        self, scored: Scored, completions: Sequence[Completion], columns: Mapping[str, Any]
    ) -> Values:
        """(R,) its values, None where a search failed; raises what the function raises."""
        rewrites = [row.parsed.text for row in scored.rows]
        given = {**columns, "completions": completions, "rewrites": rewrites}
        values = list(self._function(**given))
        if len(values) != len(rewrites):
            raise RewardFunctionResultError(
                f"reward function {self.name} returned {len(values)} values for {len(rewrites)} "
                "completions; return one each, None where it does not apply"
            )
        pairs = zip(values, scored.failed, strict=True)
        return [None if failed else value for value, failed in pairs]
