"""`rlqr eval` on the tiny collection: what it writes, and that others come to the same."""

import json
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import RR, R, nDCG

from retrievers.pages import PageSettings
from rewriter.records import read_records
from rewriter.report import write as write_report
from tests import tiny
from tests.eval_results import RAW, evaluated

close = pytest.approx


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A short training, whose end compares with a prompt too."""
    folder = tmp_path_factory.mktemp("trained")
    systems = ["raw", "keywords", "untrained"]
    return tiny.train_tiny(folder, trainer={"max_steps": 2}, evaluation={"systems": systems})


def test_a_result_folder(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "my rewrites.jsonl"
    rows = [{"query_id": "q8", "rewrite": "iota"}, {"query_id": "q9", "rewrite": None}]
    mine.write_text("".join(json.dumps(row) + "\n" for row in rows))
    systems = "raw,untrained,hyde,query2doc,keywords,last_sentence,top_idf,reference"
    result = evaluated(
        tmp_path,
        "--systems",
        f"{systems},file:{mine}",
        "--checkpoint",
        str(run.path),
        str(run.best),
        "--baseline",
        "reference",
        "--mteb",
    )
    names = [*systems.split(","), "my-rewrites", "run", "run-2"]
    assert {path.name for path in result.iterdir()} == {
        "records.jsonl",
        "result.json",
        "facts.json",
        "diagnostics.json",
        "documents.jsonl",
        "qrels.trec",
        "runs",
        "cache",
        "mteb",
    }
    found = tiny.read(result / "result.json")["lexical"]
    assert list(found) == names
    assert found["raw"]["ndcg@3"] == {"mean": RAW, "low": RAW, "high": RAW, "n": 2}
    assert found["reference"]["ndcg@3"]["mean"] == 1
    # q8 found at once, q9 as its raw query: (1 + .63093) / 2, and counted.
    assert found["my-rewrites"]["ndcg@3"]["mean"] == close((1 + 0.63093) / 2, abs=1e-5)
    assert found["my-rewrites"]["fallbacks"] == 1
    assert found["raw"]["vs_reference"]["loss"] == 2
    assert found["reference"]["vs_raw"]["win"] == 2
    assert found["run"]["ndcg@3"] == found["run-2"]["ndcg@3"]  # one adapter, named twice
    records = read_records(result / "records.jsonl")
    assert [r.system for r in records] == [name for name in names for _ in range(2)]
    assert {path.name for path in (result / "runs").iterdir()} == {
        f"lexical.{name}.trec" for name in names
    }
    out = capsys.readouterr().out
    assert "lexical, 2 test queries" in out
    assert "HyDE passage" in out
    assert "p against raw, Holm-corrected for 10" in out


def test_a_training_ends_with_the_same_figures(run: Any) -> None:
    result = evaluated(
        run.path.parent, "--systems", "keywords,untrained", "--checkpoint", str(run.path)
    )
    here, there = (tiny.read(folder / "result.json")["lexical"] for folder in (result, run.path))
    assert list(there) == ["raw", "keywords", "untrained", "trained"]
    assert list(here) == ["raw", "keywords", "untrained", "run"]
    for one, other in zip(here.values(), there.values(), strict=True):
        assert one["ndcg@3"] == other["ndcg@3"]
        assert one["recall@5"] == other["recall@5"]


def test_a_batch_of_1_writes_what_a_batch_of_16_writes(run: Any, tmp_path: Path) -> None:
    tiny.save_collection(tmp_path / "collection", test=range(8, 10))
    texts = []
    for size in (1, 16):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "collection").symlink_to(tmp_path / "collection")
        result = evaluated(
            folder,
            "--systems",
            "untrained,keywords",
            "--split",
            "train",
            "--checkpoint",
            str(run.path),
            evaluation={"batch_size": size},
        )
        texts.append([record.text for record in read_records(result / "records.jsonl")])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 4 * 6


def test_outside_tools_give_the_means_of_the_result(tmp_path: Path) -> None:
    result = evaluated(tmp_path, "--systems", "raw,question,reference")
    tool: Any = ir_measures
    qrels = list(tool.read_trec_qrels(str(result / "qrels.trec")))
    for system, summary in tiny.read(result / "result.json")["lexical"].items():
        rows = list(tool.read_trec_run(str(result / "runs" / f"lexical.{system}.trec")))
        values = tool.calc_aggregate([nDCG @ 3, RR, R @ 5], qrels, rows)
        for key, measure in (("ndcg@3", nDCG @ 3), ("mrr", RR), ("recall@5", R @ 5)):
            assert values[measure] == close(summary[key]["mean"], abs=1e-9)


def test_facts_and_documents(tmp_path: Path) -> None:
    result = evaluated(tmp_path, "--systems", "raw,untrained")
    facts = tiny.read(result / "facts.json")
    assert facts["split"] == "test"
    assert facts["backends"]["lexical"]["settings"]["engine"] == "rank-bm25"
    assert facts["backends"]["lexical"]["index"] == {"size": 20, "blank": 0}
    assert facts["systems"]["raw"] == {"kind": "rule", "label": "raw query"}
    assert len(facts["systems"]["untrained"]["weights"]) == 64
    assert facts["systems"]["untrained"]["decoding"]["max_new_tokens"] == 8
    assert facts["config"]["reward"]["kind"] == "ndcg"
    assert "torch" in facts["versions"]
    documents = tiny.lines(result / "documents.jsonl")
    # Judged: d8 and d9. The raw queries find d7, d8 and d9; a rewrite may find more.
    assert {"id": "d8", "title": "", "text": "iota"} in documents
    assert {"d7", "d8", "d9"} <= {row["id"] for row in documents}


def test_samples_have_a_spread_and_headroom(tmp_path: Path) -> None:
    words = ["--systems", "untrained", "--split", "train"]
    result = evaluated(tmp_path, *words, evaluation={"samples": 4})
    (record, *_) = rows = [r for r in read_records(result / "records.jsonl") if r.samples]
    assert len(rows) == 6
    assert [len(row.samples) for row in rows] == [4] * 6
    assert len({sample.rewrite for row in rows for sample in row.samples}) > 4
    mean = sum(sample.metrics["ndcg@3"] for sample in record.samples) / 4
    assert record.metrics["ndcg@3"] == close(mean)
    summary = tiny.read(result / "result.json")["lexical"]["untrained"]
    assert summary["samples"] == 4
    assert summary["spread"]["ndcg@3"] > 0
    search = tiny.read(result / "diagnostics.json")["search"]["lexical"]
    assert search["untrained"]["samples"] == 4
    assert search["untrained"]["headroom"] >= search["untrained"]["mean"]
    assert search["raw"] == {
        "samples": 1,
        "mean": close(search["raw"]["headroom"]),
        "headroom": close(search["raw"]["mean"]),
        "always_hit": 1,
        "never_hit": 0,
    }
    assert (result / "runs" / "lexical.untrained.sample4.trec").is_file()
    other_place = ["--output", str(tmp_path / "again")]
    evaluated(tmp_path, *words, *other_place, evaluation={"samples": 4})
    one, other = (
        [r.samples for r in read_records(folder / "records.jsonl")]
        for folder in (result, tmp_path / "again")
    )
    assert one == other  # the same seed draws the same


def test_pages_reach_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny documents as rendered pages, without a page model."""
    style = PageSettings(source="text")
    monkeypatch.setattr("rewriter.evaluation.export.page_settings", lambda *_: style)
    result = evaluated(tmp_path, "--systems", "raw,reference")
    documents = {row["id"]: row for row in tiny.lines(result / "documents.jsonl")}
    assert (result / documents["d8"]["image"]).is_file()
    page = write_report(result).read_text(encoding="utf-8")
    assert "Pages are shown small for the 2 queries" in page
    monkeypatch.setattr("rewriter.evaluation.export.page_settings", lambda *_: None)
    evaluated(tmp_path, "--systems", "raw,reference")
    assert not (result / "pages").exists()
