"""Files of a result folder: JSON, JSON lines, the documents."""

import json
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from rewriter.report.faults import ReportError


@dataclass(frozen=True)
class Document:
    """What is shown of a document. image: a picture of the page; None for text."""

    title: str
    text: str
    image: Path | None = None


def text_file(path: Path) -> str:
    """The text; empty where there is no such file. Raises ReportError where it is not UTF-8."""
    if not path.is_file():
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ReportError(f"{path} is not UTF-8: {error}") from error


def json_file(path: Path) -> Any:
    """The content; None where there is no such file. Raises ReportError where it is no JSON."""
    text = text_file(path)
    return _json(text, str(path)) if text else None


def json_lines(path: Path) -> list[dict[str, Any]]:
    """One object a line, empty where there is no such file. Raises ReportError: file:line."""
    rows = []
    for number, line in enumerate(text_file(path).split("\n"), 1):
        if line.strip():
            row = _json(line, f"{path}:{number}")
            if not isinstance(row, dict):
                raise ReportError(f"{path}:{number}: {line[:80]!r} is no JSON object")
            rows.append(row)
    return rows


def documents(folder: Path) -> dict[str, Document]:
    """`documents.jsonl` by id.

    Raises:
        ReportError: a line without an id, or an image that is outside of the folder or not there.
    """
    path = folder / "documents.jsonl"
    found = {}
    for number, row in enumerate(json_lines(path), 1):
        where = f"{path}:{number}"
        if not isinstance(row.get("id"), str):
            raise ReportError(f'{where}: no "id", or one that is no string')
        title, text = (str(row.get(key) or "") for key in ("title", "text"))
        found[row["id"]] = Document(title, text, _image(folder, row.get("image"), where))
    return found


def _image(folder: Path, name: Any, where: str) -> Path | None:
    if not name:
        return None
    inside = PurePath(str(name))
    path = folder / inside
    if inside.is_absolute() or ".." in inside.parts or not path.is_file():
        raise ReportError(f'{where}: "image" {name!r} is no file inside of {folder}')
    return path


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ReportError(f"{where} is no JSON: {error}") from error
