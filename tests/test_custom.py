"""Engines in Python: every form of a hit, the checks at the start, counts, fingerprint."""

import logging
from typing import Any

import pytest
from pydantic import ValidationError

from retrievers import build_retriever, settings_class
from retrievers.base import CacheInfo, Hit, PermanentSearchError
from retrievers.custom import CustomEngineError, CustomRetriever, CustomSettings
from rewards import RewardPanel, RewardSettings
from tests.tiny_corpus import Corpus

CORPUS = Corpus(["rain and wind", "sun", "rain"])


def custom(name: str, /, *, options: dict[str, Any] | None = None, **arguments: Any) -> Any:
    chosen = {"path": f"tests.own_engines:{name}", "arguments": arguments, **(options or {})}
    return CustomRetriever(CORPUS, CustomSettings.model_validate(chosen))


@pytest.mark.parametrize(
    ("form", "scores"),
    [
        ("pairs", (1.0, 5.0)),
        ("lists", (1.0, 5.0)),
        ("dicts", (1.0, 5.0)),
        ("objects", (1.0, 5.0)),
        ("generator", (1.0, 5.0)),
        ("ids", (-1.0, -2.0)),
        ("dicts without score", (-1.0, -2.0)),
        ("one missing", (-1.0, -2.0)),
    ],
)
def test_every_form_of_a_hit_in_the_engines_own_order(
    form: str, scores: tuple[float, float]
) -> None:
    expected = [Hit("d2", scores[0]), Hit("d0", scores[1])]
    assert custom("Engine", form=form).search(["a", "", "b"], 5) == [expected, [], expected]


def test_it_is_asked_for_distinct_texts_and_at_least_the_depth() -> None:
    retriever = custom("Engine", options={"depth": 7, "probe": False})
    assert len(retriever.search(["a", "a", "b"], 1)[0]) == 1
    assert retriever.engine.calls == [(["a", "b"], 7)]
    assert retriever.cache_info() == CacheInfo(hits=1, misses=2, size=2)


def test_a_document_counts_once() -> None:
    retriever = custom("Engine", found=[["d1", 3], ["d0", 2], ["d1", 1]])
    assert retriever.search(["a"], 5) == [[Hit("d1", 3.0), Hit("d0", 2.0)]]


def test_the_collection_is_given_to_those_that_want_it() -> None:
    retriever = custom("Reader", suffix="!")
    assert [[hit.id for hit in hits] for hits in retriever.search(["rain", "sun!"], 5)] == [
        ["d0", "d2"],
        ["d1"],
    ]


def test_a_function_may_make_the_engine() -> None:
    assert len(custom("make", form="ids").search(["a"], 5)[0]) == 2


def test_decomposed_ids_are_the_collections() -> None:
    class Korean(Corpus):
        ids = ["가", "나", "다"]  # noqa: RUF012

    chosen = CustomSettings(
        path="tests.own_engines:Engine", arguments={"found": [["\u1100\u1161", 1]]}
    )
    retriever = CustomRetriever(Korean(CORPUS.all_texts), chosen)
    assert retriever.search(["a"], 1) == [[Hit("가", 1.0)]]
    assert retriever.answers.unknown == 0


@pytest.mark.parametrize(("unknown", "kept"), [("keep", ["x", "d1"]), ("drop", ["d1"])])
def test_unknown_ids(unknown: str, kept: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        retriever = custom("Engine", options={"unknown": unknown}, found=[["x", 2], ["d1", 1]])
        assert [hit.id for hit in retriever.search(["a"], 5)[0]] == kept
    assert (retriever.answers.unknown, retriever.answers.hits) == (3, 6)  # two of the probe
    assert "custom: 2 of the 4 hits so far are no document of the collection" in caplog.text
    assert len(caplog.records) == 1


def test_whole_numbers_are_ids() -> None:
    retriever = custom("Engine", form="numbers")
    assert [hit.id for hit in retriever.search(["a"], 5)[0]] == ["2", "0"]


# -- the checks at the start ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Absent", {}, r"'tests.own_engines:Absent' cannot be imported .*PYTHONPATH"),
        ("constant", {}, "is 5, which cannot be called"),
        ("Engine", {"colour": 1}, "called with colour, raised TypeError"),
        ("Nothing", {}, r"gives Nothing, which has no method `search\(queries, k\)`"),
        ("Asynchronous", {}, "search is asynchronous"),
        ("OneQuery", {}, r"raised TypeError.*take a list of texts and a number"),
        ("Raises", {}, r"search\(\['rain and wind', 'rain'\], 3\) raised RuntimeError\('down'\)"),
        ("Flat", {}, "returned 3 lists for 2 queries; it has to return one list a query"),
        ("Engine", {"form": "none"}, "returned None for one query; it has to be a list"),
        ("Engine", {"form": "text"}, "returned 'd0' for one query; it has to be a list"),
        ("Engine", {"form": "mapping"}, "for one query; it has to be a list of hits"),
        ("Engine", {"form": "triples"}, r"a hit is \('d2', 1, 0\); give an id, \(id, score\)"),
        ("Engine", {"form": "swapped"}, "a hit has the score 'd2'"),
        ("Engine", {"form": "nan"}, "a hit has the score nan"),
        ("Engine", {"found": [["", 1]]}, "a hit has the id ''"),
        ("Engine", {"found": [[None, 1]]}, "a hit has the id None"),
    ],
)
def test_what_cannot_be_used_is_named_at_the_start(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(CustomEngineError, match=message):
        custom(name, **arguments)


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(CustomEngineError, match="'no_such_module:E' cannot be imported"):
        CustomRetriever(CORPUS, CustomSettings(path="no_such_module:E"))


@pytest.mark.parametrize("path", ["module.Class", "a:", ":b", "a b:c", "a:b.c", "1a:b"])
def test_a_path_is_module_and_class(path: str) -> None:
    with pytest.raises(ValidationError, match="path"):
        CustomSettings(path=path)


def test_a_slip_later_on_is_permanent() -> None:
    retriever = custom("Engine")
    retriever.engine.form = "none"
    with pytest.raises(PermanentSearchError, match="it has to be a list of hits"):
        retriever.search(["a"], 1)


def test_what_the_engine_raises_comes_through() -> None:
    retriever = custom("Raises", options={"probe": False})
    with pytest.raises(RuntimeError, match="down"):
        retriever.search(["a"], 1)


# -- as a backend ---------------------------------------------------------------------------------


def test_the_fingerprint_is_path_arguments_and_version() -> None:
    first = custom("Engine", form="ids").fingerprint
    assert custom("Engine", form="ids", options={"probe": False}).fingerprint == first
    assert custom("make", form="ids").fingerprint != first
    assert custom("Engine", form="pairs").fingerprint != first
    assert custom("Engine", form="ids", options={"version": "2"}).fingerprint != first


def test_it_is_a_backend_like_the_others() -> None:
    chosen = settings_class("custom").model_validate({"path": "tests.own_engines:Engine"})
    assert build_retriever("custom", chosen, CORPUS).search(["a"], 1) == [[Hit("d2", 1.0)]]


def test_as_the_reward() -> None:
    settings = RewardSettings.model_validate({"backends": "custom", "failure_penalty": 0})
    (function,) = RewardPanel({"custom": custom("Engine")}, settings).functions
    # d0 is at rank 2: 1 / log2(3)
    relevant = [[{"id": "d0", "grade": 1.0}]]
    found = function(completions=["x"], query_id=["q"], query=["raw"], relevant=relevant)
    assert found == pytest.approx([0.63093], abs=1e-5)
