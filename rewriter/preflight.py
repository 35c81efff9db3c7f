"""Checks before the first step: a run that cannot learn should not start."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rewards.parsing import parse
from rewriter.config import Config
from rewriter.generation import Completion, Decoding, context_size, generate, sampling_of
from rewriter.prompt import Message

logger = logging.getLogger(__name__)

PROMPTS = 8
# A model that is short of tokens ends its turn when given more; one that was given no chat template
# never does.
PATIENCE = 4
CLIPPED = 0.9


class PreflightError(ValueError):
    """The model's first completions show that training would earn nothing."""


def check_room(model: Any, tokenizer: Any, rows: Sequence[Mapping[str, Any]], options: Any) -> None:
    """Whether every training prompt leaves room for a rollout in the model's context.

    Beyond it a model writes noise, or fails in the middle of the run.

    Args:
        model, tokenizer: the policy.
        rows: the training rows.
        options: the GRPOConfig.

    Raises:
        PreflightError: one does not; names its query.
    """
    context = context_size(model, tokenizer)
    if context is None:
        return
    room = context - options.max_completion_length
    for row in sorted(rows, key=_size, reverse=True):
        prompt = tokenizer.apply_chat_template(
            row["prompt"],
            tokenize=False,
            add_generation_prompt=True,
            **(options.chat_template_kwargs or {}),
        )
        # No token is shorter than a byte. Letters are no measure: a word may be one token, or many.
        if len(prompt.encode("utf-8", "surrogatepass")) <= room:
            return
        tokens = len(tokenizer(prompt, add_special_tokens=False, verbose=False).input_ids)
        if tokens > room:
            raise PreflightError(
                f"training query {row['query_id']!r}: its prompt has {tokens} tokens, and the "
                f"model's context of {context} has room for {room} beside "
                f"trainer.max_completion_length ({options.max_completion_length}); take such "
                "queries out of the training split, shorten the prompt, or lower that number"
            )


def _size(row: Mapping[str, Any]) -> int:
    """Bytes; what the template adds is much the same for all rows."""
    return sum(
        len(message["content"].encode("utf-8", "surrogatepass")) for message in row["prompt"]
    )


def check_completions(
    config: Config, model: Any, tokenizer: Any, conversations: list[list[Message]], options: Any
) -> None:
    """Sample a few completions with several times the tokens, and look at how they end.

    Args:
        config: the run's.
        model, tokenizer: the policy before its first step.
        conversations: the training prompts; the first few are taken.
        options: the GRPOConfig.

    Raises:
        PreflightError: no completion ends, or none can be parsed.
    """
    limit = options.max_completion_length
    decoding = Decoding(
        max_new_tokens=PATIENCE * limit,
        batch_size=PROMPTS,
        temperature=options.temperature,
        chat_template_kwargs=options.chat_template_kwargs,
        sampling=sampling_of(options),
    )
    written = _sample(model, tokenizer, conversations[:PROMPTS], decoding)
    if all(completion.clipped for completion in written):
        raise PreflightError(
            f"none of {len(written)} sampled completions ended within {decoding.max_new_tokens} "
            f"tokens, so that every rollout would be cut off. The model does not end its turn: "
            "take an instruction-tuned model with its own chat template, or raise "
            f"trainer.max_completion_length ({limit}). The first completion: "
            f"{written[0].text[:200]!r}"
        )
    # Rollouts will be cut off at the limit: a format that closes after it would never be seen.
    cut = [tokenizer.decode(one.tokens[:limit], skip_special_tokens=True) for one in written]
    parsed = [parse(text, config.prompt.answer_tag) for text in cut]
    failures = Counter(one.failure for one in parsed if one.failure)
    if sum(failures.values()) == len(parsed):
        raise PreflightError(
            f"none of {len(parsed)} sampled completions holds a rewrite ({dict(failures)}) within "
            f"trainer.max_completion_length ({limit}) tokens; raise it, ask for the format in "
            f"prompt.system, or change prompt.answer_tag ({config.prompt.answer_tag!r}). The "
            f"first completion: {cut[0][:200]!r}"
        )
    over = sum(len(one.tokens) >= limit for one in written) / len(written)
    if over >= CLIPPED:
        logger.warning(
            "%d%% of the sampled completions are longer than trainer.max_completion_length (%d) "
            "and will be cut off at first; a search reward usually shortens them soon",
            round(100 * over),
            limit,
        )


def _sample(
    model: Any, tokenizer: Any, conversations: list[list[Message]], decoding: Decoding
) -> list[Completion]:
    """Shared out over the ranks; each gets all, so that they come to one verdict."""
    from accelerate import PartialState
    from accelerate.utils import gather_object

    state = PartialState()
    mine = conversations[state.process_index :: state.num_processes]
    # Several times the run's own limit is asked for: what has no room for that may fit later.
    made = generate(model, tokenizer, mine, decoding, check_room=False)
    written: list[Completion] = gather_object(made)
    return written
