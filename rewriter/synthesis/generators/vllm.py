"""A language or vision model on this machine, by vLLM (extra `vllm`)."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from retrievers.base import import_extra
from rewriter.synthesis.generators.base import Build, Generator, Reply, Request
from rewriter.synthesis.prompts import Message


class VllmSettings(BaseModel):
    """The model, and how it writes.

    Attributes:
        model: a hub id or a folder.
        max_new_tokens: longest answer, its thinking included.
        temperature: 0 is greedy.
        batch_size: requests handed over at once; vLLM batches within them by itself.
        context: tokens of prompt and answer; None takes what the model declares.
        chat_template_kwargs: handed to the chat template, such as `enable_thinking`.
        engine: further arguments of `vllm.LLM`, such as `tensor_parallel_size`.
        sampling: further arguments of `vllm.SamplingParams`, such as `top_p`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str
    max_new_tokens: int = Field(default=2048, ge=1)
    temperature: float = Field(default=0.7, ge=0, allow_inf_nan=False)
    batch_size: int = Field(default=256, ge=1)
    context: int | None = Field(default=None, ge=1)
    chat_template_kwargs: dict[str, Any] = {}
    engine: dict[str, Any] = {}
    sampling: dict[str, Any] = {}

    def identity(self) -> dict[str, Any]:
        """See `Identified`."""
        decided = self.model_dump(mode="json", exclude={"batch_size", "engine"})
        return {"generator": "vllm", **decided}


class VllmGenerator(Generator):
    """Loads the model.

    Raises:
        retrievers.base.MissingExtra: vLLM is not installed.
    """

    reads_pages = True

    def __init__(self, settings: VllmSettings) -> None:
        self._settings = settings
        self._vllm = import_extra("vllm", "vllm")
        self._engine = self._vllm.LLM(
            model=settings.model, max_model_len=settings.context, **settings.engine
        )
        self._tokenizer = self._engine.get_tokenizer()

    def conversation(self, build: Build, text: str) -> list[Message]:
        """See `Generator`; halved until it fits, the template around it untouched."""
        room = self._settings.context
        while room and text and self._count(build(text)) + self._settings.max_new_tokens > room:
            text = text[: len(text) // 2].rstrip()
        return build(text)

    def write(self, requests: Iterable[Request]) -> Iterator[list[Reply]]:
        """See `Generator`."""
        source = iter(requests)
        while batch := list(islice(source, self._settings.batch_size)):
            outputs = self._engine.chat(
                [one.messages for one in batch],
                [self._sampling(one) for one in batch],
                chat_template_kwargs=self._settings.chat_template_kwargs or None,
                use_tqdm=False,
            )
            yield [_reply(one.key, output) for one, output in zip(batch, outputs, strict=True)]

    def _sampling(self, request: Request) -> Any:
        return self._vllm.SamplingParams(
            temperature=self._settings.temperature,
            max_tokens=self._settings.max_new_tokens,
            seed=request.seed,
            **self._settings.sampling,
        )

    def _count(self, messages: list[Message]) -> int:
        return len(self._tokenizer.apply_chat_template(messages, add_generation_prompt=True))


def _reply(key: str, output: Any) -> Reply:
    answer = output.outputs[0]
    return Reply(
        key,
        answer.text,
        answer.finish_reason == "length",
        len(output.prompt_token_ids or ()),
        len(answer.token_ids),
    )
