"""`rlqr index`: builds, opens, checks and rebuilds the indexes that a training opens."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import BaseModel

import retrievers
from retrievers.base import Documents, Hit, Retriever
from retrievers.index import IndexWriter, open_or_build
from retrievers.lexical import LexicalRetriever
from rewriter import cli
from rewriter.config import load
from rewriter.config.backends import open_retrievers
from rewriter.config.collection import open_collection
from tests.test_architecture import HEAVY, ROOT
from tests.test_cli import _loggers_as_before, failed  # noqa: F401 - the first is a fixture
from tests.tiny import save_collection
from tests.tiny_encoder import save_encoder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with indexes in `indexes`, 20 documents."""
    save_collection(tmp_path / "collection")
    return write(tmp_path, {"lexical": {}})


def write(folder: Path, backends: Mapping[str, Any], reward: str | list[str] = "lexical") -> Path:
    values = {
        "index_dir": str(folder / "indexes"),
        "collection": {"loader": "beir", "options": {"folder": str(folder / "collection")}},
        "model": {"name": "none"},
        "retrievers": dict(backends),
        "reward": {"backends": reward},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def index(
    config: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> dict[str, tuple[str, str]]:
    """Backend → state and the rest of its line."""
    cli.main(["index", "--config", str(config), *words])
    out = capsys.readouterr().out
    rows = [line.split(maxsplit=2) for line in out.splitlines()]
    return {name: (state, rest) for name, state, rest in rows if name != "backend"}


def test_built_once_then_opened(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = config.parent / "indexes" / "lexical"
    state, rest = index(config, capsys)["lexical"]
    assert state == "built"
    assert rest.split()[0] == "20"
    assert "MiB" in rest
    assert " s " in rest
    assert rest.endswith(f"{folder} (0 blank)")
    before = (folder / "manifest.json").stat().st_mtime_ns
    assert index(config, capsys)["lexical"][0] == "opened"
    assert (folder / "manifest.json").stat().st_mtime_ns == before
    assert index(config, capsys, "--rebuild")["lexical"][0] == "built"
    assert (folder / "manifest.json").stat().st_mtime_ns > before


def test_a_training_opens_the_same_index(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index(config, capsys)

    def refuse(self: LexicalRetriever, documents: Documents, writer: IndexWriter) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(LexicalRetriever, "_write", refuse)
    settings = load(config)
    (made,) = open_retrievers(settings, open_collection(settings)).values()
    assert [hit.id for hit in made.search(["gamma"], 3)[0]] == ["d2"]


def test_settings_on_the_command_line(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index(config, capsys, "--retrievers.lexical.k1", "1.2", "--index_dir", str(config.parent / "b"))
    found = json.loads((config.parent / "b" / "lexical" / "manifest.json").read_text())
    assert found["parts"]["k1"] == 1.2
    words = ["index", "--config", str(config), "--retrievers.lexical.k", "1"]
    assert "`retrievers.lexical.k` is not a setting" in failed_after(words, capsys)


def failed_after(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The message of a command that may have written lines before."""
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_an_index_of_other_settings_and_a_damaged_one(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index(config, capsys)
    words = ["index", "--config", str(config)]
    err = failed_after([*words, "--retrievers.lexical.b", "0.5"], capsys)
    assert "b: there 0.75, asked for 0.5" in err
    assert "`rlqr index --config FILE --rebuild`" in err
    rebuilt = index(config, capsys, "--retrievers.lexical.b", "0.5", "--rebuild")
    assert rebuilt["lexical"][0] == "built"
    (config.parent / "indexes" / "lexical" / "vocabulary.json").write_text("[]")
    err = failed_after([*words, "--retrievers.lexical.b", "0.5"], capsys)
    assert "vocabulary.json has 2 bytes" in err
    assert "`rlqr index --config FILE --rebuild`" in err
    assert index(config, capsys, "--rebuild")["lexical"][0] == "built"


def test_every_byte_is_checked(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening alone trusts the content of large files."""
    monkeypatch.setattr("retrievers.index.CHECKED_BYTES", 0)
    words = ["--retrievers.lexical.engine", "bm25s"]
    index(config, capsys, *words)
    path = config.parent / "indexes" / "lexical" / "scores.npy"
    content = bytearray(path.read_bytes())
    content[-8] ^= 1  # the last digit of a score
    path.write_bytes(content)
    settings = load(config, words)
    open_retrievers(settings, open_collection(settings))
    err = failed_after(["index", "--config", str(config), *words], capsys)
    assert "scores.npy was changed: its checksum differs" in err


def test_someone_elses_folder_is_left_alone(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = config.parent / "indexes" / "lexical"
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("mine")
    words = ["index", "--config", str(config)]
    err = failed_after(words, capsys)
    assert "no index of ours" in err
    assert "--rebuild" not in err  # which would not remove it
    assert "is left alone; remove it yourself" in failed_after([*words, "--rebuild"], capsys)
    assert (folder / "thesis.txt").read_text() == "mine"


def test_without_a_folder_for_indexes(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = failed(["index", "--config", str(config), "--index_dir", "null"], capsys)
    assert "in memory each time; give a folder, here and to train.py: --index_dir indexes" in err
    assert failed(["index"], capsys).endswith("arguments are required: --config\n")


def test_engines_of_your_own_have_no_index_here(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(config.parent, {"custom": {"path": "not.there:Engine"}}, "custom")
    cli.main(["index", "--config", str(path)])
    assert capsys.readouterr().out == "custom       keeps no index here: nothing to build\n"
    assert not (config.parent / "indexes").exists()


def test_hybrid_builds_what_it_is_made_of(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = save_encoder(config.parent / "encoder")
    chosen = {"semantic": {"model": str(model), "device": "cpu", "chunk_words": 1}}
    path = write(config.parent, chosen, ["hybrid"])
    found = index(path, capsys)
    assert {name: state for name, (state, _) in found.items()} == {
        "lexical": "built",
        "semantic": "built",
        "hybrid": "keeps",
    }
    assert found["semantic"][1].endswith("semantic (0 blank, 0 truncated, 20 chunks)")
    assert {name: state for name, (state, _) in index(path, capsys).items()} == {
        "lexical": "opened",
        "semantic": "opened",
        "hybrid": "keeps",
    }


def test_an_index_inside_another_is_shown_checked_and_rebuilt(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {"candidates": 0.5, "device": "cpu", "centroids": {"count": 4}}
    without = write(config.parent, {"multimodal": {"device": "cpu"}}, "multimodal").rename(
        config.parent / "without.yaml"
    )
    path = write(config.parent, {"multimodal": chosen}, "multimodal")
    folder = config.parent / "indexes" / "multimodal"
    assert index(without, capsys)["multimodal"][0] == "built"
    assert not (folder / "centroids").exists()
    made = (folder / "manifest.json").stat().st_mtime_ns
    state, rest = index(path, capsys)["multimodal"]
    assert state == "built"
    assert ", 4 centroids)" in rest
    assert (folder / "manifest.json").stat().st_mtime_ns == made  # the vectors were there
    assert index(path, capsys)["multimodal"][0] == "opened"
    damaged = folder / "centroids" / "pages.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    err = failed_after(["index", "--config", str(path)], capsys)
    assert f"the index in {folder / 'centroids'} cannot be read: pages.npy was changed" in err
    assert "--rebuild" not in err  # which would remove the vectors too
    assert index(path, capsys, "--rebuild")["multimodal"][0] == "built"
    assert (folder / "manifest.json").stat().st_mtime_ns > made


class PageSettings(BaseModel):
    pages: int = 7


class Pages(Retriever):
    """A backend that this command has never heard of."""

    backend, fingerprint, size = "pages", "pages", 20

    def __init__(self, collection: Documents, settings: PageSettings, index_dir: Path) -> None:
        super().__init__()

        def fill(writer: IndexWriter) -> None:
            writer.array("vectors", np.zeros(settings.pages))
            writer.about.update(pages=settings.pages, pooled=True, mean_length=2.5)

        open_or_build(index_dir, "pages", {"pages": settings.pages}, fill)

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [[] for _ in queries]


def test_any_backend(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = (__name__, "Pages", "PageSettings")
    monkeypatch.setitem(retrievers.RETRIEVERS, "pages", entry)
    path = write(config.parent, {}, ["pages", "lexical"])
    found = index(path, capsys)
    assert list(found) == ["pages", "lexical"]
    assert found["pages"][1].endswith("pages (7 pages)")


def test_help_needs_no_model_package() -> None:
    code = (
        "import json, sys\nfrom rewriter import cli\n"
        "try:\n    cli.main(['index', '--help'])\nexcept SystemExit:\n    pass\n"
        "print('\\n' + json.dumps([name for name in sys.modules if '.' not in name]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert "--rebuild" in done.stdout
    assert set(json.loads(done.stdout.splitlines()[-1])) & HEAVY == set()
