"""Section headings as queries: no model is needed.

A canonical set to compare engines with. Its queries are words of the documents themselves, so it
favours keyword search.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rewriter.synthesis.generators.base import Generator, Reply, Request

NOTE = (
    "The queries are section headings: words of the documents themselves. The set favours keyword "
    "search, and says little about questions that people ask."
)
_FENCED = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(
    r"^#{1,6}[ \t]+(?P<marked>.+?)[ \t]*#*[ \t]*$"
    r"|^(?P<underlined>\S.*)\n(?:={3,}|-{3,}|~{3,})[ \t]*$"
    r"|<h[1-6]\b[^>]*>(?P<html>.*?)</h[1-6]>",
    re.MULTILINE | re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]+>")


class HeadingsSettings(BaseModel):
    """Which headings are taken.

    Attributes:
        title: take the document's title where it has no headings.
        most_chars: longer ones are no headings.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: bool = True
    most_chars: int = Field(default=200, ge=1)

    def identity(self) -> dict[str, Any]:
        """See `Identified`."""
        return {"generator": "headings", **self.model_dump(mode="json")}


class HeadingsGenerator(Generator):
    """Answers the n-th request about a document with its n-th heading."""

    tagged = False
    note = NOTE

    def __init__(self, settings: HeadingsSettings) -> None:
        self._settings = settings

    def write(self, requests: Iterable[Request]) -> Iterator[list[Reply]]:
        """See `Generator`; a document that has no more headings holds too little."""
        for request in requests:
            title, *found = request.headings
            usable = found or [title] * self._settings.title
            fitting = [one for one in usable if 0 < len(one) <= self._settings.most_chars]
            text = fitting[request.number] if request.number < len(fitting) else ""
            yield [Reply(request.key, text)]


def headings(title: str, text: str, metadata: Mapping[str, Any]) -> list[str]:
    """The title, then the headings of a text in order, each once.

    They are read from Markdown, reStructuredText and HTML, and from `headings` in the metadata: a
    list, or lines as in MS MARCO v2.1.
    """
    declared = metadata.get("headings") or []
    lines = declared.splitlines() if isinstance(declared, str) else map(str, declared)
    inside = (_plain(match) for match in _HEADING.finditer(_FENCED.sub("", text)))
    found = [" ".join(one.split()) for one in (*lines, *inside)]
    return [title.strip(), *dict.fromkeys(one for one in found if one)]


def _plain(match: "re.Match[str]") -> str:
    if match["html"] is not None:
        return unescape(_TAG.sub("", match["html"]))
    return match["marked"] or match["underlined"]
