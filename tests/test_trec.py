"""TREC collections: shards, topics in their forms, judgements; every fault with its place."""

import gzip
import json
from pathlib import Path

import pytest

from retrievers.collection import Collection, Document
from retrievers.identity import CollectionError, DuplicateIdError, MissingFileError
from retrievers.loaders import load
from retrievers.loaders.query_files import read_queries

SGML = """<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations &amp; people.

<narr> Narrative:
Relevant documents name one.
</top>

<top>
<num> Number: 302
<title> Polio
<desc> Description: Is it gone?
</top>
"""
XML = """<?xml version="1.0"?>
<topics task="rounds">
  <topic number="1">
    <query>virus origin</query>
    <question>what is the   origin?</question>
  </topic>
  <topic number="2"><query>weather</query><question>is it seasonal?</question></topic>
</topics>
"""


def shard(path: Path, *rows: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w") as out:
        out.write(text)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two shards in the columns of MS MARCO v2.1 documents."""
    one = {"url": "u1", "title": "Tax", "headings": "Office\nHours", "body": "opens at nine"}
    two = {"url": "u2", "title": None, "headings": "", "body": "rain"}
    folder = tmp_path / "corpus"
    shard(folder / "docs_01.json.gz", {"docid": "msmarco_v2.1_doc_01_0", **two})
    shard(folder / "docs_00.json.gz", {"docid": "msmarco_v2.1_doc_00_0", **one})
    return folder


def test_shards_are_read_in_the_order_of_their_names(corpus: Path, tmp_path: Path) -> None:
    (corpus / "README.md").write_text("not a shard")
    topics = text(tmp_path / "topics.tsv", "2024-1\twhen is it open?\n2024-2\tumbrella\n")
    qrels = text(tmp_path / "qrels.txt", "2024-1 0 msmarco_v2.1_doc_00_0 3\n")
    collection = load("trec", corpus=corpus, topics={"test": topics}, qrels={"test": qrels})
    assert collection.ids == ("msmarco_v2.1_doc_00_0", "msmarco_v2.1_doc_01_0")
    assert collection.document("msmarco_v2.1_doc_00_0") == Document(
        "msmarco_v2.1_doc_00_0", "Tax", "opens at nine"
    )
    assert collection.document("msmarco_v2.1_doc_01_0").title == ""
    assert collection.metadata("msmarco_v2.1_doc_00_0") == {
        "url": "u1",
        "headings": "Office\nHours",
    }
    assert collection.qrels("test") == {"2024-1": {"msmarco_v2.1_doc_00_0": 3.0}}
    assert collection.left_out == {"query without a judgement": 1}


def test_columns_that_are_named(corpus: Path) -> None:
    collection = load("trec", corpus=corpus, id="url", text=["headings", "body"])
    assert collection.document("u1").text == "Office\nHours\nopens at nine"
    assert collection.document("u2").text == "rain"
    with pytest.raises(CollectionError, match=r"docs_00.json.gz:1: no text: none of abstract"):
        load("trec", corpus=corpus, text=["abstract"])


def test_topics_without_judgements_are_listed(corpus: Path, tmp_path: Path) -> None:
    topics = text(tmp_path / "rag24.tsv", "2024-1\tone\n2024-2\ttwo\n")
    collection = load("trec", corpus=corpus, topics={"test": topics})
    assert [query.id for query in collection.queries("test")] == ["2024-1", "2024-2"]
    assert collection.qrels("test") == {"2024-1": {}, "2024-2": {}}
    assert collection.left_out == {}


def test_a_malformed_document_stops_or_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"docid": "a", "text": "x"}\n{]\n{"text": "y"}\n{"docid": "b", "text": "z"}\n')
    with pytest.raises(CollectionError, match=r"docs\.jsonl:2: no JSON"):
        load("trec", corpus=path)
    collection = load("trec", corpus=path, bad_rows="skip")
    assert collection.ids == ("a", "b")
    assert collection.left_out == {"malformed document": 2}


def test_an_id_in_two_shards_names_both(corpus: Path) -> None:
    shard(corpus / "docs_02.jsonl", {"docid": "msmarco_v2.1_doc_00_0", "body": "again"})
    with pytest.raises(DuplicateIdError, match=r"docs_00.json.gz:1 and again at .*_02.jsonl:1"):
        load("trec", corpus=corpus)


def test_sgml_topics(tmp_path: Path) -> None:
    path = text(tmp_path / "topics.301-302", SGML)
    first, second = read_queries(path)
    assert (first.id, first.text) == ("301", "International Organized Crime")
    assert first.metadata["desc"] == "Identify organizations & people."
    assert second.id == "302"
    assert [query.text for query in read_queries(path, "desc")][1] == "Is it gone?"
    with pytest.raises(CollectionError, match=r"topics.301-302:12: no topic text: none of narr "):
        read_queries(path, "narr")


def test_xml_topics(tmp_path: Path) -> None:
    path = text(tmp_path / "topics.xml", XML)
    assert [(q.id, q.text) for q in read_queries(path)] == [("1", "virus origin"), ("2", "weather")]
    assert read_queries(path, "question")[0].text == "what is the origin?"
    plain = '<topics>\n<topic number="7">\n a patient with <b>fever</b>\n</topic></topics>'
    (query,) = read_queries(text(tmp_path / "plain.xml", plain))
    assert (query.id, query.text) == ("7", "a patient with fever")
    with pytest.raises(CollectionError, match=r"bad.xml:2: no XML"):
        read_queries(text(tmp_path / "bad.xml", "<topics>\n<topic></topics>"))
    with pytest.raises(CollectionError, match=r"none.xml:2: no topic number"):
        read_queries(text(tmp_path / "none.xml", "<topics>\n<topic>x</topic></topics>"))


def test_topics_are_whole_or_refused(tmp_path: Path) -> None:
    smaller = "<top>\n<num> Number: 1\n<title> is 3 < 5, and a <b?\n<desc lang='en'> x\n</top>\n"
    (query,) = read_queries(text(tmp_path / "t.trec", smaller))
    assert (query.text, query.metadata) == ("is 3 < 5, and a <b?", {"desc": "x"})
    for lost, line in (("<top>\n<num> 1 <title> a\n", 1), (smaller + "<top>\n<num> 2", 6)):
        for rest in ("", smaller):
            with pytest.raises(CollectionError, match=rf"t.trec:{line}: <top> without its </top>"):
                read_queries(text(tmp_path / "t.trec", lost + rest))
    twice = "<topics><topic number='1'><query>a</query><query>b</query></topic></topics>"
    with pytest.raises(CollectionError, match=r"t.xml:1: 'query' is there 2 times"):
        read_queries(text(tmp_path / "t.xml", twice))
    parts = "<topic number='1'><query>a</query><sub>b</sub><sub>c</sub></topic>"
    (query,) = read_queries(
        text(tmp_path / "t.xml", f"<t:topics xmlns='u' xmlns:t='u'>{parts}</t:topics>")
    )
    assert (query.text, query.metadata) == ("a", {"sub": ["b", "c"]})
    with gzip.open(tmp_path / "t.xml.gz", "wt") as file:
        file.write(f"<topics>{parts}</topics>")
    assert [one.id for one in read_queries(tmp_path / "t.xml.gz")] == ["1"]


def test_a_header_is_no_query(tmp_path: Path) -> None:
    rows = read_queries(text(tmp_path / "q.tsv", "query-id\ttext\n1\tone\n"))
    assert [(one.id, one.text) for one in rows] == [("1", "one")]


def test_queries_in_jsonl_tsv_and_txt(tmp_path: Path) -> None:
    other = {"_id": "b", "text": "x", "metadata": {"origin": "synthetic", "source": "d1"}}
    rows = f'{{"qid": 7, "question": "세금?", "topic": "tax"}}\n{json.dumps(other)}\n'
    numbered, own = read_queries(text(tmp_path / "q.jsonl", rows))
    assert (numbered.id, numbered.text, numbered.metadata) == ("7", "세금?", {"topic": "tax"})
    assert (own.origin, own.source) == ("synthetic", "d1")
    (query,) = read_queries(text(tmp_path / "q.tsv", "1048585\twhat is paula deen's brother\n"))
    assert (query.id, query.text) == ("1048585", "what is paula deen's brother")
    assert [q.id for q in read_queries(text(tmp_path / "q.txt", "one\n\n two \n"))] == ["q1", "q3"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("q.tsv", "1\ta\n2\n", r"q.tsv:2: '2' has 1 columns"),
        ("q.tsv", "1\ta\tb\n", r"q.tsv:1: .* has 3 columns"),
        ("q.tsv", "1\ta\n1\tb\n", r"q.tsv:1 and again at .*q.tsv:2"),
        ("q.tsv", "1\t \n", r"q.tsv:1: query '1' has no text"),
        ("q.jsonl", '{"id": 1.5, "text": "a"}', r"q.jsonl:1: id 1.5"),
        ("q.jsonl", '{"id": "1", "words": "a"}', r"q.jsonl:1: no query text: none of text, query"),
        ("q.jsonl", '{"id": "1", "text": 3}', r"q.jsonl:1: 'text' is 3, wanted text"),
        ("q.jsonl", '{"id": "1", "text": "a", "metadata": "b"}', r"q.jsonl:1: 'metadata' is 'b'"),
        ("q.txt", "", r"q.txt holds no query"),
    ],
)
def test_malformed_queries(tmp_path: Path, name: str, content: str, said: str) -> None:
    with pytest.raises(CollectionError, match=said):
        read_queries(text(tmp_path / name, content))


def test_judgements_of_unknown_topics_and_without_topics(corpus: Path, tmp_path: Path) -> None:
    topics = text(tmp_path / "topics.tsv", "1\tone\n")
    qrels = text(tmp_path / "qrels.trec", "1 0 a 1\n9 0 a 1\n")
    with pytest.raises(CollectionError, match=r"qrels.trec: 1 queries are not in .*, .*'9'"):
        load("trec", corpus=corpus, topics={"test": topics}, qrels={"test": qrels})
    with pytest.raises(MissingFileError, match="judgements and no topics"):
        load("trec", corpus=corpus, qrels={"test": qrels})
    with pytest.raises(MissingFileError, match="none is not there"):
        load("trec", corpus=tmp_path / "none")


def test_one_query_in_two_splits_has_one_text(corpus: Path, tmp_path: Path) -> None:
    one, other = text(tmp_path / "a.tsv", "1\tone\n"), text(tmp_path / "b.tsv", "1\tother\n")
    with pytest.raises(DuplicateIdError, match=r"b.tsv: query '1' has another text"):
        load("trec", corpus=corpus, topics={"train": one, "test": other})


def test_options_are_checked(corpus: Path) -> None:
    with pytest.raises(
        CollectionError, match=r"loader 'trec': corpsu: Extra.*it takes: name, corp"
    ):
        load("trec", corpus=corpus, corpsu=1)
    assert isinstance(load("trec", corpus=corpus, name="mine"), Collection)


def test_judgements_of_ms_marco_are_trec_whatever_their_ending(
    corpus: Path, tmp_path: Path
) -> None:
    topics = text(tmp_path / "queries.dev.tsv", "1\tone\n")
    qrels = text(tmp_path / "qrels.dev.tsv", "1\t0\tmsmarco_v2.1_doc_00_0\t1\n")
    collection = load("trec", corpus=corpus, topics={"dev": topics}, qrels={"dev": qrels})
    assert collection.qrels("dev") == {"1": {"msmarco_v2.1_doc_00_0": 1.0}}
