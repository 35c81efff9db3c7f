"""A damaged index says so, and how to have it rebuilt, wherever it is damaged."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers import index as index_module
from retrievers.index import Index, IndexDamaged, IndexWriter, open_or_build
from retrievers.index_manifest import sealed, unsealed
from retrievers.lexical import LexicalRetriever
from retrievers.semantic import SemanticRetriever
from tests import semantic_engines
from tests.semantic_engines import Corpus, build, words

models, model = semantic_engines.models, semantic_engines.model  # fixtures

FAISS = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason='"rlqr[faiss]"')
WAY_OUT = "delete the directory to have it rebuilt"


@pytest.fixture(autouse=True)
def _no_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are as large as those whose checksums are not compared."""
    monkeypatch.setattr(index_module, "CHECKED_BYTES", 0)


def write(writer: IndexWriter) -> None:
    writer.array("numbers", np.arange(600, dtype=np.float32).reshape(200, 3))
    writer.json("words", ["a", "b"])
    writer.about["blank"] = 2


def opened(folder: Path) -> Index:
    return open_or_build(folder, "lexical", {"documents": "abc"}, write)


def overwrite(path: Path, at: int, content: bytes) -> None:
    old = path.read_bytes()
    path.write_bytes(old[:at] + content + old[at + len(content) :])


@pytest.mark.parametrize("read", [Index.array, Index.read])
@pytest.mark.parametrize(
    ("at", "content"),
    [
        (0, b"\x00"),  # no .npy
        (0, b"PK\x03\x04"),  # a zip file
        (6, b"\x09"),  # an unknown version
        (8, b"\xff\xff"),  # a header longer than the file
        (10, b"((((("),  # a header that is no Python value
        (10, b"\xff\xfe"),
        (20, b"|O'"),  # objects
    ],
)
def test_a_damaged_header(
    tmp_path: Path, read: Callable[[Index, str], Any], at: int, content: bytes
) -> None:
    index = opened(tmp_path / "index")
    overwrite(tmp_path / "index" / "numbers.npy", at, content)
    with pytest.raises(IndexDamaged, match=r"numbers\.npy") as caught:
        read(index, "numbers")
    assert WAY_OUT in str(caught.value)


@pytest.mark.parametrize("shape", [b"(100, 3)", b"(900, 3)"])
def test_a_header_of_another_size(tmp_path: Path, shape: bytes) -> None:
    index = opened(tmp_path / "index")
    file = tmp_path / "index" / "numbers.npy"
    file.write_bytes(file.read_bytes().replace(b"(200, 3)", shape))
    with pytest.raises(IndexDamaged, match=r"numbers\.npy"):
        index.array("numbers")


def test_every_byte_of_a_header(tmp_path: Path) -> None:
    """What a changed byte makes of it is an error of ours, or an array of as many bytes."""
    index = opened(tmp_path / "index")
    file = tmp_path / "index" / "numbers.npy"
    before, refused = file.read_bytes(), 0
    for at in range(80):
        for content in (b"\x00", b"9", b"'", b"(", b"\xff"):
            overwrite(file, at, content)
            try:
                assert index.array("numbers").nbytes == 2400
            except IndexDamaged:
                refused += 1
            file.write_bytes(before)
    assert refused > 150


@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink,
        lambda path: overwrite(path, 0, b"{"),
        lambda path: path.write_bytes(b"[" * 10**5),
    ],
)
def test_damaged_values(tmp_path: Path, harm: Callable[[Path], Any]) -> None:
    index = opened(tmp_path / "index")
    harm(tmp_path / "index" / "words.json")
    with pytest.raises(IndexDamaged, match=r"words\.json") as caught:
        index.json("words")
    assert WAY_OUT in str(caught.value)


def test_too_many_open_files_are_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = opened(tmp_path / "index")

    def refuse(*given: Any, **named: Any) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(np.lib.format, "open_memmap", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        index.array("numbers")


def edit(folder: Path, **values: Any) -> None:
    """What another version of this package may have written."""
    path = folder / "manifest.json"
    path.write_bytes(sealed(unsealed(path.read_bytes()) | values))


def test_a_file_that_the_manifest_does_not_know(tmp_path: Path) -> None:
    opened(tmp_path / "index")
    edit(tmp_path / "index", files={})
    with pytest.raises(IndexDamaged, match=r"does not know numbers\.npy"):
        opened(tmp_path / "index").array("numbers")


def lexical(folder: Path, model: str) -> Any:
    return LexicalRetriever(Corpus(words(20)), index_dir=folder)


def semantic(folder: Path, model: str) -> SemanticRetriever:
    return build(words(20), model, folder)


def graph(folder: Path, model: str) -> SemanticRetriever:
    return build(words(20), model, folder, approximate="hnsw")


@pytest.mark.parametrize(
    ("make", "inner", "first"),
    [
        (lexical, "", "arrays"),
        (semantic, "", "blank"),
    ],
)
def test_facts_that_a_manifest_lacks(
    model: str, tmp_path: Path, make: Callable[[Path, str], Any], inner: str, first: str
) -> None:
    make(tmp_path / "index", model)
    edit(tmp_path / "index" / inner, about={})
    with pytest.raises(IndexDamaged, match=r"manifest\.json lacks '") as caught:
        make(tmp_path / "index", model)
    assert WAY_OUT in str(caught.value)
    about = {"truncated": 0, "documents": 20, "longest": 1.0, "blank": 0, "arrays": []}
    about.pop(first, None)
    edit(tmp_path / "index" / inner, about=about)
    with pytest.raises(IndexDamaged, match=f"lacks {first!r} in `about`"):
        make(tmp_path / "index", model)


def test_damaged_vectors(model: str, tmp_path: Path) -> None:
    semantic(tmp_path / "index", model)
    overwrite(tmp_path / "index" / "vectors.npy", 0, b"\x80\x04")
    with pytest.raises(IndexDamaged, match=r"vectors\.npy is no array of numbers") as caught:
        semantic(tmp_path / "index", model)
    assert WAY_OUT in str(caught.value)


@FAISS
def test_a_damaged_graph(model: str, tmp_path: Path) -> None:
    graph(tmp_path / "index", model)
    file = tmp_path / "index" / "hnsw" / "graph.faiss"
    before = file.read_bytes()
    assert int.from_bytes(before[4:8], "little") == 16  # the dimension
    for at, content in ((0, b"\x00\x01\x02\x03"), (4, b"\x08\x00\x00\x00")):
        overwrite(file, at, content)
        with pytest.raises(IndexDamaged, match=r"graph\.faiss is no graph") as caught:
            graph(tmp_path / "index", model)
        assert WAY_OUT in str(caught.value)
        file.write_bytes(before)
    assert graph(tmp_path / "index", model).overlap is not None
