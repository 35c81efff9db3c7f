"""The section `evaluate` of a grid: on what its runs are evaluated, and beside which systems."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from retrievers import RETRIEVERS
from rewriter.prompt_systems import PROMPT_SYSTEMS
from rewriter.rewrite_file import safe_name
from rewriter.systems import FILE, SYSTEMS, UNTRAINED


class EvaluateSettings(BaseModel):
    """What each run is evaluated on, and what stands beside them.

    Attributes:
        backends: on which every run is evaluated.
        systems: evaluated once, with the base configuration: rules, "untrained", prompts,
            `file:PATH` for rewrites made elsewhere; none: [].
        split: None takes the configuration's test split.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backends: tuple[str, ...] = Field(min_length=1)
    systems: tuple[str, ...] = ("raw", "untrained")
    split: str | None = None

    @field_validator("backends")
    @classmethod
    def _known(cls, backends: tuple[str, ...]) -> tuple[str, ...]:
        for name in backends:
            if name not in RETRIEVERS:
                raise ValueError(f"no backend {name!r}; there are: {', '.join(RETRIEVERS)}")
        return tuple(dict.fromkeys(backends))

    @field_validator("systems")
    @classmethod
    def _once(cls, systems: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(systems))

    @property
    def files(self) -> list[Path]:
        """The files of rewrites among the systems."""
        given = [system for system in self.systems if system.startswith(FILE)]
        return [Path(system.removeprefix(FILE)) for system in given]

    @property
    def names(self) -> list[str]:
        """The systems as records call them: a file of rewrites by its name, if that is free."""
        found: list[str] = []
        for system in self.systems:
            stem = Path(system.removeprefix(FILE)).stem
            taken = {*found, *SYSTEMS, UNTRAINED, *PROMPT_SYSTEMS}
            found.append(safe_name(stem, taken) if system.startswith(FILE) else system)
        return found
