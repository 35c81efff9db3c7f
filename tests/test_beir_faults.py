"""Folders in the layout of BEIR: every fault with its place."""

from pathlib import Path

import pytest

from retrievers.identity import (
    CollectionError,
    DuplicateIdError,
    EmptyCollectionError,
    MissingFileError,
)
from retrievers.loaders import load
from tests.beir_folders import GOOD, HEADER, make
from tests.tiny_collections import NFC, NFD


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        (GOOD + "\n{]\n", ":3: no JSON"),
        (GOOD + "[1]", ":2: .*list; each line is one JSON object"),
        (GOOD + "[" * 100_000, ":2: no JSON"),
        (GOOD + '{"id": "d2", "text": "two"}', ":2: no '_id'; add it"),
        (GOOD + '{"_id": 2, "text": "two"}', ":2: '_id' is 2, wanted text"),
        (GOOD + '{"_id": "", "text": "two"}', ":2: document id ''"),
        (GOOD + '{"_id": "d2", "text": "a", "text": "b"}', ":2: 'text' is given twice in one obj"),
        (GOOD + '{"_id": "d2", "metadata": {"a": 1, "a": 2}}', ":2: 'a' is given twice in one obj"),
        (GOOD + '{"_id": "d\\t2", "text": "two"}', r":2: id 'd\\t2' holds a tab, .* TSV"),
        (GOOD + '{"_id": "d\\n", "text": "two"}', r":2: id 'd\\n' holds .*control"),
        (GOOD + '{"_id": "d\\u0085", "text": "two"}', r":2: id 'd\\x85' holds .*control"),
        (GOOD + '{"_id": "d2"}', ":2: no 'text'"),
        (GOOD + '{"_id": "d2", "text": null}', ":2: 'text' is None"),
        (GOOD + '{"_id": "d2", "title": 3, "text": "two"}', ":2: 'title' is 3"),
        (GOOD + '{"_id": "d2", "text": "\\ud800"}', ":2: 'text' holds half a surrogate"),
        (GOOD + '{"_id": "d2", "text": "two", "metadata": "x"}', ":2: 'metadata' is 'x'"),
        (GOOD.encode() + b'{"_id": "\xff"}', ":2: .*UTF-8"),
    ],
)
def test_malformed_documents(tmp_path: Path, corpus: str | bytes, said: str) -> None:
    with pytest.raises(CollectionError, match=r"corpus\.jsonl" + said):
        load("beir", folder=make(tmp_path, corpus=corpus))


@pytest.mark.parametrize("second", ["d1", NFD])
def test_colliding_ids_name_both_lines(tmp_path: Path, second: str) -> None:
    row = '{{"_id": "{}", "text": "x"}}\n'
    text = row.format("d1") + row.format(NFC) + "\n" + row.format(second)
    first = 1 if second == "d1" else 2
    with pytest.raises(DuplicateIdError, match=rf"corpus.jsonl:{first} and .*corpus.jsonl:4 "):
        load("beir", folder=make(tmp_path, corpus=text))
    with pytest.raises(DuplicateIdError, match=rf"queries.jsonl:{first} and .*queries.jsonl:4 "):
        load("beir", folder=make(tmp_path, queries=text))


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        ('{"_id": "q1"}', ":1: no 'text'"),
        ('{"_id": "q1", "text": "x", "metadata": {"origin": "robot"}}', ":1: .*'robot' is none of"),
        ('{"_id": "q1", "text": "x", "metadata": {"source": 1}}', ":1: 'source' is 1"),
        ('{"_id": "q1", "text": "x", "metadata": []}\n{', ":2: no JSON"),
        ('{"_id": "q\\u0000", "text": "x"}', r":1: id 'q\\x00' holds .* control"),
    ],
)
def test_malformed_queries(tmp_path: Path, queries: str, said: str) -> None:
    with pytest.raises(CollectionError, match=r"queries\.jsonl" + said):
        load("beir", folder=make(tmp_path, queries=queries))


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        ("q1\td1\t1\n", ":1: the first line is .* wanted the header"),
        ("q1 0 d1 1\n", ":1: .*TREC"),
        (HEADER + "q1\t0\td1\t1\n", ":2: .*three columns"),
        (HEADER + "q1 d1 1\n", ":2: .*three columns"),
        (HEADER + "\td1\t1\n", ":2: .*three columns"),
        (HEADER + "q1\td1\thigh\n", ":2: score 'high'"),
        (HEADER + "q1\td1\t1_0\n", ":2: score '1_0' is not a finite number in plain digits"),
        (HEADER + "q1\td1\t٣\n", ":2: score '٣'"),
        (HEADER + "q1\td1\t1e999\n", ":2: score '1e999'"),
        (HEADER + "q1\td\x01\t1\n", r":2: id 'd\\x01' holds"),
        (HEADER + "q1\td1\tnan\n", ":2: score 'nan'"),
        (HEADER + "q1\td1\tinf\n", ":2: score 'inf'"),
        (HEADER + "q1\td1\t1\nq9\td1\t1\n", ":3: query id 'q9' is not in queries.jsonl"),
        (HEADER + "q1\td1\t1\nq1\td2\t1\nq1\td1\t0\n", ":4: .*judged at .*test.tsv:2 already"),
        (HEADER + f"q1\t{NFC}\t1\nq1\t{NFD}\t0\n", ":3: .*judged at .*test.tsv:2 already"),
    ],
)
def test_malformed_judgements(tmp_path: Path, qrels: str, said: str) -> None:
    with pytest.raises(CollectionError, match=r"test\.tsv" + said):
        load("beir", folder=make(tmp_path, qrels_test=qrels))


def test_further_kinds_judge_the_queries_of_their_split(tmp_path: Path) -> None:
    graded = "qrels_test.graded"
    with pytest.raises(CollectionError, match=r"graded.tsv:2: query id 'q2' is not in test.tsv"):
        load("beir", folder=make(tmp_path / "a", **{graded: HEADER + "q2\td1\t1\n"}))
    with pytest.raises(MissingFileError, match=r"test\.graded\.tsv needs test\.tsv"):
        load("beir", folder=make(tmp_path / "b", qrels_test=None))
    with pytest.raises(CollectionError, match=r"a.b"):
        load("beir", folder=make(tmp_path / "c", **{"qrels_test.a.b": HEADER + "q1\td1\t1\n"}))


@pytest.mark.parametrize("name", ["corpus", "queries", "qrels_test", "qrels_test.graded"])
@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_empty_files_are_named(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(EmptyCollectionError, match=name.replace("_", "/")):
        load("beir", folder=make(tmp_path, **{name: content}))


def test_a_header_alone_holds_no_judgement(tmp_path: Path) -> None:
    with pytest.raises(EmptyCollectionError, match=r"test.tsv"):
        load("beir", folder=make(tmp_path, qrels_test=HEADER))


def test_missing_files_are_file_not_found_errors(tmp_path: Path) -> None:
    for folder, said in [
        (tmp_path / "none", "none is no folder"),
        (make(tmp_path / "a", corpus=None), r"corpus\.jsonl"),
        (make(tmp_path / "b", queries=None), r"queries\.jsonl is missing"),
    ]:
        with pytest.raises(FileNotFoundError, match=said):
            load("beir", folder=folder)


def test_judgements_in_another_form_are_not_passed_over(tmp_path: Path) -> None:
    make(tmp_path)
    for path in (tmp_path / "qrels").iterdir():
        path.unlink()
    (tmp_path / "qrels" / "test.json").write_text('{"q1": {"d1": 1}}')
    with pytest.raises(CollectionError, match=r"test.json: judgements are read from qrels/SPLIT"):
        load("beir", folder=tmp_path)


def test_a_split_that_is_no_name_names_its_file(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "qrels" / "test.tsv").rename(tmp_path / "qrels" / "my test.tsv")
    with pytest.raises(CollectionError, match=r"my test.tsv: split 'my test': use ASCII"):
        load("beir", folder=tmp_path)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path, name: str) -> None:
    make(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(CollectionError, match=f"{name} is a folder, wanted a file"):
        load("beir", folder=tmp_path)
