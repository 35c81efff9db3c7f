"""Folders in the layout of BEIR: what is written is what is read."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.collection import Collection, Document, Query
from retrievers.identity import CollectionError
from retrievers.loaders import beir_write, load
from retrievers.loaders.beir import write
from tests.beir_folders import GOOD, contents, make


def test_a_corpus_alone(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(GOOD)
    collection = load("beir", folder=tmp_path, name="bare")
    assert (collection.name, len(collection), collection.splits) == ("bare", 1, [])
    write(collection, tmp_path / "copy")
    assert contents(load("beir", folder=tmp_path / "copy")) == contents(collection)


def test_metadata_of_documents_survives(tmp_path: Path) -> None:
    write(load("beir", folder=make(tmp_path / "a")), tmp_path / "b")
    rows = (tmp_path / "b" / "corpus.jsonl").read_text().splitlines()
    assert [json.loads(row).get("metadata") for row in rows] == [None, None, {"url": "x"}]


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = load("beir", folder=make(tmp_path / "a"))

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(beir_write, "_judgements", fail)
        with pytest.raises(OSError, match="disk full"):
            write(collection, tmp_path / "new" / "b")
    assert [path.name for path in (tmp_path / "new").iterdir() if path.is_dir()] == []
    write(collection, tmp_path / "new" / "b")
    with pytest.raises(CollectionError, match="is there already"):
        write(collection, tmp_path / "new" / "b")
    assert contents(load("beir", folder=tmp_path / "new" / "b")) == contents(collection)


@pytest.mark.parametrize(
    ("query", "judged", "said"),
    [("q\t1", {"a": 1}, "tab"), ("q", {"a\n": 1}, "line break"), ("q", {}, "no judgement")],
)
def test_what_the_layout_cannot_hold(
    tmp_path: Path, query: str, judged: dict[str, float], said: str
) -> None:
    collection = Collection.from_documents(
        "toy", [Document("a", "", "x")], [Query(query, "?")], {"test": {"source": {query: judged}}}
    )
    with pytest.raises(CollectionError, match=said):
        write(collection, tmp_path / "b")
    assert not (tmp_path / "b").exists()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
grades = st.one_of(st.integers(-2, 3), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    """Documents and queries with odd ids and texts in up to three splits, some in more than one."""
    unique = st.lists(names, min_size=1, max_size=4, unique_by=lambda name: normalize("NFC", name))
    ids, asked = draw(unique), draw(unique)
    metadata = st.dictionaries(st.sampled_from(["a", "b"]), texts)
    optional = st.none() | texts.filter(bool)
    origins = st.sampled_from(["human", "synthetic"])
    queries = [
        Query(i, draw(texts), draw(origins), draw(optional), draw(optional), draw(metadata))
        for i in asked
    ]
    judged = st.dictionaries(
        st.sampled_from(asked),
        st.dictionaries(st.sampled_from(ids), grades, min_size=1),
        min_size=1,
    )
    qrels: dict[str, dict[str, Any]] = {}
    for split in draw(st.sets(st.sampled_from(["train", "dev-2", "test"]))):
        main = draw(judged)
        graded = st.dictionaries(
            st.sampled_from(sorted(main)), st.dictionaries(names, grades, min_size=1, max_size=1)
        )
        further = draw(graded)
        qrels[split] = {"source": main} | ({"graded": further} if further else {})
    documents = [Document(i, draw(texts), draw(texts)) for i in ids]
    return Collection.from_documents("toy", documents, queries, qrels)


@settings(max_examples=60)
@given(collections())
def test_round_trip(collection: Collection) -> None:
    with TemporaryDirectory() as folder:
        write(collection, Path(folder) / "toy")
        assert contents(load("beir", folder=Path(folder) / "toy")) == contents(collection)
