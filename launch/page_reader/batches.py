"""Batches: random pages and queries as the model's inputs, with labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from launch.page_reader.pages import PATCH, Look, Page, PageMaker, run_of_words

if TYPE_CHECKING:
    import torch
    from colpali_engine.models import ColQwen2Processor


@dataclass(frozen=True)
class Batch:
    """Model inputs and labels.

    Attributes:
        pages, queries: keyword arguments of ColQwen2; as many queries as pages, ``per_page`` times.
        tokens, characters: int64 (pages, patches, 2), see ``Page``.
    """

    pages: dict[str, "torch.Tensor"]
    queries: dict[str, "torch.Tensor"]
    tokens: "torch.Tensor"
    characters: "torch.Tensor"
    columns: int


class BatchMaker:
    """Random batches; the same for the same seed and step.

    Args:
        pages: makes pages.
        processor: its image and text settings are followed.
        patches: about so many in one batch.
        per_page: queries for each page.
    """

    def __init__(
        self,
        pages: PageMaker,
        processor: "ColQwen2Processor",
        patches: int,
        per_page: int = 4,
    ) -> None:
        self.pages, self.processor = pages, processor
        self.patches, self.per_page = patches, per_page

    def batch(self, seed: int, step: int, looks: Sequence[Look], twins: float) -> Batch:
        """looks: one is drawn for each page. twins: share of pages much like the one before."""
        random = Random(f"{seed}-{step}")
        columns, rows = random.choice((16, 20, 24, 24)), random.choice((4, 5, 6, 8, 10, 12, 16))
        count = max(self.patches // (columns * rows), 2)
        made: list[Page] = []
        while len(made) < count:
            before = made[-1] if len(made) % 2 and random.random() < twins else None
            look = random.choice(looks)
            page = self.pages.page(random, look, columns * PATCH, rows * PATCH, before)
            made += [page] if len(page.words) >= 3 else []
        asked = [run_of_words(page, random) for _ in range(self.per_page) for page in made]
        return self._batch(made, asked)

    def _batch(self, made: list[Page], asked: list[str]) -> Batch:
        import torch

        return Batch(
            pages=page_inputs([page.pixels for page in made], self.processor),
            queries=dict(self.processor.process_queries(asked)),
            tokens=torch.tensor(np.stack([p.tokens.reshape(-1, 2) for p in made])),
            characters=torch.tensor(np.stack([p.characters.reshape(-1, 2) for p in made])),
            columns=made[0].tokens.shape[1],
        )


def page_inputs(pixels: Sequence[np.ndarray], processor: "ColQwen2Processor") -> dict[str, Any]:
    """What ``processor.process_images`` gives for pages of one size, made more quickly."""
    import torch

    stack = np.stack(pixels)
    count, (rows, columns) = len(stack), (n // PATCH for n in stack.shape[1:])
    cut = stack.reshape(count, rows, PATCH, columns, PATCH).transpose(0, 1, 3, 2, 4)
    settings = processor.image_processor
    values = torch.tensor(cut.reshape(count, rows * columns, PATCH * PATCH)).float()
    values = (values * settings.rescale_factor - settings.image_mean[0]) / settings.image_std[0]
    before, after = processor.visual_prompt_prefix.split(processor.image_token)
    image = processor.image_token * (rows * columns)
    ids = torch.tensor(processor.tokenizer(before + image + after)["input_ids"]).repeat(count, 1)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == processor.image_token_id).int(),
        "pixel_values": values.repeat(1, 1, 3),
        "image_grid_thw": torch.tensor([[1, rows, columns]] * count),
    }
