"""Logs of one JSON object a line, written line by line while a run goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Where str.splitlines would cut a line in two; JSON itself may hold them as they are.
_LINE_ENDS = {end: f"\\u{end:04x}" for end in (0x85, 0x2028, 0x2029)}


def json_line(row: Mapping[str, Any]) -> str:
    """One object on one line, whatever reads it."""
    return json.dumps(row, ensure_ascii=False).translate(_LINE_ENDS)


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add one line to a log. A lone surrogate, which UTF-8 cannot hold, becomes its escape."""
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(json_line(row) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """The objects of a log that is whole."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]
