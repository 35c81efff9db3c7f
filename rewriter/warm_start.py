"""A warm start without labels: imitate the best of n rewrites, then train with GRPO.

The untrained model rewrites some training queries several times; the search reward says which
rewrite of each was the best; TRL's SFTTrainer makes one short pass over those; the adapter that
comes out is where GRPO starts. What was drawn and the adapter stay in the run's folder, so that a
run that was stopped does neither again.
"""

import logging
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewards.parsing import parse
from rewards.search import RewardPanel
from rewriter.config import Config
from rewriter.generation import Completion, Decoding, generate, sampling_of
from rewriter.jsonl import json_line, read
from rewriter.records import write_lines
from rewriter.run_directory import RunDirectory
from rewriter.training_data import TrainingData

logger = logging.getLogger(__name__)

FOLDER, CHOSEN, ADAPTER = "warm_start", "chosen.jsonl", "adapter"
COST = "cost.json"  # completions that were sampled
_UNFINISHED = ".unfinished"
_COLUMNS = ("query_id", "query", "relevant", "backends")


def warm_started(
    config: Config,
    run: RunDirectory,
    data: TrainingData,
    panel: RewardPanel,
    options: Any,
    lora: Any,
) -> Config:
    """The configuration with the warm adapter as the one to start from.

    Without a warm start, or where no rewrite earned anything, it is the one that was given.

    Args:
        config: the resolved configuration.
        run: where samples and adapter are kept.
        data: what is trained on.
        panel: the reward.
        options, lora: GRPOConfig and LoraConfig.

    Raises:
        ModelError, CheckpointError: the model or the adapter to start from cannot be used.
        retrievers.base.PermanentSearchError: a search cannot succeed.
    """
    from accelerate import PartialState

    if config.warm_start.prompts == 0:
        return config
    folder = run.path / FOLDER
    if not (folder / ADAPTER).is_dir():
        import torch

        # Nothing that the training draws may depend on whether this was done just now.
        with torch.random.fork_rng():
            _warm_up(config, folder, data, panel, options, lora)
    PartialState().wait_for_everyone()
    if not (folder / ADAPTER).is_dir():
        return config
    model = config.model.model_copy(update={"adapter": str(folder / ADAPTER)})
    return config.model_copy(update={"model": model})


def _warm_up(
    config: Config, folder: Path, data: TrainingData, panel: RewardPanel, options: Any, lora: Any
) -> None:
    import torch
    from accelerate import PartialState

    from rewriter.base_model import load_tokenizer
    from rewriter.trainer_setup import load_policy

    state = PartialState()
    torch.manual_seed(options.seed + state.process_index)
    settings = config.model
    tokenizer = load_tokenizer(settings.name, settings.revision, trust=settings.trust_remote_code)
    model, peft_config = load_policy(config, options, lora)
    if not (folder / CHOSEN).is_file():
        chosen = list(_best(config, data, panel, model, tokenizer, options))
        if state.is_main_process:
            made = {"completions": _wanted(config, data) * config.warm_start.samples}
            write_lines([json_line(made)], folder / COST)
            write_lines(map(json_line, chosen), folder / CHOSEN)
        state.wait_for_everyone()
    rows = read(folder / CHOSEN)
    logger.info("warm start: %d rewrites to imitate", len(rows))
    if not rows:
        logger.warning("warm start: no sampled rewrite earned anything; starting without it")
        return
    _imitate(config, folder, rows, model, peft_config, tokenizer, options)


def _best(
    config: Config,
    data: TrainingData,
    panel: RewardPanel,
    model: Any,
    tokenizer: Any,
    options: Any,
) -> Iterator[dict[str, Any]]:
    """Prompt and best rewrite of each sampled prompt, those that earn nothing left out."""
    n = config.warm_start.samples
    rows = random.Random(options.seed).sample(data.rows, _wanted(config, data))
    repeated = [row for row in rows for _ in range(n)]
    written = _sampled(config, repeated, model, tokenizer, options)
    earned = _earned(panel, repeated, written)
    for place, row in enumerate(rows):
        group = range(place * n, (place + 1) * n)
        best = max(group, key=lambda number: _worth(written[number], earned[number]))
        rewrite = parse(written[best].text, config.prompt.answer_tag).text
        reward = earned[best]
        if rewrite is not None and not written[best].clipped and reward is not None and reward > 0:
            answer = [{"role": "assistant", "content": config.prompt.answer(rewrite)}]
            found = {"query_id": row["query_id"], "reward": reward, "of": n}
            yield found | {"prompt": row["prompt"], "completion": answer}


def _wanted(config: Config, data: TrainingData) -> int:
    """Prompts that are sampled: there may be fewer than are asked for."""
    return min(config.warm_start.prompts, len(data.rows))


def _worth(written: Completion, earned: float | None) -> tuple[bool, float]:
    """A rewrite that was cut off, or whose search failed, is nothing to imitate."""
    usable = not written.clipped and earned is not None
    return usable, earned if usable and earned is not None else 0.0


def _sampled(
    config: Config, rows: Sequence[dict[str, Any]], model: Any, tokenizer: Any, options: Any
) -> list[Completion]:
    """(R,) completions, shared out over the ranks."""
    from accelerate import PartialState
    from accelerate.utils import gather_object

    state = PartialState()
    places = range(state.process_index, len(rows), state.num_processes)
    decoding = Decoding(
        max_new_tokens=options.max_completion_length,
        batch_size=config.evaluation.batch_size,
        temperature=config.warm_start.temperature or options.temperature,
        chat_template_kwargs=options.chat_template_kwargs,
        sampling=sampling_of(options),
    )
    prompts = [rows[place]["prompt"] for place in places]
    if model.device != options.device:  # a quantised model is there, and cannot be moved
        model = model.to(options.device)
    made = generate(model, tokenizer, prompts, decoding)
    found = dict(gather_object(list(zip(places, made, strict=True))))
    return [found[place] for place in range(len(rows))]


def _earned(
    panel: RewardPanel, rows: Sequence[dict[str, Any]], written: Sequence[Completion]
) -> list[float | None]:
    """(R,) weighted rewards, None where a search failed; every rank scores all rows."""
    from transformers import TrainerState

    columns = {name: [row[name] for row in rows] for name in _COLUMNS if name in rows[0]}
    # What TRL gives to reward functions besides: one of the user's own may ask for it.
    given: dict[str, Any] = {
        "prompts": [row["prompt"] for row in rows],
        "completion_ids": [list(one.tokens) for one in written],
        "trainer_state": TrainerState(),
        "log_extra": _unlogged,
        "log_metric": _unlogged,
    }
    texts = [one.text for one in written]
    values = [function(texts, **columns, **given) for function in panel.functions]
    totals: list[float | None] = []
    for row in zip(*values, strict=True):
        pairs = zip(panel.weights, row, strict=True)
        known = [weight * value for weight, value in pairs if value is not None]
        totals.append(sum(known) if known else None)
    return totals


def _unlogged(name: str, value: Any) -> None:
    """Nothing is logged before the training."""


def _imitate(
    config: Config,
    folder: Path,
    rows: Sequence[dict[str, Any]],
    model: Any,
    peft_config: Any,
    tokenizer: Any,
    options: Any,
) -> None:
    """One supervised pass; the adapter appears in its place when it is whole."""
    from datasets import Dataset
    from trl import SFTTrainer

    kwargs = options.chat_template_kwargs
    shown = [
        {"prompt": row["prompt"], "completion": row["completion"]}
        | ({"chat_template_kwargs": kwargs} if kwargs else {})
        for row in rows
    ]
    trainer = SFTTrainer(
        model=model,
        args=_sft_options(config, folder, options),
        train_dataset=Dataset.from_list(shown),
        processing_class=tokenizer,
        peft_config=peft_config,
    )
    loss = trainer.train().training_loss
    logger.info("warm start: mean loss %.3f", loss)
    if trainer.is_world_process_zero():
        unfinished = folder / _UNFINISHED
        shutil.rmtree(unfinished, ignore_errors=True)
        policy = trainer.accelerator.unwrap_model(trainer.model)
        policy.save_pretrained(unfinished, selected_adapters=["default"])
        unfinished.rename(folder / ADAPTER)
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.free_memory()


def _sft_options(config: Config, folder: Path, options: Any) -> Any:
    from trl import SFTConfig

    settings = config.warm_start
    return SFTConfig(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        max_length=None,  # nothing of a prompt may be cut off
        seed=options.seed,
        bf16=options.bf16,
        fp16=options.fp16,
        use_cpu=options.use_cpu,
        activation_checkpointing=options.activation_checkpointing,
        save_strategy="no",
        report_to="none",
        logging_strategy="no",
        disable_tqdm=True,
    )
