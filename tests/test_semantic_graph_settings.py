"""A graph serves all settings it is not made from; its overlap is kept for each choice of them."""

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

import retrievers.semantic.hnsw as hnsw
import retrievers.semantic.retriever as backend
from retrievers.index import IndexMismatch
from retrievers.semantic import SemanticRetriever
from rewriter import cli
from tests import semantic_engines
from tests.semantic_engines import build, words
from tests.tiny import save_collection
from tests.tiny_encoder import save_encoder

models, model = semantic_engines.models, semantic_engines.model  # fixtures

pytestmark = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason='"rlqr[faiss]"')
TEXTS = words(300, length=7)
POOR = {"neighbours": 3, "ef_construction": 20, "ef_search": 1, "overlap_queries": 60}
CUT = {"chunk_tokens": 3}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done since: graphs that were built, overlaps that were measured."""
    done: list[str] = []
    make, measure = hnsw.build, backend.overlap

    def recorded_build(*given: Any) -> Any:
        done.append("graph")
        return make(*given)

    def recorded_overlap(exact: Any, graph: Any, queries: NDArray[np.float32], k: int) -> float:
        done.append(f"overlap at {k} of {len(queries)}")
        return measure(exact, graph, queries, k)

    monkeypatch.setattr(hnsw, "build", recorded_build)
    monkeypatch.setattr(backend, "overlap", recorded_overlap)
    return done


def graph(model: str, folder: Path, **chosen: Any) -> SemanticRetriever:
    settings = {key: value for key, value in chosen.items() if key not in POOR | {"overlap_k": 0}}
    own = POOR | {key: value for key, value in chosen.items() if key not in settings}
    return build(TEXTS, model, folder, approximate="hnsw", hnsw=own, **CUT | settings)


@pytest.mark.parametrize(
    ("chosen", "measured"),
    [
        ({"ef_search": 64}, "overlap at 10 of 60"),
        ({"overlap_k": 3}, "overlap at 3 of 60"),
        ({"overlap_queries": 7}, "overlap at 10 of 7"),
        ({"chunk_depth": 9}, "overlap at 10 of 60"),
        ({"query_prompt": "w1 "}, "overlap at 10 of 60"),
    ],
)
def test_a_graph_opens_with_other_settings_of_the_search(
    model: str, tmp_path: Path, built: list[str], chosen: dict[str, Any], measured: str
) -> None:
    first = graph(model, tmp_path / "index")
    assert built == ["graph", "overlap at 10 of 60"]
    file = tmp_path / "index" / "hnsw" / "graph.faiss"
    before = file.stat().st_mtime_ns
    built.clear()
    other = graph(model, tmp_path / "index", **chosen)
    assert built == [measured]
    again = graph(model, tmp_path / "index", **chosen)
    assert graph(model, tmp_path / "index").overlap == first.overlap
    assert built == [measured]  # both are kept
    assert again.overlap == other.overlap
    assert file.stat().st_mtime_ns == before
    queries = words(5, seed=3)
    assert again.search(queries, 5) == other.search(queries, 5)
    # What the overlap is measured with brings nothing else back.
    assert (other.fingerprint == first.fingerprint) == measured.startswith(
        ("overlap at 3", "overlap at 10 of 7")
    )


def test_a_wider_search_finds_more(model: str, tmp_path: Path) -> None:
    narrow = graph(model, tmp_path / "index", overlap_k=1).overlap
    wide = graph(model, tmp_path / "index", overlap_k=1, ef_search=400).overlap
    assert narrow is not None
    assert wide is not None
    assert narrow < 0.85 < wide


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"neighbours": 8}, "hnsw.neighbours: there 3, asked for 8"),
        ({"ef_construction": 50}, "hnsw.ef_construction: there 20, asked for 50"),
    ],
)
def test_what_the_graph_is_made_from_is_refused(
    model: str, tmp_path: Path, chosen: dict[str, Any], named: str
) -> None:
    graph(model, tmp_path / "index")
    with pytest.raises(IndexMismatch, match=named):
        graph(model, tmp_path / "index", **chosen)


def test_another_similarity_is_refused(models: Path, tmp_path: Path) -> None:
    """Dot product and distance have the same vectors, and other neighbours."""
    for_dot = graph(str(models / "dot"), tmp_path / "index")
    assert for_dot.overlap is not None
    with pytest.raises(IndexMismatch, match="similarity: there 'dot', asked for 'euclidean'"):
        graph(str(models / "dot"), tmp_path / "index", similarity_fn_name="euclidean")


def overlaps(folder: Path) -> list[Path]:
    return sorted((folder / "hnsw").glob("overlap-*.json"))


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b'{"overlap": 0.5}', b"[" * 10**5])
def test_a_damaged_overlap_is_measured_again(
    model: str, tmp_path: Path, built: list[str], content: bytes
) -> None:
    expected = graph(model, tmp_path / "index").overlap
    (path,) = overlaps(tmp_path / "index")
    before = path.read_bytes()
    path.write_bytes(content)
    built.clear()
    assert graph(model, tmp_path / "index").overlap == expected
    assert built == ["overlap at 10 of 60"]
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*"))


def test_a_changed_overlap_is_not_believed(model: str, tmp_path: Path) -> None:
    expected = graph(model, tmp_path / "index").overlap
    (path,) = overlaps(tmp_path / "index")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"overlap": 1.0}))
    assert graph(model, tmp_path / "index").overlap == expected != 1.0


def test_a_folder_that_cannot_be_written_to(
    model: str,
    tmp_path: Path,
    built: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    graph(model, tmp_path / "index")

    def refuse(path: Path, content: bytes) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr("retrievers.semantic.overlap.write_file", refuse)
    graph(model, tmp_path / "index")
    assert not caplog.records  # nothing is to be written
    built.clear()
    for _ in range(2):
        assert graph(model, tmp_path / "index", ef_search=400).overlap == pytest.approx(1, abs=0.02)
    assert built == ["overlap at 10 of 60"] * 2
    assert "cannot be kept ([Errno 30] Read-only file system" in caplog.text
    assert len(overlaps(tmp_path / "index")) == 1


def shown(path: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> str:
    """The line of the one backend."""
    cli.main(["index", "--config", str(path), *arguments])
    return capsys.readouterr().out.splitlines()[1]


def test_the_command_tunes_a_search_over_one_graph(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    built: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(exact: Any, graph: hnsw.HnswSearch, queries: Any, k: int) -> float:
        return graph._settings.ef_search / 100

    monkeypatch.setattr(backend, "overlap", measured)
    save_collection(tmp_path / "collection")
    chosen = {
        "model": str(save_encoder(tmp_path / "encoder")),
        "device": "cpu",
        "approximate": "hnsw",
        "hnsw": {"ef_search": 25},
    }
    values = {
        "index_dir": str(tmp_path / "indexes"),
        "collection": {"loader": "beir", "options": {"folder": str(tmp_path / "collection")}},
        "model": {"name": "none"},
        "retrievers": {"semantic": chosen},
        "reward": {"backends": "semantic"},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    for arguments, state, overlap in (
        ([], "built", "0.250"),
        (["--retrievers.semantic.hnsw.ef_search", "50"], "opened", "0.500"),
        ([], "opened", "0.250"),  # its own, not the one that was measured last
    ):
        line = shown(path, capsys, arguments)
        assert line.split()[1] == state
        assert line.endswith(f", {overlap} overlap with exact search)")
    assert built == ["graph"]
