"""Which loader reads a folder, and what `rlqr data inspect` says of it."""

import json
from pathlib import Path

import pytest

from retrievers.identity import CollectionError, MissingFileError, UnknownNameError
from retrievers.loaders import LOADERS, load
from retrievers.loaders.guess import guess
from tests.tiny_datasets import kopub, msmarco, vidore_v1, vidore_v2
from tests.tiny_pdf import pdf

# -- guessing -------------------------------------------------------------------------------------


def test_the_loader_is_guessed_and_its_options_work(tmp_path: Path) -> None:
    made = {
        "kopub": kopub(tmp_path / "kopub"),
        "v1": vidore_v1(tmp_path / "v1"),
        "v2": vidore_v2(tmp_path / "v2"),
        "msmarco": msmarco(tmp_path / "ms"),
    }
    found = {name: guess(folder) for name, folder in made.items()}
    loaders = {name: one.loader for name, one in found.items()}
    assert loaders == {"kopub": "kopub", "v1": "vidore", "v2": "vidore", "msmarco": "msmarco"}
    sizes = {name: len(load(one.loader, **one.options)) for name, one in found.items()}
    assert sizes == {"kopub": 5, "v1": 3, "v2": 2, "msmarco": 4}


def test_own_folders_are_guessed(tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(pdf("Budget"))
    (tmp_path / "queries.tsv").write_text("1\thow much?\n")
    (tmp_path / "qrels.json").write_text(json.dumps({"1": {"r.pdf#page-1": 1}}))
    found = guess(tmp_path)
    collection = load(found.loader, **found.options)
    assert (found.loader, found.reason) == ("files", "files of documents")
    assert collection.qrels("test") == {"1": {"r.pdf#page-1": 1.0}}
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "b"}\n')
    found = guess(tmp_path)  # BEIR's loader would pass over these queries and judgements
    assert load(found.loader, **found.options).qrels("test") == {"1": {"r.pdf#page-1": 1.0}}
    (tmp_path / "qrels").mkdir()
    assert guess(tmp_path).loader == "beir"


def test_queries_without_a_split_are_those_of_all_judged_splits(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "queries.tsv").write_text("1\tone?\n2\ttwo?\n")
    (tmp_path / "qrels.train.trec").write_text("1 0 a.txt 1\n")
    (tmp_path / "qrels.test.trec").write_text("2 0 b.txt 1\n")
    found = guess(tmp_path)
    collection = load(found.loader, **found.options)
    assert collection.qrels("train") == {"1": {"a.txt": 1.0}}
    assert collection.qrels("test") == {"2": {"b.txt": 1.0}}
    assert collection.left_out == {}
    (tmp_path / "queries-more.tsv").write_text("3\tthree?\n")
    with pytest.raises(CollectionError, match=r"queries-more.tsv and .*queries.tsv are both for"):
        guess(tmp_path)


def test_judgements_of_no_queries_are_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta.txt\t1\n")
    with pytest.raises(CollectionError, match=r"qrels.tsv judges queries, and no file of them"):
        guess(tmp_path)


def test_trec_folders_are_guessed(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "00.jsonl").write_text('{"docid": "a", "text": "b"}\n')
    (tmp_path / "topics.dev.tsv").write_text("1\tx\n")
    (tmp_path / "qrels.dev.txt").write_text("1 0 a 1\n")
    found = guess(tmp_path)
    assert found.loader == "trec"
    assert load("trec", **found.options).qrels("validation") == {"1": {"a": 1.0}}


def test_a_folder_of_nothing_is_no_collection(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="holds no file that a loader reads"):
        guess(tmp_path)
    with pytest.raises(MissingFileError, match="is no folder"):
        guess(tmp_path / "none")


def test_loaders_are_listed() -> None:
    assert set(LOADERS) >= {"beir", "stdlib"}
    with pytest.raises(UnknownNameError, match=r"no loader 'bier'; there are: beir, .*stdlib"):
        load("bier")
    with pytest.raises(UnknownNameError, match=r"loader 'beir'.*folder: "):
        load("beir", path="x")


# -- inspecting -----------------------------------------------------------------------------------


def test_inspect_names_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rewriter.cli import main

    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.jsonl").write_text("{oops\n" * 5)
    main(["data", "inspect", str(tmp_path)])
    said = capsys.readouterr()
    assert "left out: 5 malformed row\n" in said.out
    named = [line for line in said.err.splitlines() if "b.jsonl" in line]
    assert len(named) == 3
    assert "b.jsonl:1: no JSON" in named[0]
    assert named[2].endswith("others are counted only")


def test_inspect_names_the_loader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rewriter.cli import main

    (tmp_path / "r.pdf").write_bytes(pdf("Budget of the city", ""))
    (tmp_path / "copy.pdf").write_bytes(pdf("Budget of the city"))
    main(["data", "inspect", str(tmp_path)])
    said = capsys.readouterr().out
    assert said.startswith("read by the loader 'files' (files of documents), options {folder: ")
    assert "  3 documents, 1 blank, 3 without a title\n" in said
    assert "  page images: 3 documents have some\n" in said
    assert "doubts about documents: blank page × 1\n" in said
    assert "documents with the text of another: 1\n  copy.pdf#page-1, r.pdf#page-1\n" in said


def test_inspect_notes_equal_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rewriter.cli import main

    main(["data", "inspect", str(kopub(tmp_path / "kopub"))])
    assert "doubts about documents: page with the image of another × 1" in capsys.readouterr().out
