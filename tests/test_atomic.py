"""Files and folders that are there whole, or as they were."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from retrievers.atomic import write_file, write_once
from retrievers.identity import CollectionError
from retrievers.loaders.conflicts import write_conflicts
from retrievers.loaders.judgements import read_qrels, write_qrels

QRELS = {"q": {"d": 2.0}}
Write = Callable[[Path], None]
WRITERS: dict[str, Write] = {
    "content": lambda path: write_file(path, b"new"),
    "judgements": lambda path: write_qrels(QRELS, path),
    "conflicts": lambda path: write_conflicts([("q", "d", 1.0, 2.0)], path),
}


class Killed(BaseException):
    """As if the process ended."""


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_killed_write_leaves_the_file_that_was_there(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("what people wrote")
    fsync, seen = os.fsync, list[str]()

    def killed(handle: int) -> None:
        seen.append(path.read_text())
        fsync(handle)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(Killed):
            write(path)
    # Until all of it is on the disk, a reader finds the old file.
    assert seen == ["what people wrote"]
    assert path.read_text() == "what people wrote"
    assert [place.name for place in tmp_path.iterdir()] == ["a.tsv"]
    write(path)
    assert path.read_text() != "what people wrote"
    assert [place.name for place in tmp_path.iterdir()] == ["a.tsv"]


def test_what_cannot_be_written_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_qrels(QRELS, path)
    with pytest.raises(UnicodeEncodeError):
        write_qrels({"q\ud800": {"d": 1.0}}, path)
    with pytest.raises(CollectionError):
        write_conflicts([("q\t", "d", 1.0, 2.0)], path)
    assert read_qrels(path) == QRELS


def test_a_link_and_a_device_stay_what_they_are(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target.json"
    write_file(target, b"old")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    write_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    write_file(Path(os.devnull), b"new")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["a.json.gz", "a.tsv.gz", "a.trec.gz"])
def test_compressed_judgements_are_read_as_they_were_written(name: str, tmp_path: Path) -> None:
    write_qrels(QRELS, tmp_path / name)
    plain = tmp_path / name.removesuffix(".gz")
    write_qrels(QRELS, plain)
    assert gzip.decompress((tmp_path / name).read_bytes()) == plain.read_bytes()
    assert read_qrels(tmp_path / name) == QRELS


def test_a_file_in_the_place_of_a_folder_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("notes")
    made: list[Path] = []
    with pytest.raises(NotADirectoryError, match="index is a file; remove it, or name another"):
        write_once(tmp_path / "index", made.append)
    assert made == []


def test_who_is_overtaken_while_making_takes_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no locks exist, the faster process may remove what both build from."""
    monkeypatch.setattr("retrievers.atomic._locked", lambda handle: False)
    shared = tmp_path / "shards"
    shared.write_text("part")

    def first(folder: Path) -> None:
        (folder / "content").write_text(shared.read_text())

    def overtaken(folder: Path) -> None:
        write_once(tmp_path / "index", first)
        shared.unlink()
        first(folder)

    write_once(tmp_path / "index", overtaken)
    assert (tmp_path / "index" / "content").read_text() == "part"
    assert sorted(place.name for place in tmp_path.iterdir()) == [".index.lock", "index"]
    with pytest.raises(FileNotFoundError):
        write_once(tmp_path / "other", first)
    assert not (tmp_path / "other").exists()
