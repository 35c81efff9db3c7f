"""The settings of the http backend, checked without asking anybody."""

import re
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from retrievers.answers import EngineSettings
from retrievers.http.template import ENVIRONMENT, placeholders
from retrievers.index import fingerprint

_SECRET = re.compile(r"auth|token|secret|passw|cookie|key", re.IGNORECASE)
# How the engine is called says nothing about what it finds.
_MANNERS = {"concurrency", "timeout_s", "retries", "backoff_s", "max_wait_s", "verify", "probe"}
_MANNERS |= {"batch_size", "headers", "basic_auth"}


class HttpSettings(EngineSettings):
    """How to ask, and how to read the answer.

    Attributes:
        url: where to send it: http or https, without user and password.
        method: of the request.
        headers: name → value. `${NAME}` in a value stands for the environment variable NAME;
            secrets are given in this way only.
        basic_auth: "${USER}:${PASSWORD}", sent as HTTP basic authentication.
        params: what follows `?` in the address, escaped; placeholders as in `request`.
        request: the body, any structure; None for none. In its texts `{query}` stands for the
            query and `{k}` for the number of hits; a text that is nothing but "{k}" becomes a
            number, and one that is nothing but "{queries}" the list of queries. What is filled in
            is never read again, so that quotes and braces in a query are plain text.
        body: "json", or "ndjson" for engines that read lines (`_msearch`): `request` is then the
            list of one query's lines.
        batch: several queries a call, at most `batch_size`; else one a call.
        answers: JMESPath, with `batch`: the list of the queries' answers, in their order.
        hits: JMESPath in an answer: the list of its hits, best first.
        id, score: JMESPath in a hit; "@" is the hit itself. Without scores the rank counts.
        failed: JMESPath in an answer: true where the engine says that it is not complete. Such an
            answer is a failed search, never a short list.
        concurrency: calls at the same time.
        timeout_s: seconds until a call is given up: for the connection, and for the answer.
        retries: further tries of a call that failed for a reason that may pass.
        backoff_s: seconds before the first of them, doubled each time, up to a third shorter at
            random; `Retry-After` goes first.
        max_wait_s: the longest wait before a try.
        verify: check the server's certificate; or the path of a file of authorities to trust.
    """

    url: str
    method: Literal["GET", "POST"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    basic_auth: str | None = None
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
    concurrency: int = Field(default=8, ge=1, le=256)
    timeout_s: float = Field(default=10, gt=0, allow_inf_nan=False)
    retries: int = Field(default=2, ge=0)
    backoff_s: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    max_wait_s: float = Field(default=60, ge=0, allow_inf_nan=False)
    verify: bool | str = True

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise _hidden((), "a user or password in it: give them as basic_auth or a header")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("give it in full, as http://localhost:9200/docs/_search")
        return url

    @field_validator("headers")
    @classmethod
    def _no_secrets(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", name, re.ASCII):
                raise _hidden((name,), "no header can have this name")
            if _SECRET.search(name) and not ENVIRONMENT.search(value):
                raise _hidden(
                    (name,), "a secret is given by an environment variable: write ${ITS_NAME}"
                )
        return headers

    @field_validator("basic_auth")
    @classmethod
    def _no_password(cls, given: str | None) -> str | None:
        if given is not None and not re.fullmatch(r"[^:]+:\$\{\w+\}", given):
            raise _hidden((), "write ${USER}:${PASSWORD}, with environment variables' names")
        return given

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

    @model_validator(mode="after")
    def _asks(self) -> "HttpSettings":
        if self.body == "ndjson" and not (self.batch and isinstance(self.request, list)):
            raise _hidden((), "body: ndjson needs batch: true and a list of lines as `request`")
        lists = self.batch and self.body == "json"
        wanted, other = ("{queries}", "{query}") if lists else ("{query}", "{queries}")
        there = placeholders([self.request, self.params])
        if wanted not in there or other in there:
            raise _hidden(
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
        """Hash of what decides what is found."""
        return fingerprint(self.model_dump(mode="json", exclude=_MANNERS))


def _hidden(location: tuple[str, ...], reason: str) -> ValidationError:
    """A fault whose message does not show what was given."""
    kind = PydanticCustomError("value_error", "{reason}", {"reason": reason})
    details = InitErrorDetails(type=kind, loc=location, input="not shown")
    return ValidationError.from_exception_data("HttpSettings", [details])
