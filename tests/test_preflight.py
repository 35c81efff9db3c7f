"""What stops a run before its first step, and that the check itself leaves no trace."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from retrievers.models import ModelError
from rewriter.base_model import load_tokenizer
from rewriter.preflight import PreflightError, check_room
from tests import tiny


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    """A raw string prompt would get no template, never end, and earn 0 for a whole run."""
    tiny.save_policy(tmp_path / "policy", template=None)
    with pytest.raises(ModelError, match=r"no chat template.*instruction-tuned"):
        tiny.train_tiny(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_model_that_never_ends_its_turn_is_refused(tmp_path: Path) -> None:
    tiny.save_policy(tmp_path / "policy", ends=False)
    with pytest.raises(PreflightError, match=r"none of 6 sampled completions ended within 32 tok"):
        tiny.train_tiny(tmp_path)
    assert not (tmp_path / "run").exists()  # so that the next try needs no --overwrite


def test_a_model_that_never_writes_a_rewrite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"none of 6 .*no_answer_tag.*prompt.answer_tag"):
        tiny.train_tiny(tmp_path, prompt={"answer_tag": "rewrite"})


def test_completions_that_are_only_too_long_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With more tokens they would end: training shortens them."""
    tiny.train_tiny(tmp_path, trainer={"max_completion_length": 1, "max_steps": 2})
    assert "are longer than trainer.max_completion_length (1)" in caplog.text


def test_room_is_looked_for_in_tokens_not_in_letters(tmp_path: Path) -> None:
    """Nine prompts of one long word fit; a shorter one of many words does not."""
    tokenizer = load_tokenizer(str(tiny.save_policy(tmp_path / "policy")), None)
    texts = [*(["a" * 600] * 9), "b " * 260]
    rows = [
        {"query_id": f"q{n}", "prompt": [{"role": "user", "content": text}]}
        for n, text in enumerate(texts)
    ]
    model = SimpleNamespace(config=SimpleNamespace(max_position_embeddings=256))
    options = SimpleNamespace(max_completion_length=8, chat_template_kwargs=None)
    check_room(model, tokenizer, rows[:9], options)
    with pytest.raises(PreflightError, match=r"training query 'q9': its prompt has 26\d tokens"):
        check_room(model, tokenizer, rows, options)


def test_the_check_changes_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = tiny.train_tiny(tmp_path)
    calls: list[Any] = []
    monkeypatch.setattr("rewriter.trainer_setup.check_policy", lambda *given: calls.append(given))
    unchecked = tiny.train_tiny(tmp_path, output=str(tmp_path / "unchecked"))
    assert len(calls) == 1
    assert checked.completions(0).read_bytes() == unchecked.completions(0).read_bytes()
    file = "checkpoint-4/adapter_model.safetensors"
    one, other = (load_file(run.checkpoints / file) for run in (checked, unchecked))
    assert all(torch.equal(one[name], other[name]) for name in one)
