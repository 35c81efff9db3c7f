"""All settings of the training: the model, the stages, the optimizer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from launch.page_reader.model import Size
from launch.page_reader.pages import Look

MONO = Look()
LOOSE = Look(word_grids=(1, 16))
FONTS = ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono-Bold", "STIXGeneral")
LINES = Look(FONTS, sizes=(12, 13, 14), word_grids=(1, 16))
FREE = Look(
    ("DejaVuSansMono", *FONTS),
    sizes=(12, 13, 14),
    word_grids=(1,),
    pitches=(16, 17, 18),
    shift=(15, 15),
)


@dataclass(frozen=True)
class Stage:
    """Steps, looks of pages (each as likely as another), weights of the losses, share of twins."""

    steps: int
    looks: Sequence[Look]
    characters: float = 0.0
    located: float = 1.0
    late: float = 0.0
    pooled: float = 0.0
    twins: float = 0.0


@dataclass(frozen=True)
class Settings:
    """All settings of the training."""

    stages: tuple[Stage, ...] = (
        Stage(150, (MONO,), characters=1.0),
        Stage(1000, (MONO,), late=0.3),
        Stage(1500, (MONO, LOOSE), late=0.5, pooled=0.1, twins=0.5),
        Stage(2000, (MONO, LOOSE, LINES), late=0.5, pooled=0.1, twins=0.5),
        Stage(1350, (MONO, LOOSE, LINES, FREE), late=0.5, pooled=0.1, twins=0.5),
    )
    size: Size = field(default_factory=Size)
    seed: int = 1
    patches: int = 2048  # in a batch: 14 pages of 6 lines
    tokenizer_texts: int = 1500
    learning_rate: float = 1.5e-3
    warmup: int = 100
    cooling: float = 0.3  # share of the steps in which the learning rate falls
    weight_decay: float = 0.01
    clip: float = 1.0
    save_every: int = 250
    log_every: int = 50

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.stages)

    def stage(self, step: int) -> Stage:
        for stage in self.stages:
            if step < stage.steps:
                return stage
            step -= stage.steps
        return self.stages[-1]

    def rate(self, step: int) -> float:
        """Learning rate: up in a line, level, and down in a line over the last part."""
        up = (step + 1) / max(self.warmup, 1)
        down = (self.steps - step) / (self.steps * self.cooling)
        return self.learning_rate * min(up, 1.0, down)
