"""Values from the environment, and texts in which they do not show."""

import base64
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from retrievers.http.call_settings import CallSettings
from retrievers.http.template import ENVIRONMENT, variables


class SecretError(ValueError):
    """An environment variable that the settings name is missing or cannot be sent."""


class Secrets:
    """The headers to send, and what else holds secrets.

    Args:
        settings: with `${NAME}` in headers and `basic_auth`.
        environment: variables; those of the process if None.

    Attributes:
        headers: name → value to send.

    Raises:
        SecretError: a variable is unset, or no header can hold its value.
    """

    def __init__(
        self, settings: CallSettings, environment: Mapping[str, str] | None = None
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._values: dict[str, str] = {}  # what must not show → what stands there instead
        self._place = settings.place
        self.headers = {"Accept": "application/json"}
        if settings.media_type is not None:
            self.headers["Content-Type"] = settings.media_type
        given = {name.lower() for name in settings.headers}
        self.headers = {k: v for k, v in self.headers.items() if k.lower() not in given}
        self.headers |= {k: self._filled(v, f"headers.{k}") for k, v in settings.headers.items()}
        if settings.basic_auth is not None:
            pair = self._filled(settings.basic_auth, "basic_auth")
            coded = base64.b64encode(pair.encode()).decode()
            self._values[coded] = "${…}"
            self.headers["Authorization"] = f"Basic {coded}"

    def variables(self, template: Any, where: str) -> dict[str, str]:
        """ "${NAME}" → value, of all that stand in a template (see `template.fill`).

        Args:
            template: mappings, lists and texts in any depth.
            where: its place in the settings, for messages.

        Raises:
            SecretError: a variable is unset, or not to be sent.
        """
        there = sorted(variables(template))
        return {one: self._filled(one, where) for one in there}

    def hide(self, text: str) -> str:
        """The text, each secret in it replaced by its variable's name."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, self._values[value])
        return text

    def _filled(self, value: str, where: str) -> str:
        return ENVIRONMENT.sub(lambda found: self._variable(found.group(1), where), value)

    def _variable(self, name: str, where: str) -> str:
        value = self._environment.get(name)
        if not value:
            raise SecretError(
                f"{self._place}.{where}: the environment variable {name} is not set; set it "
                f"before the start: export {name}=…"
            )
        if not (value.isprintable() and value.isascii()) or value != value.strip():
            raise SecretError(
                f"{self._place}.{where}: the environment variable {name} holds a line break, "
                "outer spaces or a character that is not ASCII, which cannot be sent"
            )
        for written in (value, quote(value, safe=""), quote_plus(value)):  # as in an address too
            self._values[written] = f"${{{name}}}"
        return value
