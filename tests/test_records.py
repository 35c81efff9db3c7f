"""Records: their checks, grouping, and the JSONL file."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from retrievers.base import Hit
from rewards.parsing import parse
from rewriter.records import (
    Record,
    RecordError,
    Rewrite,
    by,
    check_distinct,
    read_records,
    write_lines,
    write_records,
)

RECORD = Record(
    system="trained",
    backend="lexical",
    split="test",
    query_id="q1",
    origin="synthetic",
    query="서울시의 예산을 알려 줘",
    rewrite="서울시 예산",
    failure=None,
    text="서울시 예산",
    hits=(Hit("a", 2.5), Hit("b", 1.0)),
    grades=(1.0, 0.0),
    metrics={"ndcg@3": 1.0, "mrr@10": 1.0},
)
EXCLUDED = replace(
    RECORD, query_id="q2", rewrite=None, failure="empty", hits=(), grades=(), metrics={}
)


def changed(**fields: object) -> str:
    row = asdict(RECORD) | fields
    return json.dumps({key: value for key, value in row.items() if value != "GONE"})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "records.jsonl"
    write_records([RECORD, EXCLUDED], path)
    assert read_records(path) == [RECORD, EXCLUDED]
    assert isinstance(read_records(path)[0].hits[0], Hit)
    lines = path.read_text("utf-8").split("\n")
    assert len(lines) == 3  # two records and the end
    assert "서울시 예산" in lines[0]  # readable, not escaped
    assert json.loads(lines[0])["hits"] == [["a", 2.5], ["b", 1.0]]
    assert (RECORD.excluded, EXCLUDED.excluded) == (False, True)


@pytest.mark.parametrize("text", ["a\u2028b", "a\nb\r\x85c", "cut \ud800 here", '"\\', "\x00"])
def test_any_text_keeps_to_its_line(tmp_path: Path, text: str) -> None:
    record = replace(RECORD, text=text)
    write_records([record, RECORD], tmp_path / "r.jsonl")
    assert read_records(tmp_path / "r.jsonl") == [record, RECORD]


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write_records([RECORD], path)
    broken = replace(RECORD, query_id="q9", metrics={"ndcg@3": float("nan")})
    with pytest.raises(RecordError, match=r"query 'q9'.*not a finite number"):
        write_records([RECORD, broken], path)
    assert read_records(path) == [RECORD]
    assert [entry.name for entry in tmp_path.iterdir()] == ["records.jsonl"]


def test_lines_replace_a_file_whole(tmp_path: Path) -> None:
    write_lines(["one", "two"], tmp_path / "f")
    write_lines(["three"], tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"three\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Expecting"),
        ("", "Expecting"),
        ("[1]", "the line: "),
        (changed(text="GONE"), "text: Field required"),
        (changed(colour="red"), "colour: "),
        (changed(query=1), "query: Input should be a valid string"),
        (changed(hits=[["a"], ["b", 1]]), r"hits\.0"),
        (changed(hits=[["a", 1.0]]), "1 hits, but 2 grades"),
        (changed(system="../up"), r"system '\.\./up'"),
        (changed(metrics={"ndcg@3": float("nan")}), "finite"),
        (changed(hits=[["a", float("inf")], ["b", 1.0]]), "finite"),
        (changed(origin="robot"), "human, synthetic"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f"{changed()}\n{line}\n")
    with pytest.raises(RecordError, match=rf"records\.jsonl:2: .*{message}"):
        read_records(path)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"system": "\xff"}\n')
    with pytest.raises(RecordError, match=r"records\.jsonl:1: "):
        read_records(path)


def test_a_missing_file_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="rlqr eval"):
        read_records(tmp_path / "none.jsonl")


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "모델", "a.b", "a\n"])
def test_names_are_names_of_files(name: str) -> None:
    with pytest.raises(RecordError, match="system"):
        replace(RECORD, system=name)
    with pytest.raises(RecordError, match="backend"):
        replace(RECORD, backend=name)


def test_an_unknown_origin_is_refused() -> None:
    with pytest.raises(RecordError, match="human, synthetic"):
        replace(RECORD, origin="robot")


def test_groups_keep_the_order() -> None:
    other = replace(RECORD, backend="semantic")
    last = replace(RECORD, query_id="q3")
    assert by([other, RECORD, last], "backend") == {"semantic": [other], "lexical": [RECORD, last]}
    assert list(by([other, RECORD, last], "query_id")) == ["q1", "q3"]


def test_one_record_for_each_system_backend_and_query() -> None:
    check_distinct([RECORD, EXCLUDED, replace(RECORD, backend="semantic")])
    with pytest.raises(RecordError, match=r"'trained'.*'lexical'.*'q1'"):
        check_distinct([RECORD, EXCLUDED, replace(RECORD, split="train")])


def test_a_rewrite_is_a_text_or_a_failure_or_neither() -> None:
    assert Rewrite(None) == Rewrite(None, None)
    assert Rewrite.parsed(parse("Query: tax")) == Rewrite("tax")
    assert Rewrite.parsed(parse("<think>tax")) == Rewrite(None, "unclosed_think")
    for text, failure in [("tax", "empty"), (" ", None), ("", None)]:
        with pytest.raises(RecordError, match="not blank"):
            Rewrite(text, failure)
