"""The section `evaluation`: held-out evaluation, and what is compared with what."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from rewards.metrics import Measure
from rewriter.evaluation import DEPTH, HEADLINE, MEASURES
from rewriter.prompt_systems import PROMPT_SYSTEMS, PromptSystem, merged
from rewriter.systems import SYSTEMS, UNTRAINED

_NAME = re.compile(r"[A-Za-z0-9_-]+")


class EvaluationSettings(BaseModel):
    """Held-out evaluation, during training, at its end, and by `rlqr eval`.

    Attributes:
        every: steps between two evaluations on the validation split.
        patience: evaluations without a better NDCG@3 after which training stops; None: never.
        batch_size: prompts generated at once.
        max_new_tokens: longest rewrite; None takes `trainer.max_completion_length`.
        measures: what is reported; NDCG@3 always is.
        depth: hits kept in a record, and the depth of measures without a cut.
        prompts: name → a prompt for the base model, over those built in (hyde, query2doc,
            keywords); see rewriter/prompt_systems.py.
        systems: what stands beside the trained rewriter: rules, "untrained", names of `prompts`;
            "raw", which the others are compared with, always does.
        samples: rewrites sampled a query by `rlqr eval`; 1 is greedy.
        temperature: of those samples; seed: of their draws.
        bootstrap_samples: resamples behind every 95% interval.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: int = Field(default=20, ge=1)
    patience: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=16, ge=1)
    max_new_tokens: int | None = Field(default=None, ge=1)
    measures: tuple[str, ...] = MEASURES
    depth: int = Field(default=DEPTH, ge=1)
    prompts: dict[str, PromptSystem] = PROMPT_SYSTEMS
    systems: tuple[str, ...] = (*SYSTEMS, UNTRAINED)
    samples: int = Field(default=1, ge=1)
    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0, lt=2**32)
    bootstrap_samples: int = Field(default=10_000, ge=100)

    @field_validator("measures")
    @classmethod
    def _parsed(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        names = [str(Measure.parse(measure)) for measure in measures]
        return tuple(dict.fromkeys((HEADLINE, *names)))

    @field_validator("prompts", mode="before")
    @classmethod
    def _over_built_in(cls, given: Any) -> Any:
        return merged(given)

    @field_validator("prompts")
    @classmethod
    def _named(cls, prompts: dict[str, PromptSystem]) -> dict[str, PromptSystem]:
        for name in prompts:
            if not _NAME.fullmatch(name):
                raise ValueError(f"prompt {name!r}: use ASCII letters, digits, '_' and '-' only")
            if name in SYSTEMS or name == UNTRAINED:
                raise ValueError(f"prompt {name!r}: another system has this name; choose another")
        return prompts

    @field_validator("systems")
    @classmethod
    def _known(cls, systems: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        allowed = (*SYSTEMS, UNTRAINED, *info.data.get("prompts", PROMPT_SYSTEMS))
        for system in systems:
            if system not in allowed:
                raise ValueError(f"no system {system!r}; there are: {', '.join(allowed)}")
        return tuple(dict.fromkeys(("raw", *systems)))
