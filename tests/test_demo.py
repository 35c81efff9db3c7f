"""The demo collection: the standard library's docstrings, and the messages that ship with them."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from retrievers.collection import Collection, Query
from retrievers.demo import stdlib
from retrievers.documents import build_table
from retrievers.identity import CollectionError, EmptyCollectionError, UnknownNameError
from retrievers.leaks import check_leaks, near_duplicates
from retrievers.loaders import load

ROOT = Path(__file__).parents[1]
HEADER = "query-id\tcorpus-id\tscore\n"
COLLECT = """
import hashlib, json, sys
before = set(sys.modules)
from retrievers.demo.stdlib import documents
rows = documents()
unwanted = {"rlcompleter", "antigravity", "this", "readline", "turtle", "idlelib"}
assert not unwanted & (set(sys.modules) - before), unwanted & set(sys.modules)
sys.stderr.write(hashlib.sha256(json.dumps(rows).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    return stdlib.documents()


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, str]]) -> None:
    """Spare a loader the second interpreter."""
    monkeypatch.setattr("retrievers.loaders.stdlib.documents", lambda: rows)


@pytest.fixture(scope="module")
def demo() -> Collection:
    return load("stdlib")


def collect(**environment: str) -> tuple[str, str]:
    """Output and hash of the documents in another process."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECT],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_documents(rows: list[dict[str, str]]) -> None:
    assert 2400 <= len(rows) <= 3800
    ids = [row["id"] for row in rows]
    assert ids == sorted(set(ids))
    assert {"collections.deque", "os.path.join", "re.sub"} <= set(ids)
    assert len({row["text"] for row in rows}) == len(rows)  # equal texts are one document
    assert min(len(row["text"]) for row in rows) >= stdlib.MIN_CHARS
    modules = {row["id"].partition(".")[0] for row in rows}
    assert not modules & stdlib.SKIPPED
    assert not any(module.startswith("_") for module in modules)


def test_equal_texts_are_kept_where_they_are_defined(rows: list[dict[str, str]]) -> None:
    ids = {row["id"] for row in rows}
    assert "json.decoder.JSONDecoder" in ids
    assert "json.JSONDecoder" not in ids


def test_silent_stable_and_without_side_effects() -> None:
    """Also with -OO in the environment, which strips docstrings, and with another hash seed."""
    first = collect(PYTHONHASHSEED="1")
    assert first[0] == ""
    assert re.fullmatch("[0-9a-f]{64}", first[1])
    assert collect(PYTHONHASHSEED="2", PYTHONOPTIMIZE="2", PYTHONWARNINGS="error") == first


def test_a_failing_interpreter_shows_its_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such luck')")
    monkeypatch.setattr(stdlib, "__file__", str(broken))
    with pytest.raises(RuntimeError, match="no such luck"):
        stdlib.documents()


def line(identity: str, doc: str, **more: Any) -> str:
    return json.dumps({"id": identity, "doc": doc, "text": f"about {identity}", **more}) + "\n"


def make(folder: Path, **changes: str) -> Path:
    files = {
        "train.jsonl": line("train-1", "re.sub") + line("train-2", "gone.module"),
        "validation.jsonl": line("validation-1", "os.path.join", reference="join paths"),
        "test.jsonl": line("test-1", "collections.deque", reference="queue")
        + line("test-2", "gone.too"),
        "test.graded.tsv": HEADER + "test-1\tcollections.deque\t2\ntest-1\tqueue.Queue\t1\n"
        "test-1\tgone.too\t1\ntest-2\tgone.too\t2\n",
    }
    folder.mkdir(exist_ok=True)
    for name, text in {**files, **changes}.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.usefixtures("ready")
def test_questions_without_their_document_are_counted(tmp_path: Path) -> None:
    collection = load("stdlib", questions=make(tmp_path))
    assert collection.name == "stdlib"
    assert collection.queries("test") == [
        Query("test-1", "about test-1", "synthetic", "collections.deque", "queue")
    ]
    assert [query.id for query in collection.queries("train")] == ["train-1"]
    assert collection.qrels("validation") == {"validation-1": {"os.path.join": 1.0}}
    assert collection.qrels("test", "graded") == {
        "test-1": {"collections.deque": 2.0, "queue.Queue": 1.0}
    }
    assert collection.left_out == {
        "question without its document": 2,
        "judgement without its document": 1,
    }
    assert collection.dangling == []
    assert collection.warnings == []


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("train.jsonl", "", EmptyCollectionError, "train.jsonl is empty"),
        ("train.jsonl", '{"id": "a", "text": "x"}', CollectionError, "train.jsonl:1: no 'doc'"),
        ("test.graded.tsv", HEADER + "x\ty\t1", UnknownNameError, "graded.tsv:2: query id 'x'"),
        ("test.jsonl", line("train-1", "re.sub"), CollectionError, "'train-1'|'test-1'"),
    ],
)
def test_malformed_questions(
    tmp_path: Path, name: str, text: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        load("stdlib", questions=make(tmp_path, **{name: text}))


def messages(demo: Collection) -> list[Query]:
    return [query for split in demo.splits for query in demo.queries(split)]


def test_demo_is_large_enough(demo: Collection) -> None:
    assert demo.splits == ["test", "train", "validation"]
    assert 2400 <= len(demo) <= 3800
    counts = {split: len(demo.queries(split)) for split in demo.splits}
    assert counts["train"] >= 380
    assert counts["validation"] >= 76
    assert counts["test"] >= 114
    assert demo.dangling == []
    assert sum(demo.left_out.values()) <= 40


def test_demo_splits_share_nothing(demo: Collection) -> None:
    assert check_leaks(demo) == []
    assert demo.warnings == []
    sources = {split: {q.source for q in demo.queries(split)} for split in demo.splits}
    assert len(set.union(*sources.values())) == sum(map(len, sources.values()))


def test_demo_has_references_where_it_is_judged(demo: Collection) -> None:
    assert {query.origin for query in messages(demo)} == {"synthetic"}
    for split in ("validation", "test"):
        assert [query.id for query in demo.queries(split) if not query.reference] == []


def test_demo_grades_the_source_document(demo: Collection) -> None:
    graded = demo.qrels("test", "graded")
    assert set(graded) <= {query.id for query in demo.queries("test")}
    for query in demo.queries("test"):
        assert query.source in graded.get(query.id, {query.source: 1.0})


def test_demo_messages_have_a_message_s_length(demo: Collection) -> None:
    lengths = {query.id: len(query.text) for query in messages(demo)}
    assert {i: length for i, length in lengths.items() if not 150 <= length <= 350} == {}


def test_demo_messages_do_not_name_the_function(demo: Collection) -> None:
    named = []
    for query in messages(demo):
        name = str(query.source).rpartition(".")[2]
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query.text, re.IGNORECASE):
            named.append((query.id, name))
    assert named == []


def sentences(text: str) -> set[str]:
    """Sentences of three words or more: anybody asks "How?" or "With what?"."""
    parts = (part.strip().casefold() for part in re.split(r"(?<=[.?!])\s+", text))
    return {part for part in parts if len(part.split()) >= 3}


def test_demo_messages_share_no_sentence(demo: Collection) -> None:
    counts = Counter(part for query in messages(demo) for part in sentences(query.text))
    assert [part for part, count in counts.items() if count > 1] == []


def test_near_duplicates_of_the_whole_library(rows: list[dict[str, str]]) -> None:
    """Every pair is what its own two sets say, whatever the index skipped."""
    collection = Collection("stdlib", build_table(rows))
    pairs = near_duplicates(collection, collection.ids)
    found = {(a, b) for a, b, _ in pairs}
    assert found
    assert all(score >= 0.8 for _, _, score in pairs)
    assert near_duplicates(collection, reversed(collection.ids)) == pairs
    alone = {
        pair[:2] for pair in near_duplicates(collection, sorted({i for p in found for i in p}))
    }
    assert alone == found
