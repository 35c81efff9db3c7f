"""What loaders share: hub layouts, large files mapped from the disk, guessing, languages."""

import gzip
import json
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrievers.identity import CollectionError, MissingFileError
from retrievers.loaders import load, storing
from retrievers.loaders.guess import guess
from retrievers.loaders.hub import data_files, dataset_folder, short_name
from retrievers.loaders.rows import read_rows
from retrievers.scripts import language
from tests.tiny_datasets import kopub, msmarco, parquet, vidore_v1, vidore_v2, vidore_v3
from tests.tiny_pdf import pdf

CARD = """---
license: mit
configs:
- config_name: pages
  data_files:
  - split: test
    path: stored/p-*
- config_name: asked
  data_files:
  - split: test
    path: [stored/q1.jsonl, stored/q2.jsonl]
---
# A card
"""


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    """A command writes its log to the stderr of its own test."""
    loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def rows(count: int) -> storing.Rows:
    def generate(left_out: Counter[str]) -> Iterator[dict[str, Any]]:
        left_out["odd row"] += 1
        for number in range(count):
            yield {"id": f"d{number}", "text": "x" * 10, "place": f"f:{number}"}

    return generate


# -- hub layouts ----------------------------------------------------------------------------------


def test_files_that_the_card_declares(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD)
    (tmp_path / "stored").mkdir()
    parquet(tmp_path / "stored" / "p-1.parquet", [{"a": 1}])
    for name in ("q1.jsonl", "q2.jsonl"):
        (tmp_path / "stored" / name).write_text("{}\n")
    names = [path.name for path in data_files(tmp_path, "asked", "test")]
    assert names == ["q1.jsonl", "q2.jsonl"]
    assert [path.name for path in data_files(tmp_path, "pages", "test")] == ["p-1.parquet"]
    with pytest.raises(MissingFileError, match="no file of split 'train'"):
        data_files(tmp_path, "pages", "train")
    (tmp_path / "README.md").write_text("---\na: [\n---\n")
    with pytest.raises(CollectionError, match=r"README\.md: its head is no YAML"):
        data_files(tmp_path, "pages", "test")


def test_a_hub_data_set_is_fetched_and_then_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fetch(name: str, **options: Any) -> str:
        asked.append((name, options))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert dataset_folder("hub:vidore/esg", "abc") == tmp_path
    assert asked == [("vidore/esg", {"repo_type": "dataset", "revision": "abc"})]
    assert short_name("hub:vidore/esg") == "esg"

    def fail(name: str, **options: Any) -> str:
        raise ConnectionError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(MissingFileError, match="did not give the data set 'vidore/esg': no netw"):
        dataset_folder("hub:vidore/esg")


def test_beir_from_parquet_with_judgements_elsewhere(tmp_path: Path) -> None:
    corpus, qrels = tmp_path / "scifact", tmp_path / "scifact-qrels"
    parquet(corpus / "corpus" / "corpus-00000-of-00001.parquet", [{"_id": "1", "text": "a"}])
    parquet(corpus / "queries" / "queries-00000-of-00001.parquet", [{"_id": "q", "text": "b"}])
    qrels.mkdir()
    (qrels / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    collection = load("beir", folder=corpus, qrels=qrels)
    assert collection.qrels("test") == {"q": {"1": 1.0}}


# -- large files ----------------------------------------------------------------------------------


def test_large_files_are_written_once_and_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLQR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storing, "SMALL", 3)
    monkeypatch.setattr(storing, "BATCH_BYTES", 100)
    source = tmp_path / "a.jsonl"
    source.write_text("1234")
    table, left_out = storing.store([source], {}, rows(25))
    assert (len(table), left_out) == (25, {"odd row": 1})
    assert table.column("id").num_chunks > 1  # batches of 100 bytes
    assert storing.places(table)(7) == "f:7"
    again, counted = storing.store([source], {}, rows(99))  # not read a second time
    assert (len(again), counted) == (25, {"odd row": 1})
    assert len(storing.store([source], {"other": 1}, rows(3))[0]) == 3
    source.write_text("123456")  # changed since
    assert len(storing.store([source], {}, rows(4))[0]) == 4
    for path in (tmp_path / "cache").rglob("about.json"):
        path.write_text("{")
    with pytest.raises(CollectionError, match=r"damaged: .*; remove it"):
        storing.store([source], {}, rows(4))


def test_a_fault_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLQR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storing, "SMALL", 3)
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{]\n')
    for _ in range(2):
        with pytest.raises(CollectionError, match=r"d.jsonl:2: no JSON"):
            load("trec", corpus=path)
    assert not list((tmp_path / "cache").rglob("*.arrow"))


def test_mapped_and_read_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = vidore_v3(tmp_path / "hr")
    read = load("vidore", folders=[str(folder)])
    monkeypatch.setenv("RLQR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storing, "SMALL", 0)
    mapped = load("vidore", folders=[str(folder)])
    assert mapped.fingerprint == read.fingerprint
    assert (
        mapped.documents.column("image").to_pylist() == read.documents.column("image").to_pylist()
    )
    merged = load("kopub", folder=str(kopub(tmp_path / "k")), task="image", duplicates="merge")
    assert merged.ids == ("page-0", "page-1", "page-2", "page-4")


def test_rows_and_their_places(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b\n"x\ny",1\n\nz,2\n')
    assert [(place.rpartition(":")[2], row) for place, row in read_rows(path)] == [
        ("2", {"a": "x\ny", "b": "1"}),
        ("5", {"a": "z", "b": "2"}),
    ]
    path.write_text("a,a\n")
    with pytest.raises(CollectionError, match=r"a.csv:1: wanted a header of different names"):
        list(read_rows(path))
    path.write_text("a\n" + "x" * 200_000 + "\n")  # above Python's own limit
    assert len(list(read_rows(path))) == 1
    with pytest.raises(CollectionError, match=r"\.xlsx is no table"):
        list(read_rows(parquet(tmp_path / "a.xlsx", [{"a": 1}])))


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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        # Text is decoded ahead: the line was said to be 0.
        ("a.csv", b"id,text\n" + b"1,x\n" * 40 + b"2,\xe9\n", r"a.csv:42: 'utf-8' codec"),
        ("a.csv", b'id,text\n1,x\n2,"open\n3,y\n', r"a.csv:3: the row that begins here"),
        ("a.csv.gz", gzip.compress(b"id,text\n1,x\n")[:-12] + b"\xff" * 12, "damaged gzip file"),
    ],
)
def test_a_damaged_csv_file_names_the_line(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CollectionError, match=said):
        list(read_rows(tmp_path / name))


def test_reading_goes_on_after_a_line_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n{"a": "\xe9"}\n{"a": 3}\n')
    one, bad, three = (row for _, row in read_rows(tmp_path / "a.jsonl"))
    assert (one, three) == ({"a": 1}, {"a": 3})
    assert "a.jsonl:2: 'utf-8' codec" in str(bad)


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("서울시 예산 공고 2024 (plan)", "Korean"),
        ("東京都の予算", "Japanese"),
        ("预算公告 2024", "Chinese"),
        ("Haushalt für 2024", "Latin script"),
        ("бюджет", "Cyrillic script"),
        ("2024 — 1,200", "no letters"),
        ("ბიუჯეტი", "another script"),
    ],
)
def test_languages_by_their_letters(text: str, found: str) -> None:
    assert language(text) == found
