"""The training-free rules."""

from collections.abc import Sequence

import pytest

from retrievers.collection import Collection
from retrievers.documents import Document
from retrievers.queries import Query
from rewriter.records import Rewrite
from rewriter.systems import (
    SYSTEMS,
    CollectionTerms,
    UnknownSystem,
    last_sentence,
    question,
    rewrites,
    top_idf,
)


class Known:
    """Terms are words; how often each is held is given."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def analyse(self, text: str) -> list[str]:
        return text.split()

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        return [self.counts.get(term, 0) for term in terms]


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("how do i open a file", "how do i open a file"),
        ("I have a file. How do I open it?", "How do I open it?"),
        ("I have a file! how do i open it", "how do i open it"),
        ("How do I open it? Thanks", "Thanks"),
        ("안녕하세요. 예산은 어디에 있나요?", "예산은 어디에 있나요?"),
        ("こんにちは。予算はどこですか？", "予算はどこですか？"),
        ("你好！预算在哪里", "预算在哪里"),
        ("음…예산 공고", "예산 공고"),
        ("नमस्ते। बजट कहाँ है", "बजट कहाँ है"),
        ("a first line\nand a second", "and a second"),
        ("a first line\r\n\r\nand a second\n\n", "and a second"),
        ("a\u2028b c", "b c"),
        ("I use Python 3.5 with os.path here", "I use Python 3.5 with os.path here"),
        ("See http://a.b/?x=1! Then what", "Then what"),
        ("Why does it fail?! ...", "Why does it fail?!"),
        ("Why does it fail ???", "Why does it fail ???"),
        ('He said "stop." What now?', "What now?"),
        ('One thing. He said "stop."', 'He said "stop."'),
        ("그는 「가자。」 어디로?", "어디로?"),
        ("Use a tool, e.g. grep", "Use a tool, e.g. grep"),
        ("Made in the U.S. by us. Where", "Where"),
        ("wait... what", "what"),
        ("wait...what", "wait...what"),
        ("  padded.  ", "padded."),
        ("", ""),
        (" \n ", ""),
        ("?!...", ""),
    ],
)
def test_the_last_sentence(text: str, last: str) -> None:
    assert last_sentence(text) == last


def test_a_long_run_of_marks_is_read_in_one_go() -> None:
    text = "." * 200_000 + "x" + "?" * 200_000 + " end"
    assert last_sentence(text) == "end"


def test_the_rarest_terms_in_the_order_of_the_query() -> None:
    known = Known(the=9, open=4, file=2, mode=1)
    assert top_idf("the file open the mode", known, 2) == "file mode"
    assert top_idf("mode the file open", known, 3) == "mode file open"
    assert top_idf("the file open mode", known) == "the file open mode"


def test_equally_rare_terms_go_by_order() -> None:
    known = Known(a=2, b=2, c=2, d=1)
    assert top_idf("c b a d", known, 2) == "c d"
    assert top_idf("a b c", known, 2) == "a b"


def test_unknown_terms_are_left_out() -> None:
    assert top_idf("ghost file ghost", Known(file=3), 2) == "file"
    assert top_idf("ghost", Known(file=3)) == ""
    assert top_idf("", Known(file=3)) == ""


def test_terms_are_counted_once_a_document() -> None:
    documents = [
        Document("a", "Tax", "tax tax file"),  # title and text are one document
        Document("b", "", "TAX 예산을"),
        Document("c", "", ""),
    ]
    terms = CollectionTerms(Collection.from_documents("c", documents))
    assert terms.document_frequency(["tax", "file", "예산", "산을", "ghost"]) == [2, 1, 1, 1, 0]
    assert terms.analyse("Tax 예산") == ["tax", "예산"]
    assert top_idf("the tax file of 예산 공고", terms) == "tax file 예산"


def test_another_analyzer_can_be_given() -> None:
    documents = Collection.from_documents("c", [Document("a", "", "A-1 b")])
    terms = CollectionTerms(documents, str.split)
    assert terms.document_frequency(["A-1", "a", "b"]) == [1, 0, 1]


QUERIES = [
    Query("q1", "I have a file. open it", reference="open file"),
    Query("q2", "ghost"),
    Query("q3", "?", reference=" "),
]


def test_every_system_answers_every_query() -> None:
    known = Known(file=1, open=2)
    made = {name: rewrites(name, QUERIES, known) for name in SYSTEMS}
    assert made["raw"] == dict.fromkeys(("q1", "q2", "q3"), Rewrite(None))
    assert made["last_sentence"] == {
        "q1": Rewrite("open it"),
        "q2": Rewrite("ghost"),
        "q3": Rewrite(None, "no_sentence"),
    }
    assert made["top_idf"] == {
        "q1": Rewrite("open"),  # "file." is another word to this analysis
        "q2": Rewrite(None, "no_known_term"),
        "q3": Rewrite(None, "no_known_term"),
    }
    assert made["reference"] == {
        "q1": Rewrite("open file"),
        "q2": Rewrite(None, "no_reference"),
        "q3": Rewrite(None, "no_reference"),
    }


def test_an_unknown_system_is_named() -> None:
    with pytest.raises(UnknownSystem, match=r"'hyde'; there are: raw, last_sentence, question"):
        rewrites("hyde", QUERIES, Known())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("The mail is down. How do I sort? Jo waits.", "How do I sort?"),
        ("Which one?! 3.5? fine", "Which one?! 3.5?"),
        ("기차는 늦다. 예산은 어디에 있나요? 고맙습니다.", "예산은 어디에 있나요?"),
        ("메일이 안 된다。どうすれば？はい。", "どうすれば？"),
        ("Nothing is asked here.", ""),
        ("? ?", ""),
        ("see ?x=1 for it", ""),
    ],
)
def test_the_sentences_with_a_question_mark(text: str, asked: str) -> None:
    assert question(text) == asked
