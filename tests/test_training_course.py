"""The course of a run: which adapter is the best, what it learns from, and searches that fail."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from retrievers.base import PermanentSearchError, SearchError
from retrievers.lexical import LexicalRetriever
from rewriter.run_directory import RunDirectory
from tests import tiny

# -- the best adapter


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


# -- rewards


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


def test_a_reward_function_of_ones_own_is_added(tmp_path: Path) -> None:
    run = tiny.train_tiny(
        tmp_path, reward={"function": "tests.own_rewards:seven_words"}, trainer={"max_steps": 2}
    )
    for row in tiny.lines(run.completions(0)):
        assert row["rewards"]["seven_words"] == len((row["rewrite"] or "").split()) / 7
        assert set(row["rewards"]) == {"lexical_ndcg@3", "format", "seven_words"}


# -- searches that fail


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
