"""Checksums of page images, remembered beside the index: a file is read again when it changed."""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from retrievers.collection import Collection
from retrievers.index import IndexMismatch
from retrievers.multimodal import MultimodalRetriever, MultimodalSettings
from retrievers.pages import PageSettings, PageStyle, page_source, render_pages
from retrievers.pages.digests import FileDigests
from tests.tiny_pages import save_page_model

# SHA-256 of the three letters "abc" and of "xyz".
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
XYZ = "3608bca1e44ea6c4d268eb6db02260269892c0b42b86bbf1e77a6fa16c3c9282"
LONG_AGO = 10**18  # nanoseconds: 2001


def write(path: Path, content: bytes, changed: int = LONG_AGO) -> Path:
    path.write_bytes(content)
    os.utime(path, ns=(changed, changed))
    return path


def digest(file: Path, place: Path | None) -> str:
    """As one opening has it, which remembers it for the next."""
    digests = FileDigests(place)
    found = digests.of(file)
    digests.keep()
    return found.hex()


def test_a_file_is_read_again_only_after_it_was_changed(tmp_path: Path) -> None:
    place, file = tmp_path / "known.json", write(tmp_path / "a", b"abc")
    assert digest(file, place) == ABC
    # Other bytes with the same size and time show that nothing is read.
    write(file, b"xyz")
    assert digest(file, place) == ABC
    write(file, b"xyz", LONG_AGO + 1)
    assert digest(file, place) == XYZ
    assert digest(file, place) == XYZ
    write(file, b"ab", LONG_AGO + 1)
    assert digest(file, place) not in (ABC, XYZ)
    write(file, b"abc", LONG_AGO + 1)
    assert digest(file, place) == ABC


def test_a_file_in_another_place_is_another_file(tmp_path: Path) -> None:
    place = tmp_path / "known.json"
    (tmp_path / "other").mkdir()
    digest(write(tmp_path / "a", b"abc"), place)
    assert digest(write(tmp_path / "other" / "a", b"xyz"), place) == XYZ
    # Only what the last opening asked for is remembered.
    assert list(json.loads(place.read_text())) == [str(tmp_path / "other" / "a")]


def test_a_path_that_is_relative_to_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "known.json"
    for folder, content in (("one", b"abc"), ("two", b"xyz")):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "a", content)
    monkeypatch.chdir(tmp_path / "one")
    assert digest(Path("a"), place) == ABC
    monkeypatch.chdir(tmp_path / "two")
    assert digest(Path("a"), place) == XYZ


def test_a_file_that_was_just_written_is_not_remembered(tmp_path: Path) -> None:
    place, file = tmp_path / "known.json", tmp_path / "a"
    file.write_bytes(b"abc")
    facts = file.stat()
    assert digest(file, place) == ABC
    # Written again within one tick of the clock.
    write(file, b"xyz", facts.st_mtime_ns)
    assert digest(file, place) == XYZ


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON",
        b"\xff\xfe",
        b"[1, 2]",
        b'{"FILE": 3}',
        b'{"FILE": [3, 1000000000000000000]}',
        b'{"FILE": [3, 1000000000000000000, "no digest"]}',
        b'{"FILE": [3, 1000000000000000000, "ba7816bf"]}',
        b'{"FILE": [3, 1000000000000000000, 7]}',
        b'{"FILE": [3, null, "00"]}',
    ],
)
def test_a_damaged_list_is_made_anew(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, file = tmp_path / "known.json", write(tmp_path / "a", b"abc")
    place.write_bytes(content.replace(b"FILE", str(file).encode()))
    assert digest(file, place) == ABC
    assert "known.json is no list of checksums, and is made anew" in caplog.text
    assert json.loads(place.read_text()) == {str(file): [3, LONG_AGO, ABC]}


def test_a_place_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write(tmp_path / "a", b"abc")
    assert digest(file, file / "known.json") == ABC
    assert "each opening reads every file" in caplog.text


def test_nothing_is_written_where_nothing_changed(tmp_path: Path) -> None:
    place, file = tmp_path / "known.json", write(tmp_path / "a", b"abc")
    digest(file, place)
    os.utime(place, ns=(LONG_AGO, LONG_AGO))
    digest(file, place)
    assert place.stat().st_mtime_ns == LONG_AGO


def test_the_pages_of_a_collection(tmp_path: Path) -> None:
    place, file = tmp_path / "known.json", write(tmp_path / "a.png", b"abc")
    cells = pa.array([[str(file)], [str(file)]], pa.list_(pa.string()))
    table = pa.table({"id": ["d0", "d1"], "text": ["", ""], "images": cells})

    def identity(remembered: Path | None) -> object:
        source = page_source(Collection("t", table), PageSettings(), remembered)
        return source.identity()["sha256"]

    first = identity(place)
    assert identity(None) == first
    write(file, b"xyz")
    assert identity(place) == first
    assert identity(None) != first
    assert list(json.loads(place.read_text())) == [str(file)]


@pytest.fixture
def pages(tmp_path: Path) -> Callable[[Path | None], MultimodalRetriever]:
    """Opens a backend over two page images in the folder `pages`."""
    model = save_page_model(tmp_path / "model", "ColQwen2")
    (tmp_path / "pages").mkdir()
    files = [tmp_path / "pages" / f"{name}.png" for name in ("one", "two")]
    for file in files:
        render_pages("", file.stem, PageStyle(width=160))[0].save(file)
        os.utime(file, ns=(LONG_AGO, LONG_AGO))
    cells = [str(file) for file in files]
    table = pa.table({"id": ["d0", "d1"], "text": ["", ""], "image": cells})

    def opened(index: Path | None, max_side: int = 4096) -> MultimodalRetriever:
        given = {"model": str(model), "device": "cpu", "pages": {"max_side": max_side}}
        settings = MultimodalSettings.model_validate(given)
        return MultimodalRetriever(Collection("t", table), settings, index)

    return opened


def test_an_index_is_opened_without_reading_the_pages(
    pages: Callable[[Path | None], MultimodalRetriever],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    index, file = tmp_path / "indexes" / "multimodal", tmp_path / "pages" / "two.png"
    built = pages(index)
    content = file.read_bytes()
    write(file, content[::-1])
    opened = pages(index)
    assert opened.fingerprint == built.fingerprint
    assert opened.search(["two"], 2) == built.search(["two"], 2)
    write(file, content[::-1], LONG_AGO + 1)
    with pytest.raises(IndexMismatch, match=r"pages\.sha256"):
        pages(index)
    write(file, content, LONG_AGO + 2)
    # What is remembered is no part of the index.
    (tmp_path / "indexes" / ".multimodal.digests.json").write_text("{")
    assert pages(index).fingerprint == built.fingerprint
    assert "is made anew" in caplog.text


def test_without_an_index_nothing_is_remembered(
    pages: Callable[[Path | None], MultimodalRetriever],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    pages(None)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_index_of_another_resolution_is_refused(
    pages: Callable[..., MultimodalRetriever], tmp_path: Path
) -> None:
    index = tmp_path / "indexes" / "multimodal"
    pages(index, max_side=100)
    pages(index, max_side=100)
    with pytest.raises(IndexMismatch, match=r"pages\.max_side: there 100, asked for 80"):
        pages(index, max_side=80)
