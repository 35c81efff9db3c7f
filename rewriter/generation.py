"""Batched generation with a causal language model, and its split over ranks."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rewards.parsing import parse
from rewriter.prompt import Message, PromptSettings
from rewriter.records import Rewrite

logger = logging.getLogger(__name__)

# Failures of queries that the model is not asked about.
BLANK = "blank"  # it asks nothing: a rewrite of it would be invented
TOO_LONG = "too_long"  # the model has no room for it, and no part of it may be cut off blindly


@dataclass(frozen=True)
class Decoding:
    """How rewrites are generated.

    Attributes:
        max_new_tokens: longest rewrite, in tokens.
        batch_size: conversations generated at once.
        temperature: None is greedy; else the temperature to sample at.
        chat_template_kwargs: handed to the chat template, such as `enable_thinking`.
        sampling: what else narrows sampling, such as `top_p`, by transformers' names; without it
            every token may be drawn. Greedy decoding takes none of it.
    """

    max_new_tokens: int
    batch_size: int = 16
    temperature: float | None = None
    chat_template_kwargs: Mapping[str, Any] | None = None
    sampling: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Completion:
    """What the model wrote.

    text: without special tokens. clipped: whether the token limit cut it off. tokens: the ids, up
    to the end of the turn. too_long: there was no room for the prompt, and nothing was generated.
    """

    text: str
    clipped: bool
    tokens: tuple[int, ...] = ()
    too_long: bool = False


def generate(
    model: Any,
    tokenizer: Any,
    conversations: Sequence[Sequence[Message]],
    decoding: Decoding,
    *,
    check_room: bool = True,
) -> list[Completion]:
    """Complete conversations.

    They are generated in order of length, so that little is padded, and left-padded, so that every
    completion starts right after its prompt; equally long ones stay in the order given. With 16-bit
    weights what else is in a batch may decide between two close tokens.

    Args:
        model: a transformers causal language model; put into evaluation mode meanwhile.
        tokenizer: its tokenizer, with a chat template.
        conversations: (Q,) message lists.
        decoding: limits and temperature.
        check_room: leave out prompts that, with `max_new_tokens`, do not fit into the model's
            context; their completions are marked `too_long`.

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
    lost = _too_long(model, tokenizer, prompts, decoding.max_new_tokens) if check_room else set()
    done = dict.fromkeys(lost, Completion("", False, too_long=True))
    asked = [place for place in range(len(prompts)) if place not in lost]
    order = sorted(asked, key=lambda place: len(prompts[place]), reverse=True)
    with _evaluating(model):
        for start in range(0, len(order), decoding.batch_size):
            places = order[start : start + decoding.batch_size]
            batch = [prompts[place] for place in places]
            done.update(zip(places, _batch(model, tokenizer, batch, decoding), strict=True))
    return [done[place] for place in range(len(prompts))]


def _too_long(model: Any, tokenizer: Any, prompts: list[str], new_tokens: int) -> set[int]:
    """Places of the prompts that leave less than `new_tokens` of the model's context."""
    context = context_size(model, tokenizer)
    if context is None or not prompts:
        return set()
    room = context - new_tokens
    tokenized = tokenizer(prompts, add_special_tokens=False, verbose=False).input_ids
    lost = {place: len(ids) for place, ids in enumerate(tokenized) if len(ids) > room}
    if lost:
        logger.warning(
            "%d of %d prompts are longer than %d tokens (the longest has %d), which the model's "
            "context of %d leaves beside %d new ones; those queries stay as they are",
            len(lost),
            len(prompts),
            room,
            max(lost.values()),
            context,
            new_tokens,
        )
    return set(lost)


def context_size(model: Any, tokenizer: Any) -> int | None:
    """Tokens that the model can look at; None if neither it nor its tokenizer says."""
    config: Any = getattr(model, "config", None)
    if hasattr(config, "get_text_config"):  # a model of several kinds of input has one for text
        config = config.get_text_config()
    declared = (
        getattr(config, "max_position_embeddings", None),
        getattr(tokenizer, "model_max_length", None),  # 10 ** 30 where nobody set it
    )
    return min((int(one) for one in declared if one and one > 0), default=None)


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
    # What is left unset here, generate takes from the model's own generation_config.
    chosen: dict[str, Any] = {"do_sample": False, "repetition_penalty": 1.0}
    if decoding.temperature is not None:
        chosen |= {"do_sample": True, "top_k": 0, "top_p": 1.0, **(decoding.sampling or {})}
        chosen["temperature"] = decoding.temperature
    settings = GenerationConfig(
        max_new_tokens=decoding.max_new_tokens,
        pad_token_id=_padding(tokenizer),
        eos_token_id=ends or None,
        **chosen,
    )
    with torch.no_grad():
        output = model.generate(**inputs, generation_config=settings)
    for tokens in output[:, inputs["input_ids"].shape[1] :].tolist():
        end = next((place for place, token in enumerate(tokens) if token in ends), None)
        # Not every tokenizer counts the ends that a model declares among its special tokens.
        written = tuple(tokens[:end])
        text = tokenizer.decode(written, skip_special_tokens=True)
        yield Completion(text, end is None, written)


def sampling_of(options: Any) -> dict[str, Any]:
    """`Decoding.sampling` of a GRPOConfig: its rollouts are drawn so."""
    names = ("top_k", "top_p", "min_p", "repetition_penalty")
    return {name: getattr(options, name) for name in names}


def rewrites(
    completions: Sequence[Completion], ids: Sequence[str], prompt: PromptSettings
) -> dict[str, Rewrite]:
    """Query id → rewrite, by the one parser."""
    return {
        identity: Rewrite(None, TOO_LONG)
        if completion.too_long
        else Rewrite.parsed(parse(completion.text, prompt.answer_tag))
        for identity, completion in zip(ids, completions, strict=True)
    }


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
