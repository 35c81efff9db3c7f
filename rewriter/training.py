"""The GRPO run, top to bottom.

    train(load("configs/demo.yaml"))

loads the collection, opens the indexes, builds the reward, trains a LoRA adapter with TRL's
GRPOTrainer, evaluates on the validation split on the way, and compares the best adapter with the
other systems on the test split.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from retrievers import Retriever, build_retriever
from rewards.search import RewardPanel, StepScores
from rewriter.config import Config
from rewriter.run_directory import RunDirectory, refuse_other_overwrite
from rewriter.training_data import TrainingData, check_batch, load_data

logger = logging.getLogger(__name__)


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
        PreflightError: the model's completions show that training would earn nothing.
        FrozenAdapterError: the adapter does not train.
        retrievers.base.PermanentSearchError: the search cannot succeed.
    """
    started = time.time()
    refuse_other_overwrite(config, overwrite)
    _set_threads(config)
    from rewriter.trainer_options import grpo_config, lora_config

    config.reward.load_function()
    run = RunDirectory(config.output)
    data = load_data(config)
    retrievers = open_retrievers(config, data)
    watchers: list[Callable[[StepScores], None]] = []
    panel = RewardPanel(
        retrievers,
        config.reward,
        render=config.prompt.search_text,
        answer_tag=config.prompt.answer_tag,
        on_step=partial(_tell, watchers),
    )
    options = grpo_config(config, panel.weights)
    lora = lora_config(config)
    for note in [*data.notes, check_batch(len(data.rows), options)]:
        if note:
            logger.warning("%s", note)
    checkpoint = _claim(run, config, data, options, resume, overwrite)

    trainer, best = _trainer(config, run, data, retrievers, panel, options, lora, watchers)
    if checkpoint is None:
        _preflight(config, trainer, data)
    logger.info("set up in %.0f s; training", time.time() - started)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    from rewriter.result import finish

    return finish(config, run, data, retrievers, trainer, best)


def open_retrievers(config: Config, data: TrainingData) -> dict[str, Retriever]:
    """Every backend that the reward names, its index opened or built."""
    indexes = Path(config.index_dir) if config.index_dir else None
    return {
        name: build_retriever(
            name,
            config.retriever_settings(name),
            data.collection,
            indexes / name if indexes else None,
        )
        for name in config.reward.backends
    }


def _tell(watchers: list[Callable[[StepScores], None]], scores: StepScores) -> None:
    for watch in watchers:
        watch(scores)


def _claim(
    run: RunDirectory,
    config: Config,
    data: TrainingData,
    options: Any,
    resume: bool,
    overwrite: str | None,
) -> Path | None:
    """Prepare the folder on the first rank; the others wait and read where to resume."""
    from accelerate.utils import broadcast_object_list

    outcome: list[Any] = [None, None]
    if options.process_index == 0:
        try:
            if overwrite and not resume:
                run.clear()
            outcome[0] = run.prepare(config, data.facts(), resume)
        except ValueError as error:  # RunError and ConfigError: every rank has to stop with it
            outcome[1] = error
    if options.world_size > 1:
        broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise outcome[1]
    checkpoint: Path | None = outcome[0]
    return checkpoint


def _trainer(
    config: Config,
    run: RunDirectory,
    data: TrainingData,
    retrievers: dict[str, Retriever],
    panel: RewardPanel,
    options: Any,
    lora: Any,
    watchers: list[Callable[[StepScores], None]],
) -> tuple[Any, Any]:
    from datasets import Dataset
    from transformers import PrinterCallback, ProgressCallback
    from trl import GRPOTrainer

    from rewriter.alarms import Alarms
    from rewriter.callbacks import AdapterGuard, Journal, Progress
    from rewriter.held_out import BestAdapter
    from rewriter.policy import load_tokenizer

    tokenizer = load_tokenizer(config.model.name, config.model.revision)
    model, peft_config = _model(config, options, lora)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=panel.functions,
        args=options,
        train_dataset=Dataset.from_list(data.rows),
        processing_class=tokenizer,
        peft_config=peft_config,
    )
    journal = Journal(run, options.process_index)
    alarms = Alarms(config.alarms, run)
    watchers += [journal.completions, alarms.watch]
    held_out = held_out_split(config, data, retrievers, tokenizer, config.collection.validation)
    best = BestAdapter(held_out, run, _unwrap(trainer), _dispatch(trainer))
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    for callback in (journal, Progress(), AdapterGuard(), alarms, best):
        trainer.add_callback(callback)
    return trainer, best


def _model(config: Config, options: Any, lora: Any) -> tuple[Any, Any]:
    """What GRPOTrainer is given: a name and a new LoRA, or a model that has an adapter already."""
    from rewriter.models import resolve
    from rewriter.policy import attach

    if config.model.adapter is None:
        return resolve(config.model.name), lora
    from transformers import AutoModelForCausalLM

    init = dict(options.model_init_kwargs)
    options.model_init_kwargs = None
    base = AutoModelForCausalLM.from_pretrained(resolve(config.model.name), **init)
    return attach(base, Path(config.model.adapter), trainable=True), None


def held_out_split(
    config: Config,
    data: TrainingData,
    retrievers: dict[str, Retriever],
    tokenizer: Any,
    split: str,
) -> Any:
    """A split made ready for evaluation with this run's prompt and token limit."""
    from rewriter.generation import Decoding
    from rewriter.held_out import HeldOut

    evaluation = config.evaluation
    limit = evaluation.max_new_tokens or config.trainer.get("max_completion_length", 256)
    return HeldOut(
        config=config,
        tokenizer=tokenizer,
        queries=data.collection.queries(split),
        qrels=data.collection.qrels(split),
        retrievers=retrievers,
        decoding=Decoding(
            max_new_tokens=limit,
            batch_size=evaluation.batch_size,
            chat_template_kwargs=config.trainer.get("chat_template_kwargs"),
        ),
        split=split,
    )


def _unwrap(trainer: Any) -> Callable[[Any], AbstractContextManager[Any]]:
    """The model without DDP or sharding, to generate with."""
    from trl.models import unwrap_model_for_generation

    return lambda model: unwrap_model_for_generation(
        trainer.model_wrapped,
        trainer.accelerator,
        gather_deepspeed3_params=trainer.args.ds3_gather_for_generation,
    )


def _dispatch(trainer: Any) -> Callable[[Any, Any, dict[str, float]], None]:
    """Send numbers to every tracker.

    `trainer.log` would also write out, and clear, the running means of the step in progress.
    """

    def send(state: Any, control: Any, numbers: dict[str, float]) -> None:
        state.log_history.append({**numbers, "step": state.global_step})
        trainer.callback_handler.on_log(trainer.args, state, control, numbers)

    return send


def _preflight(config: Config, trainer: Any, data: TrainingData) -> None:
    """Sample on the first rank; randomness is put back, so that the check changes no result."""
    import torch

    from rewriter.preflight import check_completions

    conversations = [row["prompt"] for row in data.rows]
    with torch.random.fork_rng(), _unwrap(trainer)(trainer.model) as model:
        check_completions(config, model, trainer.processing_class, conversations, trainer.args)


def _set_threads(config: Config) -> None:
    if config.threads is not None:
        import torch

        torch.set_num_threads(config.threads)
