"""A request from a template: values go into the structure, never into text that is read again."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_PLACEHOLDER = re.compile(r"\{(?:query|queries|k)\}")


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its placeholders replaced.

    Args:
        template: mappings, lists and texts in any depth; other values stay as they are.
        values: "{query}" → what stands there. A text that is the placeholder alone becomes the
            value itself, of its own type.
    """
    if isinstance(template, str):
        if template in values:
            return values[template]
        return _PLACEHOLDER.sub(lambda found: str(values[found.group()]), template)
    if isinstance(template, Mapping):
        return {key: fill(inner, values) for key, inner in template.items()}
    if isinstance(template, list | tuple):
        return [fill(inner, values) for inner in template]
    return template


def placeholders(template: Any) -> set[str]:
    """The placeholders in a template; `{queries}` only where it stands alone."""
    return {
        found
        for text in _texts(template)
        for found in _PLACEHOLDER.findall(text)
        if found == text or found != "{queries}"
    }


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for inner in template.values():
            yield from _texts(inner)
    elif isinstance(template, list | tuple):
        for inner in template:
            yield from _texts(inner)
