"""A vision model on this machine, by transformers: it reads page images, and texts too."""

import base64
import io
from typing import TYPE_CHECKING, Any

from pydantic import Field

from retrievers.models import ModelError, resolve
from rewriter.generation import Completion
from rewriter.synthesis.generators.transformers import TransformersGenerator, TransformersSettings
from rewriter.synthesis.prompts import Message

if TYPE_CHECKING:
    from PIL.Image import Image


class VisionSettings(TransformersSettings):
    """As `TransformersSettings`; the model is one for images and texts, such as Qwen2.5-VL.

    Attributes:
        processor: further arguments of the processor, such as `max_pixels`: a page at full size may
            be thousands of tokens.
    """

    processor: dict[str, Any] = Field(default={})

    def identity(self) -> dict[str, Any]:
        """See `Identified`."""
        return {**super().identity(), "generator": "vision"}


class VisionGenerator(TransformersGenerator):
    """Loads the model and its processor.

    Raises:
        retrievers.models.ModelError: it cannot be had, or reads no images.
    """

    reads_pages = True
    _settings: VisionSettings

    def _loaded(self) -> tuple[Any, Any]:
        from rewriter.policy import load_weights

        settings = self._settings
        self._processor = _processor(settings)
        init = {**settings.init, "trust_remote_code": settings.trust_remote_code}
        model = load_weights(
            settings.model,
            settings.revision,
            settings.dtype,
            kind="AutoModelForImageTextToText",
            **init,
        )
        return model, self._processor.tokenizer

    def _written(self, conversations: list[list[Message]]) -> list[tuple[Completion, int]]:
        inputs = self._inputs(conversations)
        sizes = inputs["attention_mask"].sum(1).tolist()
        fitting = [
            row for row, size in enumerate(sizes) if self._room is None or size <= self._room
        ]
        if 0 < len(fitting) < len(sizes):
            inputs = self._inputs([conversations[row] for row in fitting])
        answers = dict(zip(fitting, self._generate(inputs), strict=True)) if fitting else {}
        lost = Completion("", False, too_long=True)
        return [(answers.get(row, lost), size) for row, size in enumerate(sizes)]

    def _inputs(self, conversations: list[list[Message]]) -> Any:
        """Tensors of a batch, padded on the left; every conversation has as many images."""
        images = [_images(messages) for messages in conversations]
        return self._processor(
            text=[self._prompt(messages) for messages in conversations],
            images=images if any(images) else None,
            padding=True,
            return_tensors="pt",
            add_special_tokens=False,  # the template has written them
        )

    def _generate(self, inputs: Any) -> list[Completion]:
        import torch
        from transformers import GenerationConfig

        settings, tokenizer = self._settings, self._tokenizer
        declared = self._model.generation_config.eos_token_id
        ends = {tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])}
        drawn = {"temperature": settings.temperature, "top_k": 0, "top_p": 1.0}
        decoding = GenerationConfig(
            max_new_tokens=settings.max_new_tokens,
            do_sample=settings.temperature is not None,
            repetition_penalty=1.0,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=sorted(ends - {None}) or None,
            **(drawn if settings.temperature is not None else {}),
        )
        with torch.no_grad():
            moved = inputs.to(self._model.device, dtype=self._model.dtype)  # whole numbers stay
            output = self._model.generate(**moved, generation_config=decoding)
        found = []
        for tokens in output[:, inputs["input_ids"].shape[1] :].tolist():
            end = next((place for place, token in enumerate(tokens) if token in ends), None)
            text = tokenizer.decode(tokens[:end], skip_special_tokens=True)
            found.append(Completion(text, end is None, tuple(tokens[:end])))
        return found

    def _prompt(self, messages: list[Message]) -> str:
        return str(
            self._processor.apply_chat_template(
                [{**message, "content": _parts(message)} for message in messages],
                tokenize=False,
                add_generation_prompt=True,
                **self._settings.chat_template_kwargs,
            )
        )


def _processor(settings: VisionSettings) -> Any:
    from transformers import AutoProcessor

    name = settings.model
    try:
        processor = AutoProcessor.from_pretrained(
            resolve(name),
            revision=settings.revision,
            trust_remote_code=settings.trust_remote_code,
            **settings.processor,
        )
    except (OSError, ValueError) as error:
        raise ModelError(f"model {name!r}: no processor that can be read: {error}") from error
    if getattr(processor, "image_processor", None) is None:
        raise ModelError(
            f"model {name!r} reads no images; take a vision model, or the generator transformers "
            "with reads: text"
        )
    tokenizer = processor.tokenizer
    if (processor.chat_template or tokenizer.chat_template) is None:
        raise ModelError(
            f"model {name!r} has no chat template; take its instruction-tuned version, or save a "
            "template with its processor"
        )
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return processor


def _parts(message: Message) -> list[dict[str, Any]]:
    """A message's content as parts, in the form of transformers' templates."""
    content = message["content"]
    given = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{"type": "image"} if part["type"] == "image_url" else part for part in given]


def _images(messages: list[Message]) -> "list[Image]":
    """The images of a conversation in order. They are data URLs of our own: nothing is fetched."""
    from PIL import Image

    contents = (message["content"] for message in messages)
    parts = [part for content in contents if not isinstance(content, str) for part in content]
    urls = (part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    return [
        Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
        for url in urls
    ]
