"""Any service with OpenAI's chat completions: vLLM, SGLang, llama.cpp, Ollama, hosted ones."""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from retrievers.base import PermanentSearchError, SearchError
from retrievers.http.call_settings import CallSettings
from retrievers.http.client import Client
from rewriter.synthesis.generators.base import Generator, Reply, Request
from rewriter.synthesis.generators.pace import Pace

# What a call is made with says nothing about what comes back.
_MANNERS = {"concurrency", "timeout_s", "retries", "backoff_s", "max_wait_s", "verify"}
_MANNERS |= {"url", "headers", "basic_auth", "key_variable", "requests_per_minute"}


class OpenAISettings(CallSettings):
    """Which service, and how it writes; see `CallSettings` for how it is called.

    Attributes:
        url: up to the version, such as http://localhost:8000/v1.
        model: as the service names it. A vision model, where pages are read.
        key_variable: environment variable that holds the key; None where none is wanted.
        max_new_tokens: longest answer, its thinking included.
        temperature: of the draw; the seed of each request is sent along.
        requests_per_minute: calls begun at most, further tries included; None: no limit.
        extra: further keys of the request, such as `top_p` or `chat_template_kwargs`; null removes
            one that is sent otherwise, for services that refuse it.
    """

    place: ClassVar[str] = "synthesis.generator.options"

    method: Literal["POST"] = "POST"
    timeout_s: float = Field(default=300, gt=0, allow_inf_nan=False)
    retries: int = Field(default=5, ge=0)
    backoff_s: float = Field(default=1, ge=0, allow_inf_nan=False)
    model: str
    key_variable: str | None = None
    max_new_tokens: int = Field(default=2048, ge=1)
    temperature: float = Field(default=0.7, ge=0, allow_inf_nan=False)
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    extra: dict[str, Any] = Field(default={})

    @field_validator("key_variable")
    @classmethod
    def _name(cls, given: str | None) -> str | None:
        if given is not None and not (given.isidentifier() and given.isupper()):
            raise ValueError(
                "give the NAME of an environment variable in capitals, such as OPENAI_API_KEY, "
                "never the key"
            )
        return given

    def identity(self) -> dict[str, Any]:
        """See `Identified`; the address is no part of it, since models move."""
        return {"generator": "openai", **self.model_dump(mode="json", exclude=_MANNERS)}

    def call(self) -> CallSettings:
        """How the completions are asked for."""
        key = self.key_variable
        own = {"Authorization": f"Bearer ${{{key}}}"} if key else {}
        values = self.model_dump(include=set(CallSettings.model_fields))
        address = f"{self.url.rstrip('/')}/chat/completions"
        return _Call.model_validate({**values, "url": address, "headers": own | self.headers})


class _Call(CallSettings):
    place: ClassVar[str] = OpenAISettings.place


class OpenAIGenerator(Generator):
    """Calls the service, several requests at a time.

    Raises:
        retrievers.base.MissingExtra: requests is not installed.
        retrievers.http.secrets.SecretError: the key's variable is not set.
    """

    reads_pages = True

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        # Before every try: a service that refuses for too many calls counts the further tries too.
        self._client = Client(settings.call(), Pace(settings.requests_per_minute).wait)

    def write(self, requests: Iterable[Request]) -> Iterator[list[Reply]]:
        """See `Generator`. No more requests are taken than are under way."""
        source = iter(requests)
        size = self._settings.concurrency
        pool = ThreadPoolExecutor(size)
        waiting: set[Future[Reply]] = set()
        try:
            while True:
                more = islice(source, size - len(waiting))
                waiting |= {pool.submit(self._ask, request) for request in more}
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield [one.result() for one in done]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, request: Request) -> Reply:
        settings = self._settings
        body = {
            "model": settings.model,
            "messages": request.messages,
            "max_tokens": settings.max_new_tokens,
            "temperature": settings.temperature,
            "seed": request.seed,
            **settings.extra,
        }
        kept = {key: value for key, value in body.items() if value is not None}
        try:
            return self._client.call(
                {}, json.dumps(kept).encode(), lambda answer: self._read(request.key, answer)
            )
        except SearchError as error:
            lost = isinstance(error, PermanentSearchError)
            return Reply(request.key, None, failure=str(error), permanent=lost)

    def _read(self, key: str, answer: Any) -> Reply:
        """Raises SearchError where the answer is none, so that it is asked for again."""
        try:
            choice = answer["choices"][0]
            text = choice["message"]["content"]
        except (KeyError, IndexError, TypeError) as error:
            raise SearchError(f"no chat completion: {self._client.show(answer)}") from error
        if not isinstance(text, str | None):
            raise SearchError(f"the content is no text: {self._client.show(text)}")
        usage = answer.get("usage")
        counts: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
        return Reply(
            key,
            text or "",
            choice.get("finish_reason") == "length",
            _count(counts.get("prompt_tokens")),
            _count(counts.get("completion_tokens")),
        )


def _count(given: Any) -> int | None:
    """What is no number was not counted: one service's form must not break the sum."""
    return given if isinstance(given, int) else None
