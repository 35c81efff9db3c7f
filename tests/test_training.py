"""A whole run, on a model of twenty thousand weights: what it trains, logs, chooses and leaves."""

import logging
import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from retrievers.base import PermanentSearchError, SearchError
from retrievers.lexical import LexicalRetriever
from retrievers.models import ModelError
from rewriter import Rewriter, result, training
from rewriter.evaluation import EvaluationError
from rewriter.preflight import PreflightError
from rewriter.records import read_records
from rewriter.report.gather import gather
from rewriter.run_directory import RunDirectory
from rewriter.yaml_source import ConfigError
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


def test_the_best_is_the_best_evaluation_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late collapse: held-out NDCG@3 .40, .55, .10 while the training reward rises."""
    _script(monkeypatch, [0.40, 0.55, 0.10])
    run = tiny.train_tiny(tmp_path)
    manifest = tiny.read(run.best / "manifest.json")
    assert manifest["step"] == 2
    best, second = (load_file(_weights(f)) for f in (run.best, run.checkpoints / "checkpoint-2"))
    last = load_file(_weights(run.checkpoints / "checkpoint-4"))
    assert all(torch.equal(best[name], second[name]) for name in best)
    assert not all(torch.equal(best[name], last[name]) for name in best)


def test_of_equal_evaluations_the_first_is_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _script(monkeypatch, [0.4, 0.5, 0.5])
    assert _step(tiny.train_tiny(tmp_path)) == 2


def test_patience_stops_where_a_checkpoint_can_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _script(monkeypatch, [0.5, 0.4, 0.5, 0.9])
    evaluation = {"patience": 2}
    trainer = {"max_steps": 20, "save_steps": 20}
    run = tiny.train_tiny(tmp_path, evaluation=evaluation, trainer=trainer)
    assert [row["step"] for row in tiny.lines(run.evaluations)] == [0, 2, 4]
    assert (run.checkpoints / "checkpoint-4" / "trainer_state.json").is_file()
    assert _step(run) == 0
    # Resumed, it is still over; with more patience it goes on.
    tiny.train_tiny(tmp_path, resume=True, evaluation=evaluation, trainer=trainer)
    assert [row["step"] for row in tiny.steps(run)] == [1, 2, 3, 4]
    more = {"patience": 3}
    tiny.train_tiny(tmp_path, resume=True, evaluation=more, trainer={**trainer, "max_steps": 6})
    assert [row["step"] for row in tiny.steps(run)] == [1, 2, 3, 4, 5, 6]
    assert _step(run) == 6


def _script(monkeypatch: pytest.MonkeyPatch, scores: list[float]) -> None:
    """Held-out evaluations come out as written."""
    left = iter(scores)
    scripted = "rewriter.best_adapter.means"
    monkeypatch.setattr(scripted, lambda _: {"lexical": {"ndcg@3": next(left)}})


def _step(run: RunDirectory) -> Any:
    return tiny.read(run.best / "manifest.json")["step"]


def _weights(folder: Path) -> Path:
    return folder / "adapter_model.safetensors"


def test_constant_rewards_teach_nothing_break_nothing_and_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reward = {
        "backends": {"lexical": {"weight": 0}},
        "function": "tests.own_rewards:constant",
        "failure_penalty": 0,
    }
    run = tiny.train_tiny(tmp_path, reward=reward, alarms={"window": 2})
    for row in tiny.steps(run):
        assert row["loss"] == 0
        assert row["reward"] == 5
        assert row["groups/equal_reward"] == 1
        assert 0 <= row["lexical/all_hit"] + row["lexical/all_miss"] <= 1
    assert "NaN" not in run.metrics.read_text()
    alarms = [row for row in tiny.lines(run.metrics) if row.get("alarm") == "no_signal"]
    assert [row["step"] for row in alarms] == [2, 4]
    assert "100% of the groups have equal rewards" in caplog.text
    assert "no step changed the adapter" in caplog.text


def test_a_failing_search_costs_its_row_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail(monkeypatch, ConnectionError("engine is down"), having="beta")
    reward = {"retries": 0, "max_failures": 1000}
    run = tiny.train_tiny(tmp_path, reward=reward)
    rows = tiny.lines(run.completions(0))
    failed = [row for row in rows if row["search_failed"]]
    assert failed
    assert len(failed) < len(rows)
    for row in failed:
        assert "beta" in row["text"]
        assert row["rewards"] == {"lexical_ndcg@3": None, "format": None}
    counted = {row["step"]: row["search/failures"] for row in tiny.steps(run)}
    assert counted == {step: sum(row["step"] == step for row in failed) for step in (1, 2, 3, 4)}
    assert all(math.isfinite(row["loss"]) for row in tiny.steps(run))


def test_a_held_out_search_that_failed_for_good_is_counted_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two tries with all texts, then text by text: the first one's fails too.

    On the test split it is the reference of q8 that is never found.
    """
    search, calls = LexicalRetriever._search, []
    reference = "theta iota iota"  # query and rewrite

    def failing(self: LexicalRetriever, queries: Any, k: int) -> Any:
        calls.append(queries)
        if k > 3 and (len(calls) <= 3 or reference in queries):
            raise ConnectionError("engine is down")
        return search(self, queries, k)

    monkeypatch.setattr(LexicalRetriever, "_search", failing)
    tiny.save_collection(tmp_path / "collection", train=2, validation=range(2, 7), test=(7, 8, 9))
    reward = {"retries": 1, "backoff_s": 0, "max_failures": 1000}
    prompt = {"mode": "append"}  # each query another text
    run = tiny.train_tiny(tmp_path, prompt=prompt, reward=reward, trainer={"max_steps": 2})
    assert calls[0] == calls[1] == [text for alone in calls[2:7] for text in alone]
    first, second = tiny.lines(run.evaluations)
    assert (first["search_failures"], first["queries"].keys()) == (1, {"q3", "q4", "q5", "q6"})
    assert first["score"] == pytest.approx(sum(first["queries"].values()) / 4)
    assert (second["search_failures"], len(second["queries"])) == (0, 5)
    logged = [row for row in tiny.lines(run.metrics) if "eval_failures" in row]
    assert [row["eval_search_failures"] for row in logged] == [1, 0]
    assert "step 0: 1 held-out searches failed" in caplog.text
    found = tiny.read(run.result)["lexical"]
    assert found["reference"]["failed"] == 1
    versus = found["trained"]["vs_reference"]
    assert versus["win"] + versus["tie"] + versus["loss"] == 2


def test_a_permanent_error_ends_the_run_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail(monkeypatch, PermanentSearchError("401: no such key"), having="beta")
    with pytest.raises(PermanentSearchError, match="401"):
        tiny.train_tiny(tmp_path)


def test_many_failures_in_a_row_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail(monkeypatch, ConnectionError("engine is down"), having="")
    with pytest.raises(SearchError, match=r"5 searches in a row failed.*engine is down"):
        tiny.train_tiny(tmp_path, reward={"retries": 0, "max_failures": 5})


def _fail(monkeypatch: pytest.MonkeyPatch, error: Exception, having: str) -> None:
    """The reward's searches fail; the evaluation's are told from them by their depth, ten."""
    search = LexicalRetriever._search

    def failing(self: LexicalRetriever, queries: Any, k: int) -> Any:
        if k == 3 and any(having in query for query in queries):
            raise error
        return search(self, queries, k)

    monkeypatch.setattr(LexicalRetriever, "_search", failing)


@pytest.mark.parametrize("rows", [5, 4])
def test_prompts_that_do_not_fill_a_batch_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: int
) -> None:
    tiny.save_collection(tmp_path / "collection", train=rows)
    run = tiny.train_tiny(tmp_path, trainer={"max_steps": -1, "num_train_epochs": 1})
    assert ("4 of 5 training queries used an epoch (1 dropped)" in caplog.text) == (rows == 5)
    assert len(tiny.steps(run)) == 2
    assert len({row["query_id"] for row in tiny.lines(run.completions(0))}) == 4


def test_the_collections_conventions_hold_in_reward_and_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def noted(function: Any, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            seen.append((name, named[name]))
            return function(*given, **named)

        return call

    panel, summarise = training.RewardPanel, result.summarise
    monkeypatch.setattr("rewriter.training.RewardPanel", noted(panel, "drop_query_id"))
    monkeypatch.setattr("rewriter.result.summarise", noted(summarise, "subset"))
    with pytest.raises(EvaluationError, match="no query has a column 'colour'"):
        tiny.train_tiny(tmp_path, collection={"subset": "colour"})
    assert not (tmp_path / "run").exists()
    conventions = {"subset": "origin", "drop_query_id": True}
    tiny.train_tiny(tmp_path, collection=conventions, trainer={"max_steps": 1})
    assert seen == [("drop_query_id", True), ("subset", "origin")]


def test_fewer_prompts_than_a_batch_name_the_setting_to_lower(tmp_path: Path) -> None:
    tiny.save_collection(tmp_path / "collection", train=1)
    with pytest.raises(ConfigError, match=r"1 training queries.*takes 2.*per_device_train_batch"):
        tiny.train_tiny(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_damaged_base_model_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """transformers would make up what is missing, warn, and train on it."""
    weights = load_file(tiny.save_policy(tmp_path / "policy") / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, tmp_path / "policy" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 weights are missing .*model\.norm\.weight"):
        tiny.train_tiny(tmp_path)
    (tmp_path / "policy" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"cannot be loaded: .*safetensors"):
        tiny.train_tiny(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_prompt_without_room_for_a_rollout_is_named(tmp_path: Path) -> None:
    # The context has 256 tokens; a query has two words, its turn three tokens more, with a rewrite.
    with pytest.raises(PreflightError, match=r"training query 'q\d': its prompt has \d+ tokens"):
        tiny.train_tiny(tmp_path, trainer={"max_completion_length": 252})
    assert not (tmp_path / "run").exists()


def test_an_evaluation_batch_of_one_with_many_generations(tmp_path: Path) -> None:
    run = tiny.train_tiny(
        tmp_path, evaluation={"batch_size": 1}, trainer={"num_generations": 8, "max_steps": 2}
    )
    assert [row["n"] for row in tiny.lines(run.evaluations)] == [2, 2]


def test_a_gradient_reaches_the_adapter_with_and_without_checkpointing(tmp_path: Path) -> None:
    norms = []
    for place, on in enumerate((True, False)):
        trainer = {"gradient_checkpointing": on, "max_steps": 2}
        run = tiny.train_tiny(tmp_path, output=str(tmp_path / f"run{place}"), trainer=trainer)
        norms.append([row["grad_norm"] for row in tiny.steps(run)])
    assert min(norms[0]) > 0
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)


@pytest.mark.parametrize("fast", [True, False])
def test_the_defaults_run_on_a_cpu_with_and_without_bf16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    monkeypatch.setattr("rewriter.device._cpu_computes_bf16", lambda: fast)
    values = tiny.settings(tmp_path)
    del values["model"]["dtype"], values["trainer"]["use_cpu"]
    values["trainer"]["max_steps"] = 2
    from rewriter.config import Config
    from rewriter.training import train

    kept: list[Any] = []
    monkeypatch.setattr("rewriter.best_adapter.BestAdapter.on_train_begin", _keep(kept))
    train(Config.model_validate(values))
    (model,) = kept
    dtypes = {"lora_" in name: weight.dtype for name, weight in model.named_parameters()}
    assert dtypes == {True: torch.float32, False: torch.bfloat16 if fast else torch.float32}


def _keep(kept: list[Any]) -> Any:
    from rewriter.best_adapter import BestAdapter

    begin = BestAdapter.on_train_begin

    def on_train_begin(self: Any, *positional: Any, model: Any = None, **named: Any) -> None:
        kept.append(model)
        begin(self, *positional, model=model, **named)

    return on_train_begin


def test_a_reward_function_of_ones_own_is_added(tmp_path: Path) -> None:
    run = tiny.train_tiny(
        tmp_path, reward={"function": "tests.own_rewards:seven_words"}, trainer={"max_steps": 2}
    )
    for row in tiny.lines(run.completions(0)):
        assert row["rewards"]["seven_words"] == len((row["rewrite"] or "").split()) / 7
        assert set(row["rewards"]) == {"lexical_ndcg@3", "format", "seven_words"}
