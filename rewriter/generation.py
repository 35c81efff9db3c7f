"""Batched generation with a causal language model, and its split over ranks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rewards.parsing import parse
from rewriter.prompt import Message, PromptSettings
from rewriter.records import Rewrite


@dataclass(frozen=True)
class Decoding:
    """How rewrites are generated.

    Attributes:
        max_new_tokens: longest rewrite, in tokens.
        batch_size: conversations generated at once.
        temperature: None is greedy; else the temperature to sample at.
        chat_template_kwargs: handed to the chat template, such as `enable_thinking`.
    """

    max_new_tokens: int
    batch_size: int = 16
    temperature: float | None = None
    chat_template_kwargs: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Completion:
    """What the model wrote, and whether the token limit cut it off."""

    text: str
    clipped: bool


def generate(
    model: Any, tokenizer: Any, conversations: Sequence[Sequence[Message]], decoding: Decoding
) -> list[Completion]:
    """Complete conversations.

    They are generated in order of length, so that little is padded, and left-padded, so that every
    completion starts right after its prompt.

    Args:
        model: a transformers causal language model; put into evaluation mode meanwhile.
        tokenizer: its tokenizer, with a chat template.
        conversations: (Q,) message lists.
        decoding: limits and temperature.

    Returns:
        (Q,) completions in the order of `conversations`, special tokens left out.
    """
    prompts = [
        tokenizer.apply_chat_template(
            list(conversation),
            tokenize=False,
            add_generation_prompt=True,
            **(decoding.chat_template_kwargs or {}),
        )
        for conversation in conversations
    ]
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]), reverse=True)
    done: dict[int, Completion] = {}
    with _evaluating(model):
        for start in range(0, len(order), decoding.batch_size):
            places = order[start : start + decoding.batch_size]
            batch = [prompts[place] for place in places]
            done.update(zip(places, _batch(model, tokenizer, batch, decoding), strict=True))
    return [done[place] for place in range(len(prompts))]


def _batch(
    model: Any, tokenizer: Any, prompts: list[str], decoding: Decoding
) -> Iterator[Completion]:
    import torch
    from transformers import GenerationConfig

    # The template has written every special token already.
    inputs = tokenizer(
        prompts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False
    ).to(model.device)
    ends = _ends(model, tokenizer)
    sampled = decoding.temperature is not None
    settings = GenerationConfig(
        max_new_tokens=decoding.max_new_tokens,
        do_sample=sampled,
        pad_token_id=_padding(tokenizer),
        eos_token_id=ends,
        **({"temperature": decoding.temperature, "top_k": 0, "top_p": 1.0} if sampled else {}),
    )
    with torch.no_grad():
        output = model.generate(**inputs, generation_config=settings)
    for tokens in output[:, inputs["input_ids"].shape[1] :].tolist():
        ended = any(end in tokens for end in ends)
        yield Completion(tokenizer.decode(tokens, skip_special_tokens=True), not ended)


def rewrites(
    completions: Sequence[Completion], ids: Sequence[str], prompt: PromptSettings
) -> dict[str, Rewrite]:
    """Query id → rewrite, by the one parser."""
    parsed = (parse(completion.text, prompt.answer_tag) for completion in completions)
    return {identity: Rewrite.parsed(one) for identity, one in zip(ids, parsed, strict=True)}


def on_all_ranks(
    work: Callable[[Sequence[str]], Mapping[str, Rewrite]], ids: Sequence[str]
) -> dict[str, Rewrite]:
    """Do `work` once for each id, shared out over the ranks, and give every rank all of it.

    A sampler that pads the last batch would do some queries twice; a stride does not.
    """
    from accelerate import PartialState
    from accelerate.utils import gather_object

    state = PartialState()
    mine = work(ids[state.process_index :: state.num_processes])
    merged = dict(pair for part in gather_object([dict(mine)]) for pair in part.items())
    return {identity: merged[identity] for identity in ids}


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _ends(model: Any, tokenizer: Any) -> list[int]:
    """Every token that ends a turn: the tokenizer's and those that the model declares."""
    declared = model.generation_config.eos_token_id
    ends = declared if isinstance(declared, list) else [declared]
    return list(dict.fromkeys(end for end in (*ends, tokenizer.eos_token_id) if end is not None))


def _padding(tokenizer: Any) -> int:
    pad = tokenizer.pad_token_id
    return int(tokenizer.eos_token_id if pad is None else pad)
