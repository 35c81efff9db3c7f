"""How every benchmark shows its figures: a table, then one JSON object as the last line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """One measured value and its goal.

    Attributes:
        value: what was measured.
        goal: what it should be.
        better: on which side of the goal it is met; "equal" for yes or no.
        unit: for the table only.
    """

    value: float | bool
    goal: float | bool
    better: Literal["higher", "lower", "equal"] = "higher"
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the goal is reached; a value that is not a number reaches none."""
        if self.better == "equal":
            return self.value == self.goal
        return self.value >= self.goal if self.better == "higher" else self.value <= self.goal


def as_json(figures: Mapping[str, Figure], small: bool) -> str:
    """The last line: {"name": {"value": …, "goal": …, "met": …}}; met is null when `small`."""
    values = {
        name: {
            "value": figure.value,
            "goal": figure.goal,
            "met": None if small else figure.met,
        }
        for name, figure in figures.items()
    }
    return json.dumps(values)


def show(figures: Mapping[str, Figure], small: bool) -> None:
    """Print the table and the JSON line.

    Args:
        figures: by name.
        small: the run was cut short, so that no goal is judged.
    """
    signs = {"higher": ">=", "lower": "<=", "equal": "="}
    width = max(map(len, figures), default=0)
    print(f"{'figure':{width}}  {'value':>14}  {'goal':>14}  met")
    for name, figure in figures.items():
        goal = f"{signs[figure.better]} {_text(figure.goal)}"
        met = "-" if small else "yes" if figure.met else "no"
        value = _text(figure.value)
        print(f"{name:{width}}  {value:>14}  {goal:>14}  {met:3}  {figure.unit}".rstrip())
    print(as_json(figures, small))


def _text(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}"
