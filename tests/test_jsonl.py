"""Logs: one line an object, whatever is in its texts, and however it is read."""

import json
from pathlib import Path

from rewriter.jsonl import append, json_line, read


def test_a_line_is_one_line_for_every_reader(tmp_path: Path) -> None:
    row = {"query": "a\u2028b\u2029c\x85d\n서울"}
    assert json_line(row).splitlines() == [json_line(row)]
    assert "서울" in json_line(row)
    append(tmp_path / "log.jsonl", row)
    append(tmp_path / "log.jsonl", row)
    assert read(tmp_path / "log.jsonl") == [row, row]
    text = (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == [row, row]


def test_half_a_surrogate_pair_ends_no_run(tmp_path: Path) -> None:
    """An engine's JSON may hold one, and UTF-8 cannot."""
    append(tmp_path / "log.jsonl", {"id": "\ud83d"})
    assert read(tmp_path / "log.jsonl") == [{"id": "\ud83d"}]
