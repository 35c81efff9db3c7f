"""Settings of calls over HTTP: where to, with what headers, and how patiently."""

import re
from typing import ClassVar, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from retrievers.http.template import ENVIRONMENT

_SECRET = re.compile(r"auth|token|secret|passw|cookie|key", re.IGNORECASE)
# Of a parameter the whole name: `keyword` and `keys` are searched with.
_SECRET_PARAMETER = re.compile(
    r"(.*[-_.])?(key|api-?key|auth(orization)?|(access-?)?token|secret|passw\w*)", re.IGNORECASE
)


class CallSettings(BaseModel):
    """How a service is called.

    Attributes:
        place: where these settings stand in the configuration, for messages.
        media_type: of what is sent; None sends no body.
        url: where to send it: http or https, without user, password or another secret.
        method: of the request.
        headers: name → value. `${NAME}` in a value stands for the environment variable NAME;
            secrets are given in this way only.
        basic_auth: "${USER}:${PASSWORD}", sent as HTTP basic authentication.
        concurrency: calls at the same time.
        timeout_s: seconds until a call is given up: for the connection, and for the answer's body
            whole; of the lines before it, for each piece that comes.
        retries: further tries of a call that failed for a reason that may pass.
        backoff_s: seconds before the first of them, doubled each time, up to a third shorter at
            random; `Retry-After` goes first.
        max_wait_s: the longest wait before a try.
        verify: check the server's certificate; or the path of a file of authorities to trust.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    place: ClassVar[str] = "http"

    url: str
    method: Literal["GET", "POST"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    basic_auth: str | None = None
    concurrency: int = Field(default=8, ge=1, le=256)
    timeout_s: float = Field(default=10, gt=0, allow_inf_nan=False)
    retries: int = Field(default=2, ge=0)
    backoff_s: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    max_wait_s: float = Field(default=60, ge=0, allow_inf_nan=False)
    verify: bool | str = True

    @property
    def media_type(self) -> str | None:
        """Of the body."""
        return "application/json"

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise hidden((), "a user or password in it: give them as basic_auth or a header")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("give it in full, as http://localhost:9200/docs/_search")
        if ENVIRONMENT.search(url):
            raise hidden((), "no ${NAME} is filled in here: give it in headers, params or request")
        for name, _ in parse_qsl(parts.query, keep_blank_values=True):
            if is_secret(name):
                raise hidden(
                    (), f"a secret, {name}: give it as a header or in params, ${{ITS_NAME}}"
                )
        return url

    @field_validator("headers")
    @classmethod
    def _no_secrets(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", name, re.ASCII):
                raise hidden((name,), "no header can have this name")
            if _SECRET.search(name) and not ENVIRONMENT.search(value):
                raise hidden(
                    (name,), "a secret is given by an environment variable: write ${ITS_NAME}"
                )
        return headers

    def open_headers(self) -> dict[str, str]:
        """Those that hold no secret, by names in lower case: they may decide what is found."""
        given = {name.lower(): value for name, value in self.headers.items()}
        return {name: given[name] for name in sorted(given) if not _SECRET.search(name)}

    @field_validator("basic_auth")
    @classmethod
    def _no_password(cls, given: str | None) -> str | None:
        if given is not None and not re.fullmatch(r"[^:]+:\$\{\w+\}", given):
            raise hidden((), "write ${USER}:${PASSWORD}, with environment variables' names")
        return given


def is_secret(parameter: str) -> bool:
    """Whether what follows `?` by this name is for nobody else to see."""
    return _SECRET_PARAMETER.fullmatch(parameter) is not None


def hidden(location: tuple[str, ...], reason: str) -> ValidationError:
    """A fault whose message does not show what was given."""
    kind = PydanticCustomError("value_error", "{reason}", {"reason": reason})
    details = InitErrorDetails(type=kind, loc=location, input="not shown")
    return ValidationError.from_exception_data("CallSettings", [details])
