"""`rlqr compare`: refused where more than the system differs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import Hit
from retrievers.identity import MissingFileError
from rewriter import cli
from rewriter.evaluation.differences import compare
from rewriter.evaluation.facts import differences
from rewriter.evaluation.judging import EvaluationError
from rewriter.records import Record, read_records, write_records

close = pytest.approx

FACTS: dict[str, Any] = {
    "collection": "c",
    "documents": "aa",
    "split": "test",
    "queries": "bb",
    "qrels": "cc",
    "measures": ["ndcg@3"],
    "depth": 100,
    "primary": None,
    "subset": None,
    "drop_query_id": False,
    "backends": {
        "lexical": {"fingerprint": "dd", "settings": {"k1": 1.5, "analysis": {"stem": None}}},
        "multimodal": {"fingerprint": "ee", "settings": {"dpi": 144, "max_tokens": 768}},
    },
    "systems": {"trained": {"weights": "1"}},
    "versions": {"torch": "2.13.0"},
    "config": {"output": "runs/a"},
}


def folder(place: Path, facts: dict[str, Any], systems: dict[str, list[float]]) -> Path:
    """A result folder: system → NDCG@3 of q0, q1, …"""
    place.mkdir()
    (place / "facts.json").write_text(json.dumps(facts))
    records = [
        Record(
            system=system,
            backend="lexical",
            split="test",
            query_id=f"q{number}",
            origin="human",
            query="text",
            rewrite=None,
            failure=None,
            text="text",
            hits=(Hit("a", 1.0),),
            grades=(0.0,),
            metrics={"ndcg@3": value},
        )
        for system, values in systems.items()
        for number, value in enumerate(values)
    ]
    write_records(records, place / "records.jsonl")
    return place


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return folder(tmp_path / "a", FACTS, {"raw": [0.5, 0.0, 1.0], "one": [0.0, 0.0, 1.0]})


def changed(**facts: Any) -> dict[str, Any]:
    return FACTS | facts


def backends(name: str, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(FACTS["backends"]))
    found[name]["settings"] |= settings
    return {"backends": found}


@pytest.mark.parametrize(
    ("facts", "key"),
    [
        ({"documents": "ab"}, "documents"),
        ({"qrels": "cd"}, "qrels"),
        ({"split": "validation"}, "split"),
        (backends("lexical", analysis={"stem": "english"}), "settings.analysis.stem"),
        (backends("lexical", model="other"), "backends.lexical.settings.model"),
        (backends("lexical", query_prompt="query: "), "settings.query_prompt"),
        (backends("multimodal", dpi=72), "backends.multimodal.settings.dpi"),
        (backends("multimodal", max_tokens=1024), "settings.max_tokens"),
        ({"versions": {"torch": "2.14.0"}}, "versions.torch"),
        ({"depth": 10}, "depth"),
    ],
)
def test_what_differs_besides_the_system_is_refused(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], facts: Any, key: str
) -> None:
    second = folder(tmp_path / "b", changed(**facts), {"raw": [0.5, 0.0, 1.0]})
    with pytest.raises(SystemExit) as end:
        cli.main(["compare", str(first), str(second)])
    assert end.value.code == 1
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if key in line]
    assert "NDCG@3" not in out
    assert "1 facts differ besides the system" in err
    cli.main(["compare", str(first), str(second), "--anyway"])
    out = capsys.readouterr().out
    assert key in out
    assert "lexical  raw: NDCG@3 0.500 → 0.500" in out


def test_systems_and_output_may_differ(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = changed(systems={"trained": {"weights": "2"}}, config={"output": "runs/b"})
    systems = {"raw": [0.5, 0.0, 1.0], "two": [1.0, 0.0, 1.0]}
    second = folder(tmp_path / "b", facts, systems)
    cli.main(["compare", str(first), str(second)])
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "nothing differs besides the system"
    assert out[1].startswith("lexical  raw: NDCG@3 0.500 → 0.500, +0.000 [")
    # "one" and "two" are each alone in their folder: 1/3 against 2/3.
    assert out[2].startswith("lexical  one → two: NDCG@3 0.333 → 0.667, +0.333 [")
    assert "win/tie/loss 1/2/0" in out[2]
    cli.main(["compare", str(first), str(second), "--systems", "raw,two"])
    assert "raw → two: NDCG@3 0.500 → 0.667" in capsys.readouterr().out


def test_red_on_a_terminal_only(
    first: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = folder(tmp_path / "b", changed(split="train"), {"raw": [0.5, 0.0, 1.0]})
    words = ["compare", str(first), str(second), "--anyway"]
    cli.main(words)
    assert "\033[31m" not in capsys.readouterr().out
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    cli.main(words)
    assert "\033[31mdiffers: split: test | train\033[0m" in capsys.readouterr().out


def test_queries_of_one_folder_are_left_out_and_counted(first: Path, tmp_path: Path) -> None:
    second = folder(tmp_path / "b", FACTS, {"raw": [1.0, 1.0]})
    found = compare(first, second, samples=100)
    (made,) = found.pairs
    assert (made.found.n, made.found.diff) == (2, close((0.5 + 1.0) / 2))
    assert made.left_out == 1


def test_each_pair_counts_its_own_queries(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = {"raw": [1.0, 1.0], "one": [1.0, 1.0, 1.0]}
    second = folder(tmp_path / "b", FACTS, systems)
    assert [pair.left_out for pair in compare(first, second, samples=100).pairs] == [1, 0]
    cli.main(["compare", str(first), str(second)])
    out = capsys.readouterr().out.splitlines()
    assert out[2] == "  1 queries left out, counted in one folder only"
    assert len(out) == 4


def test_what_is_not_compared_is_named(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lexical_only = {"lexical": FACTS["backends"]["lexical"]}
    systems = {name: [0.5, 0.0, 1.0] for name in ("raw", "two", "three")}
    second = folder(tmp_path / "b", changed(backends=lexical_only), systems)
    records = read_records(first / "records.jsonl")
    more = [replace(record, backend="multimodal") for record in records]
    write_records([*records, *more], first / "records.jsonl")
    cli.main(["compare", str(first), str(second)])  # alike where both have results
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "nothing differs besides the system"
    assert [line for line in out if "not compared" in line] == [
        f"backend multimodal: in {first} only, not compared",
        f"system one: in {first} only, not compared; give --systems A,B",
        f"system two: in {second} only, not compared; give --systems A,B",
        f"system three: in {second} only, not compared; give --systems A,B",
    ]
    cli.main(["compare", str(first), str(second), "--systems", "one,two"])
    assert "system three" not in capsys.readouterr().out


def test_how_a_system_was_made_is_listed(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def made(base: str, adapter: str, template: str, tokens: int) -> dict[str, Any]:
        decoding = {"max_new_tokens": tokens, "temperature": None}
        weights = {"weights": f"{base}+{adapter}", "prompt": {"template": template}}
        return {"kind": "checkpoint", "label": adapter, **weights, "decoding": decoding}

    values = {"raw": [0.5, 0.0, 1.0], "demo": [0.0, 0.0, 1.0]}
    facts = [{"raw": {"kind": "rule"}, "demo": made("b1", "a1", "{query}", 64)}]
    facts += [{"raw": {"kind": "rule"}, "demo": made("b2", "a2", "Q: {query}", 96)}]
    facts += [{"raw": {"kind": "rule"}, "demo": made("b1", "a2", "{query}", 64)}]
    one, other, alike = (
        folder(tmp_path / name, changed(systems=some), values)
        for name, some in zip("xyz", facts, strict=True)
    )
    cli.main(["compare", str(one), str(other)])
    out = capsys.readouterr().out.splitlines()
    assert out[3:] == [
        "  made otherwise: model: b1 | b2",
        "  made otherwise: prompt.template: {query} | Q: {query}",
        "  made otherwise: decoding.max_new_tokens: 64 | 96",
    ]
    cli.main(["compare", str(one), str(alike)])  # the adapter alone is what is compared
    assert "made otherwise" not in capsys.readouterr().out


def test_facts_that_are_missing_differ() -> None:
    lacking = {key: value for key, value in FACTS.items() if key != "qrels"}
    assert list(differences(FACTS, lacking)) == [("qrels", "cc", "absent")]


def test_facts_of_an_index_are_no_difference() -> None:
    """The fingerprint is; and an evaluation of an earlier release has none of them."""
    backends = {n: {**one, "index": {"size": 3}} for n, one in FACTS["backends"].items()}
    assert not list(differences(FACTS, {**FACTS, "backends": backends}))


def test_what_cannot_be_compared(first: Path, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"facts\.json is not there"):
        compare(first, tmp_path)
    second = folder(tmp_path / "b", FACTS, {"raw": [1.0, 1.0, 1.0]})
    with pytest.raises(EvaluationError, match="no system 'two'; there are: raw"):
        compare(first, second, ("one", "two"))
    with pytest.raises(EvaluationError, match=f"{second}: no system 'two'"):
        compare(first, second, ("one", "two"))
    (second / "records.jsonl").unlink()
    with pytest.raises(MissingFileError, match=r"no records at .*b/records\.jsonl"):
        compare(first, second)
    (second / "facts.json").write_text("{")
    with pytest.raises(EvaluationError, match="not JSON"):
        compare(first, second)
