"""A request from a template: values go into the structure, never into text that is read again."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_FILLED = re.compile(ENVIRONMENT.pattern + r"|\{(?:query|queries|k)\}")


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its placeholders replaced.

    Args:
        template: mappings, lists and texts in any depth; other values stay as they are.
        values: "{query}" or "${NAME}" → what stands there. A text that is the placeholder alone
            becomes the value itself, of its own type.
    """
    if isinstance(template, str):
        if template in values:
            return values[template]
        return _FILLED.sub(lambda found: str(values[found.group()]), template)
    if isinstance(template, Mapping):
        return {key: fill(inner, values) for key, inner in template.items()}
    if isinstance(template, list | tuple):
        return [fill(inner, values) for inner in template]
    return template


def variables(template: Any) -> set[str]:
    """The variables of the environment in a template, as they stand there: "${NAME}"."""
    return {found for _, found in _found(template) if found.startswith("$")}


def placeholders(template: Any) -> set[str]:
    """The placeholders in a template; `{queries}` only where it stands alone."""
    there = ((text, found) for text, found in _found(template) if not found.startswith("$"))
    return {found for text, found in there if found == text or found != "{queries}"}


def _found(template: Any) -> Iterator[tuple[str, str]]:
    """(whole text, one of what is filled in there)."""
    for text in _texts(template):
        for found in _FILLED.finditer(text):
            yield text, found.group()


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for inner in template.values():
            yield from _texts(inner)
    elif isinstance(template, list | tuple):
        for inner in template:
            yield from _texts(inner)
