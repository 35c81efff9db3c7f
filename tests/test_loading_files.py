"""What loaders share: hub layouts, large files mapped from the disk, rows, languages."""

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrievers.identity import CollectionError, MissingFileError
from retrievers.loaders import load, storing
from retrievers.loaders.hub import data_files, dataset_folder, short_name
from retrievers.loaders.rows import read_rows
from retrievers.scripts import language
from tests.tiny_datasets import kopub, parquet, vidore_v3

# -- hub layouts ----------------------------------------------------------------------------------

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


def rows(count: int) -> storing.Rows:
    def generate(left_out: Counter[str]) -> Iterator[dict[str, Any]]:
        left_out["odd row"] += 1
        for number in range(count):
            yield {"id": f"d{number}", "text": "x" * 10, "place": f"f:{number}"}

    return generate


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


# -- rows and their letters -----------------------------------------------------------------------


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
