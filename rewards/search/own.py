"""A user's own reward function beside the searches."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isinf, isnan
from typing import Any

from rewards.parsing import Completion
from rewards.search.scoring import Scored, Values
from rewards.settings import RewardFunction, RewardSettings


class RewardFunctionResultError(ValueError):
    """A user's reward function did not return one number a completion."""


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
        returned = self._function(**given)
        if not isinstance(returned, Iterable):
            raise RewardFunctionResultError(
                f"reward function {self.name} returned {returned!r:.80}; return a list, one value "
                "a completion"
            )
        values = [self._number(value, place) for place, value in enumerate(returned)]
        if len(values) != len(rewrites):
            raise RewardFunctionResultError(
                f"reward function {self.name} returned {len(values)} values for {len(rewrites)} "
                "completions; return one each, None where it does not apply"
            )
        pairs = zip(values, scored.failed, strict=True)
        return [None if failed else value for value, failed in pairs]

    def _number(self, value: Any, place: int) -> float | None:
        """A plain float, whatever array library it came from: logs hold nothing else.

        NaN is what TRL makes of None.
        """
        try:
            number = None if value is None else float(value)
        except (TypeError, ValueError) as error:
            raise self._no_reward(value, place) from error
        if number is not None and isinf(number):
            raise self._no_reward(value, place)
        return None if number is None or isnan(number) else number

    def _no_reward(self, value: Any, place: int) -> RewardFunctionResultError:
        return RewardFunctionResultError(
            f"reward function {self.name} returned {value!r:.80} for completion {place}; return a "
            "finite number, None where it does not apply"
        )
