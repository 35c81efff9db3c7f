"""Completion -> rewrite or counted failure: the only parser, for training, evaluation and serving.

It sees the completion alone: a prompt may hold the very marks that are looked for here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, get_args

Completion: TypeAlias = str | Sequence[Mapping[str, object]]
Failure: TypeAlias = Literal[
    "empty",  # nothing to read is left
    "unclosed_think",  # cut off, or never done, thinking
    "no_answer_tag",  # <answer> was asked for and never opened
    "unclosed_answer_tag",  # opened, but no complete pair
    "no_assistant_message",  # a message list without one
]
FAILURES: tuple[Failure, ...] = get_args(Failure)

# What models write before the rewrite although nobody asked; matched in any case, before a colon.
LABELS: tuple[str, ...] = (
    "query",
    "rewrite",
    "rewritten query",
    "rewritten search query",
    "search query",
    "reformulated query",
    "improved query",
    "optimized query",
    "search text",
    "검색어",
    "검색 쿼리",
    "재작성된 검색어",
    "재작성된 쿼리",
    "질의",
    "쿼리",
)
# Markdown's bold is here because models put it where others put quotes.
QUOTES: tuple[tuple[str, str], ...] = (
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("„", "“"),
    ("‘", "’"),
    ("«", "»"),
    ("「", "」"),
    ("『", "』"),
    ("`", "`"),
    ("**", "**"),
)

_NAMES = "|".join(label.replace(" ", r"\s+") for label in LABELS)
_LABEL = re.compile(
    rf"(?:\*\*\s*(?:{_NAMES})\s*(?:[:：]\s*\*\*|\*\*\s*[:：])|(?:{_NAMES})\s*[:：])", re.IGNORECASE
)
# The language is a word alone on its line; if there is no other line, that word is the rewrite.
_FENCE = re.compile(r"`{3,}(?:[A-Za-z0-9_+#.-]*[^\S\n]*\n(?!\s*(?:```|\Z)))?")
_THINK = re.compile(r"<think>", re.IGNORECASE)
_END_THINK = re.compile(r"</think>", re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """One completion as read. text: the rewrite, on one line, None exactly where `failure` is set.

    outside: characters of the output that are not the rewrite, |output| - |rewrite|.
    """

    text: str | None
    failure: Failure | None
    outside: int


class _ParseError(Exception):
    """Carries a Failure from the step that met it to `parse`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


def parse(completion: Completion, answer_tag: str | None = None) -> Parsed:
    """Read the rewrite from a completion, a string or a message list (its last assistant message).

    Thinking goes, then all outside the last complete <answer_tag> pair if a tag is given, then
    fences, labels and quotes around the rest. Raises TypeError for a completion of another form and
    ValueError for a tag that is not one word.
    """
    output = ""
    try:
        output = _content(completion)
        text = _after_thinking(output)
        text = _clean(text if answer_tag is None else _answer(text, answer_tag))
    except _ParseError as error:
        return Parsed(None, error.failure, len(output))
    return Parsed(text, None, len(output) - len(text))


def _content(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    if isinstance(completion, bytes) or not isinstance(completion, Sequence):
        raise _wrong("a completion", "a string or a list of messages", completion)
    for message in reversed(completion):
        if not isinstance(message, Mapping):
            raise _wrong("a message", 'a mapping such as {"role": …, "content": …}', message)
        if message.get("role") == "assistant":
            return _message_text(message.get("content"))
    raise _ParseError("no_assistant_message")


def _message_text(content: object) -> str:
    if content is None:  # a message that only calls a tool
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, bytes) or not isinstance(content, Sequence):
        raise _wrong("a message's content", "a string or a list of parts", content)
    return "".join(_part_text(part) for part in content)


def _part_text(part: object) -> str:
    if not isinstance(part, Mapping):
        raise _wrong("a part of a message", 'a mapping such as {"type": "text", …}', part)
    if part.get("type", "text") != "text":
        return ""
    text = part.get("text")
    if not isinstance(text, str):
        raise _wrong("the text of a message's part", "a string", text)
    return text


def _wrong(what: str, allowed: str, given: object) -> TypeError:
    return TypeError(f"{what} is {allowed}, not {type(given).__name__}")


def _after_thinking(output: str) -> str:
    text = _END_THINK.split(output)[-1]
    if _THINK.search(text):
        raise _ParseError("unclosed_think")
    return text


def check_tag(tag: str) -> None:
    """Raise ValueError for an answer tag that is not one word."""
    if not re.fullmatch(r"[\w-]+", tag):
        raise ValueError(f'answer_tag is {tag!r}; give one word without brackets, such as "answer"')


@cache
def _tags(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    check_tag(tag)
    pair = rf"<{tag}>((?:(?!</?{tag}>).)*)</{tag}>"
    return re.compile(pair, re.IGNORECASE | re.DOTALL), re.compile(f"<{tag}>", re.IGNORECASE)


def _answer(text: str, tag: str) -> str:
    pair, opening = _tags(tag)
    answers = pair.findall(text)
    if answers:
        return str(answers[-1])
    raise _ParseError("unclosed_answer_tag" if opening.search(text) else "no_answer_tag")


def _clean(text: str) -> str:
    text = _one_line(_unwrap(text))  # in this order: a fence's language is told by its line
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise _ParseError("empty")
    return text


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def _unwrap(text: str) -> str:
    """Strip what surrounds the rewrite, layer by layer, until nothing more comes off."""
    before = None
    while text != before:
        before = text
        for strip in (_unfence, _unquote, _unlabel):
            text = strip(text.strip())
    return text


def _unfence(text: str) -> str:
    fence = _FENCE.match(text)
    # What follows the closing fence is an explanation; a missing one was cut off.
    return text[fence.end() :].partition("```")[0] if fence else text


def _unlabel(text: str) -> str:
    label = _LABEL.match(text)
    return text[label.end() :] if label else text


def _unquote(text: str) -> str:
    for left, right in QUOTES:
        inner = text[len(left) : len(text) - len(right)]
        whole = len(text) >= len(left) + len(right)
        if whole and text.startswith(left) and text.endswith(right):
            return text if left in inner or right in inner else inner
    return text
