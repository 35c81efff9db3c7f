"""What two results depend on: what differs besides the systems, and how two systems were made.

A result folder says what it depends on in `facts.json`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Of the facts, what must be equal. The systems are what is compared; the configuration is compared
# by what it did: documents, backends, measures.
SAME: tuple[str, ...] = (
    "collection",
    "documents",
    "split",
    "queries",
    "qrels",
    "measures",
    "depth",
)
SAME += ("primary", "subset", "drop_query_id", "backends", "versions")
# Of what a system was made by, what may be taken for the effect of its training. Its weights are
# what is compared.
MADE_BY = ("kind", "model", "prompt", "decoding", "template", "versions")
ABSENT = "absent"


class Difference(NamedTuple):
    """A fact that is not the same in both folders; values as texts."""

    key: str
    first: str
    second: str


def made_otherwise(
    facts: tuple[Mapping[str, Any], Mapping[str, Any]], names: tuple[str, str]
) -> Iterator[Difference]:
    """How two systems were made otherwise, where both say so. names: one of each folder."""
    one, other = (
        _made_by(some.get("systems", {}).get(name, {}))
        for some, name in zip(facts, names, strict=True)
    )
    for key in MADE_BY:
        if key in one and key in other:
            for name, left, right in _walk(key, one[key], other[key]):
                yield Difference(name, _text(left), _text(right))


def _made_by(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The base model apart from an adapter: "weights" of a checkpoint are the hashes of both."""
    weights = facts.get("weights")
    return {**facts, "model": weights.partition("+")[0]} if weights else dict(facts)


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Difference]:
    """Facts that differ, besides the systems; of nested ones the innermost key.

    A backend that one of the two lacks is no difference: results are compared backend by backend.
    """
    common = first.get("backends", {}).keys() & second.get("backends", {}).keys()
    for key in SAME:
        sides = [some.get(key, ABSENT) for some in (first, second)]
        if key == "backends" and common:
            sides = [
                {name: _decisive(one[name]) for name in one if name in common} for one in sides
            ]
        for name, one, other in _walk(key, *sides):
            yield Difference(name, _text(one), _text(other))


def _decisive(backend: Mapping[str, Any]) -> dict[str, Any]:
    """Without what its fingerprint answers for already."""
    return {key: value for key, value in backend.items() if key != "index"}


def settings_changed(
    key: str, then: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[Difference]:
    """Settings that both sides have and that differ. key: of the section, as "retrievers.lexical".

    One that only one side has belongs to another version of rlqr, or to another form of a section.
    """
    for name, one, other in _walk(key, then, now):
        if ABSENT not in (one, other):
            yield Difference(name, _text(one), _text(other))


def _walk(key: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for inner in dict.fromkeys([*one, *other]):
            yield from _walk(f"{key}.{inner}", one.get(inner, ABSENT), other.get(inner, ABSENT))
    elif one != other:
        yield key, one, other


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
