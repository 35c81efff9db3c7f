"""The GRPO run, top to bottom.

    train(load("configs/demo.yaml"))

loads the collection, opens the indexes, builds the reward, trains a LoRA adapter with TRL's
GRPOTrainer, evaluates on the validation split on the way, and compares the best adapter with the
other systems on the test split.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from retrievers import Retriever
from rewards.search import RewardPanel, StepScores
from rewriter.config import Config
from rewriter.config.backends import open_retrievers
from rewriter.config.conventions import conventions
from rewriter.device import limit_kernel_caches
from rewriter.evaluation.groups import check_subset, query_groups
from rewriter.resume import step_of
from rewriter.run_directory import RunDirectory, refuse_other_overwrite
from rewriter.training_data import TrainingData, check_batch, load_data

logger = logging.getLogger(__name__)

T = TypeVar("T")


def train(config: Config, *, resume: bool = False, overwrite: str | None = None) -> Path:
    """Train, and compare the result with the other systems.

    Args:
        config: the resolved configuration.
        resume: go on with the run in `config.output`, from its last checkpoint.
        overwrite: the run folder that may be replaced; must be `config.output`.

    Returns:
        The folder of the best adapter.

    Raises:
        ConfigError: a setting that cannot be used, before any model is loaded.
        RunError: the output folder is in use, or does not hold the run to resume.
        ModelError, CheckpointError: the model, or the adapter to start from, cannot be used.
        PreflightError: the model's completions show that training would earn nothing.
        FrozenAdapterError: the adapter does not train.
        retrievers.base.PermanentSearchError: the search cannot succeed.
    """
    started = time.time()
    refuse_other_overwrite(config, overwrite, resume)
    _set_threads(config)
    limit_kernel_caches()
    from rewriter.trainer_options import grpo_config, lora_config

    config.reward.load_function()
    # What costs nothing to find wrong comes before documents, indexes and models are read.
    options, lora = grpo_config(config), lora_config(config)
    run = RunDirectory(config.output)
    with ExitStack() as held:
        _on_first_rank(options, lambda: run.enter(held, resume, overwrite is not None))
        data = load_data(config)
        found = conventions(config, data.collection)
        check_subset(config, found.subset, query_groups(data.collection, data.test))
        retrievers = open_retrievers(config, data.collection)
        watchers: list[Callable[[StepScores], None]] = []
        panel = RewardPanel(
            retrievers,
            config.reward,
            render=config.prompt.search_text,
            answer_tag=config.prompt.answer_tag,
            on_step=partial(_tell, watchers),
            drop_query_id=found.drop_query_id,
        )
        options.reward_weights = panel.weights
        for note in [*data.notes, check_batch(len(data.rows), options)]:
            if note:
                logger.warning("%s", note)
        told = {"backends": {name: one.facts for name, one in retrievers.items()}}
        claimed = partial(_prepared, run, config, data, options, resume, overwrite, held, told)
        checkpoint = _on_first_rank(options, claimed)
        try:
            trainer, best = _built(
                config, run, data, panel, retrievers, options, lora, watchers, checkpoint
            )
        except BaseException:
            if options.process_index == 0:
                run.withdraw()  # what never began need not be overwritten by name
            raise
        if options.process_index == 0:
            run.forget_replaced()
        logger.info("set up in %.0f s; training", time.time() - started)
        if checkpoint is None or not _is_over(checkpoint, trainer, best):
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

        from rewriter.result import finish

        folder = finish(config, run, data, retrievers, trainer, best)
        if options.process_index == 0:
            run.write_cost(time.time() - started)
    return folder


def _built(
    config: Config,
    run: RunDirectory,
    data: TrainingData,
    panel: RewardPanel,
    retrievers: Mapping[str, Retriever],
    options: Any,
    lora: Any,
    watchers: list[Callable[[StepScores], None]],
    checkpoint: Path | None,
) -> tuple[Any, Any]:
    """The trainer, ready to start, and the callback that keeps the best adapter."""
    from rewriter.trainer_setup import build_trainer, check_base, check_policy
    from rewriter.warm_start import warm_started

    check_base(config, options)
    started_from = warm_started(config, run, data, panel, options, lora)
    trainer, best = build_trainer(
        started_from, run, data, retrievers, panel.functions, options, lora, watchers
    )
    if checkpoint is None:
        check_policy(config, trainer, data)
    return trainer, best


def _tell(watchers: list[Callable[[StepScores], None]], scores: StepScores) -> None:
    for watch in watchers:
        watch(scores)


def _prepared(
    run: RunDirectory,
    config: Config,
    data: TrainingData,
    options: Any,
    resume: bool,
    overwrite: str | None,
    held: ExitStack,
    told: Mapping[str, Any],
) -> Path | None:
    """Prepare the folder; returns the checkpoint to resume from."""
    from rewriter.trainer_options import buffer_steps, checkpoint_files

    # Groups are spread over the processes: another number would deal out other prompts.
    facts = {**data.facts(), "processes": options.world_size}
    every, needed = buffer_steps(options), checkpoint_files(options)
    if resume:
        return run.prepare(config, facts, resume, every, needed, told)
    run.begin(held, overwrite is not None)
    try:
        return run.prepare(config, facts, resume, every, needed, told)
    except BaseException:
        run.withdraw()
        raise


def _on_first_rank(options: Any, work: Callable[[], T]) -> T:
    """Do `work` on the first rank; the others wait, and get its result or its error."""
    from accelerate.utils import broadcast_object_list

    outcome: list[Any] = [None, None]
    if options.process_index == 0:
        try:
            outcome[0] = work()
        except ValueError as error:  # RunError and ConfigError: every rank has to stop with it
            outcome[1] = error
    if options.world_size > 1:
        broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise outcome[1]
    result: T = outcome[0]
    return result


def _is_over(checkpoint: Path, trainer: Any, best: Any) -> bool:
    """Whether the run was complete: the trainer would do one step more before it noticed."""
    loader = trainer.get_train_dataloader()
    last: int = trainer.set_initial_training_values(trainer.args, loader)[-1]
    return step_of(checkpoint) >= last or bool(best.exhausted)


def _set_threads(config: Config) -> None:
    """Use this process's share of the cores: `accelerate launch` leaves it one thread."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    share = (cores or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.set_num_threads(config.threads or max(1, share))
