"""Reciprocal rank fusion: literal lists, hand-computed scores, the keyword gate, the parts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import retrievers
from retrievers import build_retriever, build_retrievers, part_names
from retrievers.base import Documents, Hit, Retriever, SearchError
from retrievers.hybrid import HybridRetriever, HybridSettings, fuse
from retrievers.lexical import LexicalRetriever, LexicalSettings
from rewriter.config import Config
from tests.tiny_corpus import Corpus

CORPUS = Corpus(["apple pear plum", "apple", "sea sand", "sky", "grass"])  # d0 to d4


class Listed(Retriever):
    """Finds for every query what it was told to; "nothing" finds nothing."""

    def __init__(self, ids: Sequence[str], backend: str = "semantic") -> None:
        super().__init__()
        self.backend = self.fingerprint = backend
        self.ids = ids
        self.depths: list[int] = []

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        self.depths.append(k)
        if "broken" in queries:
            raise SearchError(f"{self.backend} is down")
        found = [Hit(identity, 1.0) for identity in self.ids[:k]]
        return [[] if query == "nothing" else found for query in queries]


class Covering(Listed):
    """Says that d2 alone holds half of any query's terms, and the others a third."""

    def coverage(self, queries: Sequence[str], hits: Sequence[Sequence[Hit]]) -> list[list[float]]:
        return [[0.5 if hit.id == "d2" else 1 / 3 for hit in found] for found in hits]


def hybrid(parts: Mapping[str, Retriever], **given: Any) -> HybridRetriever:
    chosen = HybridSettings.model_validate({"backends": list(parts), **given})
    return HybridRetriever(CORPUS, chosen, parts=parts)


def two(first: str, second: str, **given: Any) -> HybridRetriever:
    """Fuses two rankings, written "d0 d1"."""
    parts = {
        "lexical": Listed(first.split(), "lexical"),
        "semantic": Listed(second.split(), "semantic"),
    }
    return hybrid(parts, **given)


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names used here are backends, whatever else is installed."""
    for name in ("semantic", "multimodal"):
        monkeypatch.setitem(retrievers.RETRIEVERS, name, ("tests.test_hybrid", "Made", "Names"))


class Made(Listed):
    """Stands for a backend with an index: built from a collection."""

    built: list[Path | None] = []  # noqa: RUF012 - counts over all instances

    def __init__(self, collection: Documents, settings: Any, index_dir: Path | None) -> None:
        super().__init__(["d3", "d0"])
        self.built.append(index_dir)


def ids(results: list[list[Hit]]) -> list[list[str]]:
    return [[hit.id for hit in hits] for hits in results]


# -- the formula ----------------------------------------------------------------------------------


def test_fusion_by_hand() -> None:
    (hits,) = two("d0 d1 d2", "d2 d0 d3").search(["q"], 9)
    # d0: 1/(20+1) + 1/(20+2) = .0930736   d2: 1/(20+3) + 1/(20+1) = .0910973
    # d1: 1/(20+2) = .0454545              d3: 1/(20+3) = .0434783
    assert [hit.id for hit in hits] == ["d0", "d2", "d1", "d3"]
    assert [hit.score for hit in hits] == pytest.approx(
        [0.0930736, 0.0910973, 0.0454545, 0.0434783], abs=1e-7
    )


def test_weights_by_hand() -> None:
    weights = {"lexical": 0.5, "semantic": {"weight": 2}}
    (hits,) = two("d0 d1", "d1 d0", backends=weights, rrf_k=60).search(["q"], 9)
    # d1: .5/62 + 2/61 = .0408514   d0: .5/61 + 2/62 = .0404548
    assert [hit.id for hit in hits] == ["d1", "d0"]
    assert [hit.score for hit in hits] == pytest.approx([0.0408514, 0.0404548], abs=1e-7)


def test_an_id_counts_once_at_its_best_rank() -> None:
    assert fuse([["a", "a", "b"]], [1.0], 20) == {"a": 1 / 21, "b": 1 / 22}


def test_ties_stand_in_corpus_order() -> None:
    assert ids(two("d4 d1", "d1 d4").search(["q"], 9)) == [["d1", "d4"]]
    assert ids(two("d4", "d2").search(["q"], 9)) == [["d2", "d4"]]


def test_equal_terms_in_another_order_tie() -> None:
    lists = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    assert len(set(fuse(lists, [1.0, 1.0, 1.0], 20).values())) == 1


def test_ids_outside_of_the_collection_come_after_the_others() -> None:
    assert ids(two("x2 x1", "d4").search(["q"], 9)) == [["d4", "x2", "x1"]]


def test_one_ranking_alone_is_its_own_order() -> None:
    assert ids(two("d3 d1 d2", "").search(["q", "nothing"], 2)) == [["d3", "d1"], []]


def test_each_ranking_counts_to_its_depth_whatever_k_is() -> None:
    made = two("d0 d1 d2", "d2 d1 d0", depth=2, backends={"lexical": {"depth": 1}, "semantic": {}})
    # lexical: d0; semantic: d2, d1
    assert ids(made.search(["q"], 9)) == [["d0", "d2", "d1"]]
    assert ids(made.search(["q"], 1)) == [["d0"]]
    assert [part.depths for part in made.parts.values()] == [[1], [2]]  # type: ignore[attr-defined]


def test_a_part_that_fails_fails_the_search() -> None:
    with pytest.raises(SearchError, match="lexical is down"):
        two("d0", "d1").search(["broken"], 1)


# -- the keyword gate -----------------------------------------------------------------------------


def gated(ranking: str, **given: Any) -> HybridRetriever:
    parts = {"lexical": LexicalRetriever(CORPUS), "semantic": Listed(ranking.split())}
    return hybrid(parts, gate=True, **given)


def test_the_gate_opens_for_half_of_the_terms() -> None:
    # d0 and d1 hold 1 of 2 terms
    assert set(ids(gated("d3").search(["apple unheard"], 9))[0]) == {"d0", "d1", "d3"}


def test_the_gate_shuts_below() -> None:
    assert ids(gated("d3").search(["apple unheard unseen"], 9)) == [["d3"]]
    # d0 holds 3 of 5
    assert set(ids(gated("d3").search(["apple pear plum un seen"], 9))[0]) == {"d0", "d1", "d3"}


def test_the_gate_stays_open_where_nothing_else_was_found() -> None:
    assert set(ids(gated("").search(["apple unheard unseen"], 9))[0]) == {"d0", "d1"}


def test_the_gate_is_each_querys_own() -> None:
    found = ids(gated("d3").search(["apple", "apple un seen", "zzz"], 9))
    assert [set(one) for one in found] == [{"d0", "d1", "d3"}, {"d3"}, {"d3"}]


@pytest.mark.parametrize(("hits", "found"), [(2, ["d4"]), (3, ["d0", "d4", "d1", "d2"])])
def test_the_gate_looks_at_the_first_hits_only(hits: int, found: list[str]) -> None:
    parts = {"lexical": Covering(["d0", "d1", "d2"], "lexical"), "semantic": Listed(["d4"])}
    assert ids(hybrid(parts, gate=True, gate_hits=hits).search(["q"], 9)) == [found]


@pytest.mark.parametrize(("name", "value"), [("gate_hits", 5), ("gate_share", 0.7)])
def test_settings_of_a_gate_that_is_off(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}, and the gate is off"):
        HybridSettings.model_validate({name: value})
    assert getattr(HybridSettings.model_validate({name: value, "gate": True}), name) == value


def test_the_gate_needs_a_lexical_part_that_tells_coverage() -> None:
    with pytest.raises(ValidationError, match="`backends` has none"):
        HybridSettings(backends=["semantic", "multimodal"], gate=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Listed has none"):
        two("d0", "d1", gate=True)


# -- settings and parts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backends": ["lexical"]}, "one ranking alone is not fused"),
        ({"backends": ["lexical", "lexical"]}, "names a backend twice"),
        ({"backends": ["lexical", "semantik"]}, "no backend 'semantik' to fuse; there are: custom"),
        ({"backends": ["lexical", "hybrid"]}, "no backend 'hybrid' to fuse"),
        ({"backends": "lexical"}, "name two backends or more"),
        ({"backends": {"lexical": 0, "semantic": 1}}, "greater than 0"),
        ({"backends": {"lexical": {"wieght": 1}, "semantic": 1}}, "Extra inputs"),
        ({"rrf_k": -1}, "greater than or equal to 0"),
        ({"depth": 0}, "greater than or equal to 1"),
    ],
)
def test_faults_of_the_settings(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        HybridSettings.model_validate(given)


def test_defaults() -> None:
    assert part_names(HybridSettings()) == ("lexical", "semantic")
    assert HybridSettings().rrf_k == 20
    assert part_names(LexicalSettings()) == ()
    read = HybridSettings.model_validate(HybridSettings().model_dump(mode="json"))
    assert read == HybridSettings()


def test_the_fingerprint_holds_settings_and_parts() -> None:
    first = two("d0", "d1")
    assert two("d0", "d1").fingerprint == first.fingerprint
    assert two("d0", "d1", rrf_k=60).fingerprint != first.fingerprint
    parts = {"lexical": Listed([], "other"), "semantic": Listed([])}
    assert hybrid(parts).fingerprint != first.fingerprint


def test_parts_are_built_once_and_shared(tmp_path: Path) -> None:
    Made.built.clear()
    chosen = {"lexical": LexicalSettings(), "semantic": None, "hybrid": HybridSettings()}
    built = build_retrievers(["hybrid", "semantic"], chosen.__getitem__, CORPUS, tmp_path)
    assert list(built) == ["hybrid", "semantic"]
    made = built["hybrid"]
    assert isinstance(made, HybridRetriever)
    assert made.parts["semantic"] is built["semantic"]
    assert Made.built == [tmp_path / "semantic"]
    assert (tmp_path / "lexical" / "manifest.json").is_file()
    assert set(ids(made.search(["apple"], 9))[0]) == {"d0", "d1", "d3"}


def test_missing_parts_and_circles() -> None:
    with pytest.raises(ValueError, match=r"made of lexical, semantic, and `parts` lacks semantic"):
        build_retriever("hybrid", HybridSettings(), CORPUS, parts={"lexical": Listed([])})
    with pytest.raises(ValueError, match="lacks semantic, which the settings name"):
        HybridRetriever(CORPUS, parts={"lexical": Listed([])})

    class Circle:
        part_names = ("semantic",)

    with pytest.raises(ValueError, match="made of itself: lexical → semantic → semantic"):
        build_retrievers(["lexical"], lambda name: Circle(), CORPUS)


# -- in the configuration -------------------------------------------------------------------------


def config(**given: Any) -> Config:
    return Config.model_validate({"model": {"name": "x"}, **given})


def test_parts_are_in_the_resolved_configuration() -> None:
    custom = {"path": "a.b:C"}
    made = config(
        reward={"backends": "hybrid"},
        retrievers={"hybrid": {"backends": ["lexical", "custom"]}, "custom": custom},
    )
    assert made.searched() == ("hybrid", "lexical", "custom")
    assert list(made.dump()["retrievers"]) == ["custom", "hybrid", "lexical"]


def test_a_part_without_defaults_has_to_be_given() -> None:
    with pytest.raises(ValidationError, match=r"retrievers\.custom\.path"):
        config(
            reward={"backends": "hybrid"},
            retrievers={"hybrid": {"backends": ["lexical", "custom"]}},
        )
    with pytest.raises(ValidationError, match=r"retrievers\.http\.url"):
        config(reward={"backends": "http"})
