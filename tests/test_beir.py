"""Folders in the layout of BEIR: every fault with its place; what is written is what is read."""

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.collection import Collection, Document, Query
from retrievers.identity import (
    CollectionError,
    DuplicateIdError,
    EmptyCollectionError,
    MissingFileError,
)
from retrievers.loaders import beir_write, load
from retrievers.loaders.beir import write

NFC, NFD = "caf\u00e9", "cafe\u0301"
HEADER = "query-id\tcorpus-id\tscore\n"
FILES = {
    "corpus.jsonl": '{"_id": "d1", "text": "one"}\n{"_id": "d2", "title": null, "text": "two"}\n'
    '{"_id": "d3", "title": "Three", "text": "three", "metadata": {"url": "x"}, "more": 1}\n',
    "queries.jsonl": '{"_id": "q1", "text": "first"}\n{"_id": "q2", "text": "second", "metadata": '
    '{"origin": "synthetic", "source": "d2", "reference": "2", "tone": "curt"}}\n',
    "qrels/test.tsv": HEADER + "q1\td1\t1\nq1\td2\t0\n",
    "qrels/train.tsv": HEADER + "q2\td2\t1\n",
    "qrels/test.graded.tsv": HEADER + "q1\td3\t2\nq1\td1\t0.5\n",
}


def make(folder: Path, **changes: str | bytes | None) -> Path:
    """Write `FILES` with some changed; `qrels_test` stands for qrels/test.tsv, None removes."""
    names = {"corpus": "corpus.jsonl", "queries": "queries.jsonl"}
    changed = {names.get(k, k.replace("_", "/", 1) + ".tsv"): v for k, v in changes.items()}
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, content in {**FILES, **changed}.items():
        if content is not None:
            data = content if isinstance(content, bytes) else content.encode()
            (folder / name).write_bytes(data)
    return folder


def contents(collection: Collection) -> dict[str, Any]:
    """Everything that a folder holds of a collection."""
    return {
        "documents": [collection.document(identity) for identity in collection.ids],
        "fingerprint": collection.fingerprint,
        "queries": {split: collection.queries(split) for split in collection.splits},
        "qrels": {
            (split, kind): [(q, list(g.items())) for q, g in collection.qrels(split, kind).items()]
            for split in collection.splits
            for kind in collection.kinds(split)
        },
        "dangling": collection.dangling,
    }


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


GOOD = '{"_id": "d1", "text": "one"}\n'


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


def test_plain_scores_are_read(tmp_path: Path) -> None:
    rows = [
        f"q1\td{n}\t{score}\n" for n, score in enumerate(["+2", "-1", ".5", "1.", "1e-3", " 1 "])
    ]
    collection = load("beir", folder=make(tmp_path, qrels_test=HEADER + "".join(rows)))
    assert list(collection.qrels("test")["q1"].values()) == [2, -1, 0.5, 1, 0.001, 1]


def test_a_corpus_alone(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(GOOD)
    collection = load("beir", folder=tmp_path, name="bare")
    assert (collection.name, len(collection), collection.splits) == ("bare", 1, [])
    write(collection, tmp_path / "copy")
    assert contents(load("beir", folder=tmp_path / "copy")) == contents(collection)


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
