"""The model: page images and queries → vectors, several of each, without those of padding."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrievers.chunks import readable
from retrievers.index import fingerprint
from retrievers.multimodal.families import FAMILIES
from retrievers.multimodal.loading import load
from retrievers.multimodal.settings import MultimodalSettings
from retrievers.weights import adapters_text, config_text, tokenizer_state, weights_digest

if TYPE_CHECKING:
    from PIL.Image import Image

PACKAGES = ("colpali-engine", "transformers", "torch", "torchvision", "pillow")


class ImageRefused(ValueError):
    """An image that the model's processor makes nothing of, or too much; says why, not of what."""


class PageEncoder:
    """A model of colpali-engine with its processor.

    Attributes:
        family: name of the model's class.
        device: it runs on.
        dtype: name of its number format.
        dimension: of a vector.
        batch_size: pages or queries encoded at once.

    Raises:
        retrievers.models.ModelError: see `retrievers.multimodal.loading.load`.
    """

    def __init__(self, settings: MultimodalSettings) -> None:
        import torch

        self.batch_size = settings.batch_size
        self.device = settings.device or _device()
        self.dtype = _dtype(settings.model_dtype, self.device)
        self._limit = settings.max_image_tokens
        dtype = getattr(torch, self.dtype)
        self.family, self._model, self._processor = load(settings, self.device, dtype)
        self._content = self._identity()
        self.dimension = self.queries(["dimension"])[0].shape[1]

    def pages(self, images: Sequence["Image"]) -> list[NDArray[np.float32]]:
        """(n, D) vectors of each page: of its image, and of the words the model puts around it.

        Raises:
            ImageRefused: the processor refuses an image, as some do with those very long and thin,
                or one becomes more vectors than `max_image_tokens`.
        """
        batch = self._processed(images)
        shorten = FAMILIES[self.family].shorten
        if self._limit is not None and self._spent(batch) > self._limit and shorten:
            batch = self._processed([shorten(self._processor, self._limit, i) for i in images])
        if self._limit is not None and (spent := self._spent(batch)) > self._limit:
            raise ImageRefused(
                f"it becomes {spent} vectors, and max_image_tokens is {self._limit}; raise that "
                "or leave it out"
            )
        return self._encoded(batch)

    def queries(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """(n, D) vectors of each query, those that colpali-engine adds to it included."""
        found: list[NDArray[np.float32]] = []
        for start in range(0, len(texts), self.batch_size):
            some = [readable(text) for text in texts[start : start + self.batch_size]]
            batch = self._processor.process_queries(some)
            if FAMILIES[self.family].token_types:
                batch["token_type_ids"] = batch["input_ids"] * 0
            found += self._encoded(batch)
        return found

    def identity(self) -> dict[str, Any]:
        """JSON values that the vectors of pages depend on, for an index's manifest."""
        return {
            "family": self.family,
            "content": self._content,
            "model_dtype": self.dtype,
            "dimension": self.dimension,
            # 2.13.0+cpu and 2.13.0+cu130 are one version on two devices.
            "versions": {name: version(name).partition("+")[0] for name in PACKAGES},
        }

    def _processed(self, images: Sequence["Image"]) -> Any:
        try:
            return self._processor.process_images(list(images))
        except ValueError as error:
            raise ImageRefused(str(error)) from error

    def _spent(self, batch: Any) -> int:
        """Vectors of the image of that page which has most."""
        return int((batch["input_ids"] == self._processor.image_token_id).sum(dim=1).max())

    def _encoded(self, batch: Any) -> list[NDArray[np.float32]]:
        import torch

        with torch.inference_mode():
            inputs = {name: values.to(self.device) for name, values in batch.items()}
            inputs.pop("labels", None)  # PaliGemma's processor adds some; they cost a loss
            found = self._model(**inputs).float().cpu()
        kept = batch["attention_mask"].bool()
        return [rows[mask].numpy() for rows, mask in zip(found, kept, strict=True)]

    def _identity(self) -> str:
        """Hash of the weights, the tokenizer and the processor, wherever they came from.

        All that `from_pretrained` read and a vector depends on: a folder that was moved is known.
        """
        tokenizer = self._processor.tokenizer
        images = self._processor.image_processor.to_dict()
        return fingerprint(
            {
                "weights": weights_digest(self._model.state_dict()),
                "config": config_text(self._model.config),
                "adapters": adapters_text(self._model),
                "tokenizer": tokenizer_state(tokenizer),
                "special": tokenizer.special_tokens_map,
                "limit": tokenizer.model_max_length,
                "images": json.dumps(images, sort_keys=True, default=str),
                "image_seq_len": getattr(self._processor, "image_seq_len", None),
            }
        )


def _device() -> str:
    import torch

    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found.type if found else "cpu"


def _dtype(asked: str, device: str) -> str:
    import torch

    if asked != "auto":
        return asked
    # Not on CPUs that have it: their vectors would differ from machine to machine.
    fast = device.startswith("cuda") and torch.cuda.is_bf16_supported(False)
    return "bfloat16" if fast else "float32"
