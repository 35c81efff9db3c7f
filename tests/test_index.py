"""Index directories: never half-written, never opened for something else, never pickled."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.index import (
    IndexDamaged,
    IndexMismatch,
    IndexWriter,
    fingerprint,
    open_index,
    open_or_build,
)
from retrievers.index_files import facts, indexes, verify
from retrievers.index_manifest import sealed, unsealed

PARTS: dict[str, Any] = {"documents": "abc", "k1": 1.5, "analysis": {"stemmer": None, "cjk": "b"}}


def write(writer: IndexWriter) -> None:
    writer.array("numbers", np.arange(1000))
    writer.json("words", ["예산", "\ud800"])
    writer.about["blank"] = 2


def refuse(writer: IndexWriter) -> None:
    raise AssertionError("built again")


def test_built_once_then_opened(tmp_path: Path) -> None:
    for build in (write, refuse):
        index = open_or_build(tmp_path / "deep" / "index", "lexical", PARTS, build)
        assert index.array("numbers").tolist() == list(range(1000))
        assert index.json("words") == ["예산", "\ud800"]
        assert index.about == {"blank": 2}


def test_arrays_are_mapped_and_read_only(tmp_path: Path) -> None:
    numbers = open_or_build(tmp_path / "index", "lexical", PARTS, write).array("numbers")
    assert isinstance(numbers.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        numbers[0] = 1


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    open_or_build(tmp_path, "lexical", PARTS, write)
    assert (tmp_path / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        (PARTS | {"documents": "xyz"}, ["documents", "'abc'", "'xyz'"]),
        (PARTS | {"k1": 1.2}, ["k1", "1.5", "1.2"]),
        (PARTS | {"analysis": {"stemmer": "english", "cjk": "b"}}, ["analysis.stemmer", "english"]),
        (PARTS | {"b": 0.75}, ["b", "(absent)", "0.75"]),
        ({"documents": "abc", "k1": 1.5}, ["analysis.cjk", "(absent)"]),
    ],
)
def test_other_parts_are_refused_by_name(
    tmp_path: Path, parts: dict[str, Any], named: list[str]
) -> None:
    open_or_build(tmp_path / "index", "lexical", PARTS, write)
    with pytest.raises(IndexMismatch) as caught:
        open_or_build(tmp_path / "index", "lexical", parts, refuse)
    assert all(word in str(caught.value) for word in [*named, "Delete the directory"])


def test_what_is_equal_is_not_named(tmp_path: Path) -> None:
    open_or_build(tmp_path / "index", "lexical", PARTS, write)
    with pytest.raises(IndexMismatch) as caught:
        open_or_build(tmp_path / "index", "lexical", PARTS | {"k1": 2.0}, refuse)
    assert "analysis" not in str(caught.value)


def test_another_kind_or_format_is_refused(tmp_path: Path) -> None:
    open_or_build(tmp_path / "index", "lexical", PARTS, write)
    with pytest.raises(IndexMismatch, match=r"kind: there 'lexical', asked for 'semantic'"):
        open_index(tmp_path / "index", "semantic", PARTS)
    edit_manifest(tmp_path / "index", lambda manifest: manifest.update(format=99))
    with pytest.raises(IndexMismatch, match="format: there 99"):
        open_index(tmp_path / "index", "lexical", PARTS)


def edit_manifest(directory: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = directory / "manifest.json"
    manifest = unsealed(path.read_bytes())
    change(manifest)
    path.write_bytes(sealed(manifest))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "name", "says"),
    [
        (cut, "numbers.npy", "bytes"),
        (flip, "numbers.npy", "checksum"),
        (flip, "words.json", "checksum"),
        (Path.unlink, "words.json", "is missing"),
        (cut, "manifest.json", "not JSON"),
        (Path.unlink, "manifest.json", "no manifest.json"),
    ],
)
def test_a_damaged_file_is_named_with_the_way_out(
    tmp_path: Path, harm: Callable[[Path], None], name: str, says: str
) -> None:
    open_or_build(tmp_path / "index", "lexical", PARTS, write)
    harm(tmp_path / "index" / name)
    with pytest.raises(IndexDamaged, match=says) as caught:
        open_or_build(tmp_path / "index", "lexical", PARTS, refuse)
    assert name in str(caught.value)
    assert "delete the directory to have it rebuilt" in str(caught.value)


def test_a_manifest_without_its_fields(tmp_path: Path) -> None:
    open_or_build(tmp_path / "index", "lexical", PARTS, write)
    (tmp_path / "index" / "manifest.json").write_text("[]")
    with pytest.raises(IndexDamaged, match="not JSON as it was written: it is no object"):
        open_index(tmp_path / "index", "lexical", PARTS)


def test_large_files_are_compared_by_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrievers.index.CHECKED_BYTES", 100)
    open_or_build(tmp_path / "index", "lexical", PARTS, write).verify()
    flip(tmp_path / "index" / "numbers.npy")
    index = open_index(tmp_path / "index", "lexical", PARTS)
    with pytest.raises(IndexDamaged, match=r"numbers\.npy"):
        index.verify()


def test_a_directory_of_someone_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(IndexDamaged, match="no index of ours"):
        open_or_build(tmp_path, "lexical", PARTS, write)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_build_that_raises_leaves_nothing(tmp_path: Path) -> None:
    def fail(writer: IndexWriter) -> None:
        write(writer)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        open_or_build(tmp_path / "index", "lexical", PARTS, fail)
    assert [path.name for path in tmp_path.iterdir()] == [".index.lock"]


KILLED = """
import os, sys
from pathlib import Path
import numpy as np
from retrievers.index import open_or_build

def build(writer):
    writer.array("numbers", np.zeros(1000))
    os._exit(9)  # as kill -9: nothing is tidied up

open_or_build(Path(sys.argv[1]), "lexical", {"documents": "abc"}, build)
"""


def test_a_killed_build_is_never_read_and_the_next_one_removes_it(tmp_path: Path) -> None:
    target = tmp_path / "index"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == 9
    assert not target.exists()
    assert list(tmp_path.glob(".index.unfinished-*/numbers.npy"))
    index = open_or_build(target, "lexical", {"documents": "abc"}, write)
    assert index.array("numbers").tolist() == list(range(1000))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".index.lock", "index"]


TOGETHER = """
import sys, time
from pathlib import Path
from retrievers.index import open_or_build

def build(writer):
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")
    time.sleep(0.3)
    writer.json("words", ["a"])

assert open_or_build(Path(sys.argv[1]), "lexical", {}, build).json("words") == ["a"]
"""


def test_processes_that_start_together_build_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TOGETHER, str(tmp_path / "index"), str(tmp_path / "log")]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert (tmp_path / "log").read_text() == "built\n"


def test_where_no_locks_exist_the_slower_one_takes_the_faster_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrievers.atomic._locked", lambda handle: False)

    def overtaken(writer: IndexWriter) -> None:
        open_or_build(tmp_path / "index", "lexical", PARTS, write)
        writer.json("words", ["late"])

    index = open_or_build(tmp_path / "index", "lexical", PARTS, overtaken)
    assert index.json("words") == ["예산", "\ud800"]
    assert not list(tmp_path.glob(".index.unfinished-*"))


def test_what_a_killed_build_left_inside_is_no_index(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    open_or_build(folder, "lexical", PARTS, write)
    open_or_build(folder / "graph", "graph", PARTS, write)
    left = folder / ".graph.unfinished-0"
    left.mkdir()
    (left / "manifest.json").write_text('{"format')
    assert indexes(folder) == [folder, folder / "graph"]
    verify(folder)
    assert facts(folder).counts == {"blank": 2}


def test_an_array_that_is_read_keeps_no_file_open(tmp_path: Path) -> None:
    numbers = open_or_build(tmp_path / "index", "lexical", PARTS, write).read("numbers")
    assert numbers.tolist() == list(range(1000))
    while isinstance(numbers, np.ndarray):
        assert not isinstance(numbers, np.memmap)
        numbers = numbers.base


def test_objects_are_never_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        IndexWriter(tmp_path).array("objects", np.array([{}], dtype=object))

    def pickled(writer: IndexWriter) -> None:
        np.save(writer.path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)

    index = open_or_build(tmp_path / "index", "lexical", PARTS, pickled)
    with pytest.raises(ValueError, match=r"allow_pickle|Python objects"):
        index.array("objects")


def test_fingerprint_is_of_the_content_not_the_order() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": ["x", "y"]}) != fingerprint({"a": ["y", "x"]})
    with pytest.raises(ValueError, match="JSON compliant"):
        fingerprint({"a": float("nan")})
