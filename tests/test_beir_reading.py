"""Folders in the layout of BEIR: what is read of them, and what of it is reported."""

import gzip
import json
from pathlib import Path

import pytest

from retrievers.collection import Document, Query
from retrievers.identity import CollectionError
from retrievers.loaders import load
from tests.beir_folders import FILES, HEADER, contents, make


def test_load(tmp_path: Path) -> None:
    collection = load("beir", folder=make(tmp_path / "toy"))
    assert collection.name == "toy"
    assert collection.splits == ["test", "train"]
    assert [collection.document(f"d{i}") for i in (1, 2, 3)] == [
        Document("d1", "", "one"),
        Document("d2", "", "two"),
        Document("d3", "Three", "three"),
    ]
    assert "None" not in str(list(collection.texts()))
    assert collection.queries("test") == [Query("q1", "first")]
    assert collection.queries("train") == [
        Query("q2", "second", "synthetic", source="d2", reference="2", metadata={"tone": "curt"})
    ]
    assert collection.qrels("test") == {"q1": {"d1": 1.0, "d2": 0.0}}
    assert collection.qrels("test", "graded") == {"q1": {"d3": 2.0, "d1": 0.5}}
    assert collection.left_out == {}
    assert collection.dangling == []
    assert collection.warnings == []


def test_bom_crlf_blank_lines_and_separators_inside_a_text(tmp_path: Path) -> None:
    plain = {name: text for name, text in FILES.items() if "." in name}
    folder = make(tmp_path / "plain")
    windows = tmp_path / "windows"
    (windows / "qrels").mkdir(parents=True)
    for name, text in plain.items():
        (windows / name).write_bytes(b"\xef\xbb\xbf" + (text + "\n").replace("\n", "\r\n").encode())
    assert contents(load("beir", folder=windows)) == contents(load("beir", folder=folder))
    odd = "one\u2028two\x85three\x0bfour"
    corpus = json.dumps({"_id": "d1", "text": odd}, ensure_ascii=False) + "\n"
    dangling = load("beir", folder=make(tmp_path / "odd", corpus=corpus))
    assert dangling.document("d1").text == odd


def test_gzip(tmp_path: Path) -> None:
    folder = make(tmp_path / "zipped", corpus=None)
    packed = gzip.compress(FILES["corpus.jsonl"].encode())
    (folder / "corpus.jsonl.gz").write_bytes(packed)
    assert contents(load("beir", folder=folder)) == contents(
        load("beir", folder=make(tmp_path / "plain"))
    )
    (folder / "corpus.jsonl.gz").write_bytes(packed[:-12])
    with pytest.raises(CollectionError, match=r"corpus\.jsonl\.gz: damaged gzip"):
        load("beir", folder=folder)
    (folder / "corpus.jsonl.gz").write_bytes(b"plain text")
    with pytest.raises(CollectionError, match=r"corpus\.jsonl\.gz: damaged gzip"):
        load("beir", folder=folder)
    with pytest.raises(CollectionError, match="both there"):
        load("beir", folder=make(folder))


def test_plain_scores_are_read(tmp_path: Path) -> None:
    rows = [
        f"q1\td{n}\t{score}\n" for n, score in enumerate(["+2", "-1", ".5", "1.", "1e-3", " 1 "])
    ]
    collection = load("beir", folder=make(tmp_path, qrels_test=HEADER + "".join(rows)))
    assert list(collection.qrels("test")["q1"].values()) == [2, -1, 0.5, 1, 0.001, 1]


def test_dangling_and_unjudged_are_reported(tmp_path: Path) -> None:
    folder = make(tmp_path, qrels_test=HEADER + "q1\td1\t1\nq1\tghost\t1\n", qrels_train=None)
    collection = load("beir", folder=folder)
    assert collection.dangling == [("q1", "ghost")]
    assert collection.qrels("test") == {"q1": {"d1": 1.0, "ghost": 1.0}}
    assert collection.left_out == {"query without a judgement": 1}


def test_a_split_loaded_after_another_is_whole(tmp_path: Path) -> None:
    """Nothing is kept from one load to the next, and what two splits share is said."""
    folder = make(tmp_path, qrels_train=HEADER + "q1\td1\t1\nq2\td2\t1\n")
    for _ in range(2):
        collection = load("beir", folder=folder)
        assert [len(collection.queries(split)) for split in ("test", "train")] == [1, 2]
        assert len(collection.warnings) == 2
        assert "'q1'" in collection.warnings[0]
