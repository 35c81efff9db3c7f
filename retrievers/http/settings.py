"""The settings of the http backend, checked without asking anybody."""

from importlib.util import find_spec
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from retrievers.answers import EngineSettings
from retrievers.http.call_settings import CallSettings, hidden, is_secret
from retrievers.http.template import ENVIRONMENT, placeholders
from retrievers.index import fingerprint

_MEDIA_TYPES = {"json": "application/json", "ndjson": "application/x-ndjson"}
# How the engine is called says nothing about what it finds.
_MANNERS = {"concurrency", "timeout_s", "retries", "backoff_s", "max_wait_s", "verify", "probe"}
_MANNERS |= {"batch_size", "headers", "basic_auth"}


class HttpSettings(CallSettings, EngineSettings):
    """How to ask, and how to read the answer; see `CallSettings` for how it is called.

    Attributes:
        params: what follows `?` in the address, escaped; filled in as `request` is.
        request: the body, any structure; None for none. In its texts `{query}` stands for the
            query and `{k}` for the number of hits; a text that is nothing but "{k}" becomes a
            number, and one that is nothing but "{queries}" the list of queries. What is filled in
            is never read again, so that quotes and braces in a query are plain text. `${NAME}`
            stands for the environment variable NAME.
        body: "json", or "ndjson" for engines that read lines (`_msearch`): `request` is then the
            list of one query's lines.
        batch: several queries a call, at most `batch_size`; else one a call.
        answers: JMESPath, with `batch`: the list of the queries' answers, in their order.
        hits: JMESPath in an answer: the list of its hits, best first.
        id, score: JMESPath in a hit; "@" is the hit itself. Without scores the rank counts.
        failed: JMESPath in an answer: true where the engine says that it is not complete. Such an
            answer is a failed search, never a short list.
    """

    place: ClassVar[str] = "retrievers.http"

    params: dict[str, Any] = Field(default_factory=dict)
    request: Any = None
    body: Literal["json", "ndjson"] = "json"
    batch: bool = False
    batch_size: int = Field(default=32, ge=1)
    answers: str = "@"
    hits: str
    id: str = "id"
    score: str = "score"
    failed: str | None = None

    @property
    def media_type(self) -> str | None:
        """Of the body; None without one."""
        return None if self.request is None else _MEDIA_TYPES[self.body]

    @field_validator("answers", "hits", "id", "score", "failed")
    @classmethod
    def _expression(cls, given: str | None) -> str | None:
        if given is not None and find_spec("jmespath"):
            import jmespath

            try:
                jmespath.compile(given)
            except jmespath.exceptions.JMESPathError as error:
                raise ValueError(f"not JMESPath: {' '.join(str(error).split())}") from error
        return given

    @field_validator("params")
    @classmethod
    def _no_secret_parameters(cls, params: dict[str, Any]) -> dict[str, Any]:
        for name, value in params.items():
            if is_secret(name) and not (isinstance(value, str) and _filled_in(value)):
                raise hidden(
                    (name,), "a secret is given by an environment variable: write ${ITS_NAME}"
                )
        return params

    @model_validator(mode="after")
    def _asks(self) -> "HttpSettings":
        if self.body == "ndjson" and not (self.batch and isinstance(self.request, list)):
            raise hidden((), "body: ndjson needs batch: true and a list of lines as `request`")
        lists = self.batch and self.body == "json"
        wanted, other = ("{queries}", "{query}") if lists else ("{query}", "{queries}")
        there = placeholders([self.request, self.params])
        if wanted not in there or other in there:
            raise hidden(
                (),
                f"with batch: {str(self.batch).lower()} and body: {self.body}, `request` or "
                f"`params` has to hold {wanted} as a text, and not {other}",
            )
        return self

    @property
    def takes_k(self) -> bool:
        """Whether the engine is told how many hits are wanted."""
        return "{k}" in placeholders([self.request, self.params])

    def identity(self) -> str:
        """Hash of what decides what is found; of headers those that hold no secret."""
        parts = self.model_dump(mode="json", exclude=_MANNERS)
        headers = self.open_headers()
        return fingerprint({**parts, "headers": headers} if headers else parts)


def _filled_in(value: str) -> bool:
    return bool(ENVIRONMENT.search(value) or placeholders(value))
