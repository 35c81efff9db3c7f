"""The section `warm_start`: a short supervised pass before the training, without labels."""

from pydantic import BaseModel, ConfigDict, Field


class WarmStartSettings(BaseModel):
    """Best-of-n rewrites of the untrained model, chosen by the search reward, imitated once.

    It costs `prompts` × `samples` completions; a GRPO step costs as many as one generation batch
    has. Off by default.

    Attributes:
        prompts: training prompts that are sampled; 0: no warm start.
        samples: completions of each, of which the best one is imitated if it earns anything.
        temperature: of those samples; None takes `trainer.temperature`.
        epochs: passes over the chosen rewrites.
        batch_size: of the supervised steps, on each process.
        learning_rate: of the supervised steps.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompts: int = Field(default=0, ge=0)
    samples: int = Field(default=8, ge=2)
    temperature: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    epochs: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    batch_size: int = Field(default=8, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0, allow_inf_nan=False)
