"""How the axes of a grid are written: named points or lists of values → level → keys."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Keys = dict[str, Any]  # dotted key → value
_BACKENDS = "reward.backends"


def levels_of(axis: str, given: Any) -> dict[str, Keys]:
    """Level → keys, from named points or from lists of values.

    Lists of several keys go together; a level is called by the first one's value, or by all values
    where that one comes twice.

    Raises:
        ValueError: the axis has neither form, no value, or a value twice.
    """
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"axis {axis!r}: give key: [values], or names with keys below each")
    if all(isinstance(one, Mapping) for one in given.values()):
        return {label(name): dict(keys) for name, keys in given.items()}
    lists = {key: one for key, one in given.items() if isinstance(one, list)}
    if len(lists) < len(given) or len({len(one) for one in lists.values()}) != 1:
        raise ValueError(
            f"axis {axis!r}: its keys need lists of the same length, which go together; or give "
            "names with keys below each"
        )
    rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    if not rows:
        raise ValueError(f"axis {axis!r}: its lists are empty; give at least one value")
    names = [label(next(iter(row.values()))) for row in rows]
    if len(set(names)) < len(names):
        names = [", ".join(map(label, row.values())) for row in rows]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"axis {axis!r}: {twice} is there twice; give each value once")
    return dict(zip(names, rows, strict=True))


def label(value: Any) -> str:
    """What a value is called, in tables and in `exclude`: true, 0.5, lexical+semantic."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "+".join(value)
    return json.dumps(value)


def check_keys(where: str, keys: Mapping[str, Any]) -> None:
    """Refuse a whole section: it would take the place of the base's, and lose all other keys.

    Raises:
        ValueError: names the section, and the dotted keys to write.
    """
    for key, value in keys.items():
        if "." not in key and isinstance(value, Mapping):
            dotted = ", ".join(f"`{key}.{inner}`" for inner in value) or f"`{key}.KEY`"
            raise ValueError(
                f"{where}: `{key}` as a whole would replace that section of the base; write its "
                f"keys with a dot: {dotted}"
            )


def check_apart(levels: Mapping[str, Mapping[str, Keys]]) -> None:
    """Refuse two axes of which the later one writes over what the earlier one set.

    Raises:
        ValueError: names both axes and the key.
    """
    set_by: dict[str, str] = {}
    for axis, points in levels.items():
        own = dict.fromkeys(key for keys in points.values() for key in keys)
        for key in own:
            for other, before in set_by.items():
                if other == key or other.startswith(f"{key}."):
                    raise ValueError(
                        f"axes: {before!r} and {axis!r} both set `{other}`, and the second would "
                        "win in every run; set it in one of them, or make one axis of both"
                    )
        set_by |= dict.fromkeys(own, axis)


def trained_for(points: Mapping[str, Keys]) -> dict[str, str]:
    """Level → the one backend that it is rewarded by; absent where it names several, or none."""
    found = {}
    for level, keys in points.items():
        given = keys.get(_BACKENDS)
        names: Sequence[Any] = [given] if isinstance(given, str) else list(given or ())
        if len(names) == 1:
            found[level] = str(names[0])
    return found
