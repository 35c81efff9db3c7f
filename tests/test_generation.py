"""Batched generation: what is read in, where it ends, how it is sampled."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM
from trl import GRPOConfig

from rewriter.generation import (
    Completion,
    Decoding,
    generate,
    on_all_ranks,
    rewrites,
    sampling_of,
)
from rewriter.policy import load_tokenizer
from rewriter.prompt import PromptSettings
from rewriter.records import Rewrite
from tests.tiny import save_policy


class Scripted:
    """Writes given token ids, and remembers what it was asked."""

    def __init__(self, *answers: list[int], ends: int | list[int] | None = None) -> None:
        self.device = torch.device("cpu")
        self.training = True
        self.generation_config = SimpleNamespace(eos_token_id=ends)
        self.answers = list(answers)
        self.asked: list[Any] = []

    def eval(self) -> None:
        self.training = False

    def train(self, mode: bool) -> None:
        self.training = mode

    def generate(self, input_ids: Any, attention_mask: Any, generation_config: Any) -> Any:
        assert not self.training
        if not self.answers:
            raise IndexError("nothing left to write")
        self.asked.append((input_ids, attention_mask, generation_config))
        batch, self.answers = self.answers[: len(input_ids)], self.answers[len(input_ids) :]
        return torch.cat([input_ids, torch.tensor(batch)], dim=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return load_tokenizer(str(folder))


def user(*texts: str) -> list[list[dict[str, str]]]:
    return [[{"role": "user", "content": text}] for text in texts]


def test_a_completion_that_the_limit_cut_off_is_clipped(tokenizer: Any) -> None:
    end, pad, alpha = tokenizer.eos_token_id, tokenizer.pad_token_id, 6
    model = Scripted([alpha, end, pad], [alpha, alpha, end], [alpha, alpha, alpha])
    written = generate(model, tokenizer, user("beta", "beta", "beta"), Decoding(3))
    assert written == [
        Completion("alpha", False, (alpha,)),
        Completion(
            "alpha alpha", False, (alpha, alpha)
        ),  # the last token there is room for, but it is the end
        Completion("alpha alpha alpha", True, (alpha, alpha, alpha)),
    ]
    assert model.training  # put back


def test_any_declared_token_ends_a_turn_and_none_is_read(tokenizer: Any) -> None:
    """Such as <|eom_id|> beside <|eot_id|>; the tokenizer need not call them special."""
    end, kappa = tokenizer.eos_token_id, 15
    model = Scripted([6, kappa, 7], [6, end, 7], [6, 7, 8], ends=[kappa, 14])
    written = generate(model, tokenizer, user("beta", "beta", "beta"), Decoding(3))
    assert written == [
        Completion("alpha", False, (6,)),
        Completion("alpha", False, (6,)),
        Completion("alpha beta gamma", True, (6, 7, 8)),
    ]
    assert model.asked[0][2].eos_token_id == [kappa, 14, end]


def test_padding_is_on_the_left_and_no_special_token_is_doubled(tokenizer: Any) -> None:
    assistant, userid, end = 5, 4, tokenizer.eos_token_id
    model = Scripted([6], [6])
    tokenizer.padding_side = "right"  # whatever it was saved with
    try:
        generate(model, tokenizer, user("beta", "gamma delta"), Decoding(1))
    finally:
        tokenizer.padding_side = "left"
    ids, mask, _ = model.asked[0]
    # The longer one first: <|user|> gamma delta <|end|> <|assistant|>
    assert ids.tolist() == [
        [userid, 8, 9, end, assistant],
        [tokenizer.pad_token_id, userid, 7, end, assistant],
    ]
    assert mask.tolist() == [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]


def test_the_tokenizer_adds_no_special_tokens_of_its_own(folder: Path) -> None:
    from tokenizers import processors

    tokenizer = load_tokenizer(str(folder))
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|system|> $A", special_tokens=[("<|system|>", 3)]
    )
    assert tokenizer("beta").input_ids == [3, 7]
    model = Scripted([6])
    generate(model, tokenizer, user("beta"), Decoding(1))
    assert 3 not in model.asked[0][0]


def test_batches_are_cut_by_length_and_the_order_is_kept(tokenizer: Any) -> None:
    model = Scripted([6], [7], [8], [9])
    queries = user("beta", "beta beta beta beta", "beta beta", "beta beta beta")
    written = generate(model, tokenizer, queries, Decoding(1, batch_size=3))
    assert [tuple(ids.shape) for ids, _, _ in model.asked] == [(3, 7), (1, 4)]
    assert [one.text for one in written] == ["delta", "alpha", "gamma", "beta"]
    assert generate(model, tokenizer, [], Decoding(1)) == []


def test_greedy_and_sampling_settings(tokenizer: Any) -> None:
    model = Scripted([6], [6])
    generate(model, tokenizer, user("beta"), Decoding(9))
    generate(model, tokenizer, user("beta"), Decoding(9, temperature=0.7))
    greedy, sampled = (settings for _, _, settings in model.asked)
    assert (greedy.do_sample, greedy.max_new_tokens) == (False, 9)
    assert (sampled.do_sample, sampled.temperature) == (True, 0.7)
    assert (sampled.top_k, sampled.top_p) == (0, 1.0)


def test_a_model_is_put_back_when_generation_fails(tokenizer: Any) -> None:
    model = Scripted()  # has no answer
    with pytest.raises(IndexError):
        generate(model, tokenizer, user("beta"), Decoding(1))
    assert model.training


def test_the_template_gets_its_arguments(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{% if enable_thinking %}kappa{% endif %}" + tokenizer.chat_template
    monkeypatch.setattr(tokenizer, "chat_template", template)
    model = Scripted([6], [6])
    for thinking in (True, False):
        decoding = Decoding(1, chat_template_kwargs={"enable_thinking": thinking})
        generate(model, tokenizer, user("beta"), decoding)
    assert [15 in ids for ids, _, _ in model.asked] == [True, False]


def test_temperature_is_what_is_sampled_at(folder: Path, tokenizer: Any) -> None:
    """And the model's own settings (top_p, top_k, repetition_penalty) do not step in."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    decoding = Decoding(4, batch_size=64)
    plain = generate(model, tokenizer, user(*["beta gamma"] * 2), decoding)
    model.generation_config.update(
        do_sample=True, temperature=0.01, top_k=1, top_p=0.01, repetition_penalty=50.0
    )
    assert generate(model, tokenizer, user(*["beta gamma"] * 2), decoding) == plain

    def distinct(temperature: float) -> int:
        torch.manual_seed(0)
        sampling = Decoding(4, batch_size=64, temperature=temperature)
        return len(set(generate(model, tokenizer, user(*["beta gamma"] * 64), sampling)))

    assert distinct(1e-4) == 1
    assert 1 < distinct(0.05) < distinct(1.0)


def test_samples_are_drawn_as_the_rollouts_of_the_training(folder: Path, tokenizer: Any) -> None:
    """With top_k 1 the likeliest token alone is left, at any temperature."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    asked = user(*["beta gamma"] * 64)
    options = GRPOConfig("unused", top_k=1, use_cpu=True, bf16=False)
    narrowed = Decoding(4, batch_size=64, temperature=1.0, sampling=sampling_of(options))
    greedy = generate(model, tokenizer, asked, Decoding(4, batch_size=64))
    assert generate(model, tokenizer, asked, narrowed) == greedy


@pytest.mark.parametrize("known_by", ["model", "tokenizer"])
def test_a_prompt_that_the_context_does_not_hold_is_not_put_to_the_model(
    tokenizer: Any,
    known_by: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`<|user|> beta <|end|> <|assistant|>` is four tokens, and two are to be written."""
    model = Scripted([6, 7], [8, 9])
    if known_by == "model":
        model.config = SimpleNamespace(max_position_embeddings=6)  # type: ignore[attr-defined]
    else:
        monkeypatch.setattr(tokenizer, "model_max_length", 6)
    asked = user("gamma", "beta gamma delta", "beta")
    written = generate(model, tokenizer, asked, Decoding(2))
    assert [one.too_long for one in written] == [False, True, False]
    assert [one.text for one in written] == ["alpha beta", "", "gamma delta"]
    assert rewrites(written, ["a", "b", "c"], PromptSettings())["b"] == Rewrite(None, "too_long")
    assert "1 of 3 prompts are longer than 4 tokens (the longest has 6)" in caplog.text
    model.answers = [[6, 7], [6, 7], [6, 7]]
    unchecked = generate(model, tokenizer, asked, Decoding(2), check_room=False)
    assert not any(one.too_long for one in unchecked)


def test_rewrites_are_parsed_by_the_one_parser() -> None:
    completions = [Completion("<answer>budget</answer>", False), Completion("<answer>bud", True)]
    made = rewrites(completions, ["q1", "q2"], PromptSettings(answer_tag="answer"))
    assert made == {"q1": Rewrite("budget"), "q2": Rewrite(None, "unclosed_answer_tag")}


def test_one_rank_does_all_the_work_in_order() -> None:
    asked: list[list[str]] = []

    def work(ids: Any) -> dict[str, Rewrite]:
        asked.append(list(ids))
        return {identity: Rewrite(identity) for identity in reversed(ids)}

    made = on_all_ranks(work, ["b", "a", "c"])
    assert asked == [["b", "a", "c"]]
    assert list(made) == ["b", "a", "c"]
