"""BM25: its settings, and the index directory that goes with them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from retrievers.index import IndexDamaged, IndexMismatch
from retrievers.lexical import LexicalRetriever, LexicalSettings
from tests.lexical_engines import KOREAN, VARIANTS, build, found
from tests.tiny_corpus import Corpus

# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"variant": "bm25l"}, 'needs engine "bm25s"'),
        ({"delta": 0.5}, "has none"),
        ({"engine": "lucene"}, "rank-bm25"),
        ({"k1": 0}, "greater than 0"),
        ({"b": 1.5}, "less than or equal to 1"),
        ({"title_weight": -1}, "greater than or equal to 0"),
        ({"k2": 1}, "Extra inputs"),
        ({"analysis": {"stemmer_": "english"}}, "Extra inputs"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        LexicalSettings.model_validate(wrong)


def test_delta_s_default_depends_on_the_variant() -> None:
    plus = LexicalSettings(variant="bm25+")
    assert plus.formula().delta == 1.0
    assert LexicalSettings(variant="bm25l", engine="bm25s").formula().delta == 0.5
    assert LexicalSettings().formula().delta == 0.0
    assert plus.parts() == LexicalSettings(variant="bm25+", delta=1.0).parts()


def test_fingerprints_differ_with_whatever_changes_the_hits() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"engine": "bm25s"},
        {"variant": "okapi"},
        {"k1": 1.0},
        {"b": 0.1},
        {"title_weight": 3},
        {"analysis": {"cjk": "words"}},
    ]
    prints = {build(KOREAN, **change).fingerprint for change in changes}
    assert len(prints | {build(KOREAN[::-1]).fingerprint}) == len(changes) + 1


# -- the index directory --------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stored_index_gives_the_same_hits(tmp_path: Path, engine: str, variant: str) -> None:
    chosen: dict[str, Any] = {"engine": engine, "variant": variant}
    query = ["서울시의 예산을 공고"]
    fresh = build([*KOREAN, ""], **chosen)
    expected = fresh.search(query, 5)
    for _ in ("built", "opened"):
        stored = build([*KOREAN, ""], tmp_path / "index", **chosen)
        assert stored.search(query, 5) == expected != [[]]
        assert stored.fingerprint == fresh.fingerprint
        assert stored.blank == 1


def test_a_stored_bm25l_index(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"engine": "bm25s", "variant": "bm25l"}
    for _ in ("built", "opened"):
        stored = build(KOREAN, tmp_path / "index", **chosen)
        assert stored.search(["예산"], 5) == build(KOREAN, **chosen).search(["예산"], 5)


def test_opening_reads_no_document(tmp_path: Path, engine: str) -> None:
    class Sealed(Corpus):
        @property
        def fingerprint(self) -> str:
            return "sealed"

    class Unreadable(Sealed):
        def texts(self) -> Iterator[tuple[str, str]]:
            raise AssertionError("read again")

    chosen = LexicalSettings.model_validate({"engine": engine})
    LexicalRetriever(Sealed(KOREAN), chosen, tmp_path / "index")
    opened = LexicalRetriever(Unreadable(KOREAN), chosen, tmp_path / "index")
    assert found(opened, "날씨") == ["d2"]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"analysis": {"cjk": "words"}}, "analysis.cjk"),
        ({"analysis": {"stop_words": "english"}}, "analysis.stop_words"),
        ({"k1": 1.2}, "k1"),
        ({"b": 0.5}, "b"),
        ({"variant": "okapi"}, "variant"),
        ({"title_weight": 2}, "title_weight"),
    ],
)
def test_other_settings_are_refused_by_name(
    tmp_path: Path, engine: str, other: dict[str, Any], named: str
) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    with pytest.raises(IndexMismatch, match=rf"(?m)^  {named}: there"):
        build(KOREAN, tmp_path / "index", engine=engine, **other)


def test_the_other_engine_is_refused(tmp_path: Path) -> None:
    build(KOREAN, tmp_path / "index", engine="rank-bm25")
    with pytest.raises(IndexMismatch, match="engine: there 'rank-bm25', asked for 'bm25s'"):
        build(KOREAN, tmp_path / "index", engine="bm25s")


def test_another_version_of_the_library_is_refused(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    monkeypatch.setattr("retrievers.lexical.extra_version", lambda package, extra: "0.0.0")
    with pytest.raises(IndexMismatch, match=rf"versions\.{engine}: .*'0\.0\.0'"):
        build(KOREAN, tmp_path / "index", engine=engine)


def test_swapped_documents_are_refused(tmp_path: Path, engine: str) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    swapped = [KOREAN[1], KOREAN[0], *KOREAN[2:]]
    with pytest.raises(IndexMismatch, match="documents: there"):
        build(swapped, tmp_path / "index", engine=engine)
    assert found(build(swapped, engine=engine), "서울시 예산") == ["d1", "d0"]


def test_a_cut_file_is_refused(tmp_path: Path, engine: str) -> None:
    build(KOREAN, tmp_path / "index", engine=engine)
    largest = max((tmp_path / "index").glob("*.npy"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-8])
    with pytest.raises(IndexDamaged, match=largest.name):
        build(KOREAN, tmp_path / "index", engine=engine)
