"""A whole run, on a model of twenty thousand weights: what it logs and leaves."""

import logging
import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from rewriter import Rewriter
from rewriter.records import read_records
from rewriter.report.gather import gather
from rewriter.run_directory import RunDirectory
from tests import tiny

SYSTEMS = ["raw", "last_sentence", "question", "top_idf", "reference", "untrained", "trained"]


class Said(logging.Handler):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"


@pytest.fixture(scope="module")
def said() -> Iterator[Said]:
    handler = Said()
    logger = logging.getLogger("rewriter")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, said: Said) -> RunDirectory:
    """Four steps of two prompts, evaluated every two."""
    finished: RunDirectory = tiny.train_tiny(tmp_path_factory.mktemp("training"))
    return finished


def test_what_a_run_leaves(run: RunDirectory) -> None:
    assert {entry.name for entry in run.path.iterdir()} == {
        "config.yaml",
        "run.json",
        "metrics.jsonl",
        "evaluations.jsonl",
        "completions.jsonl",
        "checkpoints",
        "adapters",
        "best",
        "records.jsonl",
        "result.json",
        "documents.jsonl",
        "qrels.trec",
        "runs",
        "cost.json",
    }
    assert tiny.read(run.path / "cost.json").keys() == {"minutes", "peak_memory_gib"}
    backends = tiny.read(run.path / "run.json")["backends"]
    assert backends == {"lexical": {"size": 20, "blank": 0}}
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]  # few kernels are kept
    assert {entry.name for entry in run.checkpoints.glob("checkpoint-*")} == {
        "checkpoint-2",
        "checkpoint-4",
    }


def test_result_has_the_agreed_shape(run: RunDirectory) -> None:
    result = tiny.read(run.result)
    assert list(result) == ["lexical"]
    assert list(result["lexical"]) == SYSTEMS
    for system, summary in result["lexical"].items():
        for measure in ("ndcg@3", "mrr@10", "recall@10"):
            assert set(summary[measure]) == {"mean", "low", "high", "n"}
            assert summary[measure]["n"] == 2
            assert summary[measure]["low"] <= summary[measure]["mean"] <= summary[measure]["high"]
        if system != "raw":
            assert set(summary["vs_raw"]) == {"diff", "low", "high", "win", "tie", "loss"}
    # Every raw query puts its document in the second place: 1 / log2(3).
    assert result["lexical"]["raw"]["ndcg@3"]["mean"] == pytest.approx(0.63093, abs=1e-5)
    assert result["lexical"]["reference"]["ndcg@3"]["mean"] == 1


def test_every_figure_comes_from_records(run: RunDirectory) -> None:
    records = read_records(run.records)
    counted = Counter((record.system, record.query_id) for record in records)
    assert counted == {(system, query): 1 for system in SYSTEMS for query in ("q8", "q9")}
    result = tiny.read(run.result)
    for system in SYSTEMS:
        values = [one.metrics["ndcg@3"] for one in records if one.system == system]
        assert result["lexical"][system]["ndcg@3"]["mean"] == pytest.approx(sum(values) / 2)


def test_a_report_of_the_run_shows_documents_and_judgements(run: RunDirectory) -> None:
    source = gather(run.path)
    found = {hit.id for record in source.records for hit in record.hits[:10]}
    assert source.documents.keys() == found | {"d8", "d9"}
    assert source.documents["d8"].text == tiny.WORDS[8]
    assert (run.path / "qrels.trec").read_text() == "q8 0 d8 1\nq9 0 d9 1\n"
    exported = {path.name for path in (run.path / "runs").iterdir()}
    assert exported == {f"lexical.{system}.trec" for system in SYSTEMS}


def test_evaluations_stand_at_the_start_on_the_grid_and_at_the_end(run: RunDirectory) -> None:
    evaluations = tiny.lines(run.evaluations)
    assert [row["step"] for row in evaluations] == [0, 2, 4]
    assert all(row["n"] == 2 and row["score"] == row["lexical"]["ndcg@3"] for row in evaluations)


def test_every_step_is_logged_once_also_where_it_is_evaluated(run: RunDirectory) -> None:
    assert [row["step"] for row in tiny.steps(run)] == [1, 2, 3, 4]
    logged = [row["step"] for row in tiny.lines(run.metrics) if "eval_lexical_ndcg@3" in row]
    assert logged == [0, 2, 4]
    for row in tiny.steps(run):
        assert row["rewards/lexical_ndcg@3/mean"] is not None
        assert row["search/failures"] == 0


def test_completions_are_in_a_local_log(run: RunDirectory) -> None:
    rows = tiny.lines(run.completions(0))
    assert Counter(row["step"] for row in rows) == {1: 8, 2: 8, 3: 8, 4: 8}
    for row in rows:
        assert row["text"] == row["rewrite"] == (row["completion"].strip() or None)
        assert row["query"] == dict(_queries())[row["query_id"]]
        found = [hit[0] for hit in row["hits"].get("lexical", [])]
        gold = f"d{row['query_id'][1:]}"
        place = found.index(gold) + 1 if gold in found else math.inf
        assert row["rewards"]["lexical_ndcg@3"] == pytest.approx(1 / math.log2(place + 1))
    assert len({row["rewards"]["lexical_ndcg@3"] for row in rows}) > 1


def _queries() -> list[tuple[str, str]]:
    return [(f"q{n}", f"{tiny.WORDS[n - 1]} {tiny.WORDS[n]}") for n in range(10)]


def test_the_table_and_the_places_are_shown(run: RunDirectory, said: Said) -> None:
    assert "lexical, 2 held-out queries" in said.text
    assert "raw query" in said.text
    assert "trained rewriter (step" in said.text
    for path in (run.best, run.records, run.result, run.completions(0)):
        assert str(path) in said.text


def test_the_best_adapter_loads_with_peft_alone(run: RunDirectory, tmp_path: Path) -> None:
    policy = run.path.parent / "policy"
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(policy), str(run.best))
    tokenizer = AutoTokenizer.from_pretrained(run.best)
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": "theta iota"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    output = model.generate(**inputs, max_new_tokens=8, do_sample=False)
    text = tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    recorded = [one for one in read_records(run.records) if one.system == "trained"]
    assert text == recorded[0].rewrite
    assert Rewriter.from_pretrained(run.best).rewrite(["theta iota"]) == [text]
