"""TRL's GRPOTrainer with everything that a run hangs on to it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from retrievers import Retriever
from rewards.search import StepScores
from rewriter.config import Config
from rewriter.run_directory import RunDirectory
from rewriter.training_data import TrainingData
from rewriter.yaml_source import ConfigError


def build_trainer(
    config: Config,
    run: RunDirectory,
    data: TrainingData,
    retrievers: Mapping[str, Retriever],
    functions: list[Any],
    options: Any,
    lora: Any,
    watchers: list[Callable[[StepScores], None]],
) -> tuple[Any, Any]:
    """The trainer, and the callback that keeps the best adapter.

    Args:
        config: the resolved configuration.
        run: where logs and adapters go.
        data: what is trained on and evaluated with.
        retrievers: backend → where to search.
        functions: the reward functions.
        options, lora: GRPOConfig and LoraConfig.
        watchers: those who want to see every step's scores are added.

    Raises:
        ModelError, CheckpointError: the model or the adapter to start from cannot be used.
    """
    from datasets import Dataset
    from transformers import PrinterCallback, ProgressCallback
    from trl import GRPOTrainer

    from rewriter.adapter_guard import AdapterGuard
    from rewriter.alarms import Alarms
    from rewriter.base_model import load_tokenizer
    from rewriter.best_adapter import BestAdapter
    from rewriter.callbacks import Journal, Progress, PromptOrder
    from rewriter.cpu_head import score_completions_only

    if options.use_cpu:
        score_completions_only()
    settings = config.model
    tokenizer = load_tokenizer(settings.name, settings.revision, trust=settings.trust_remote_code)
    model, peft_config = _model(config, options, lora)
    try:
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=functions,
            args=options,
            train_dataset=Dataset.from_list(data.rows),
            processing_class=tokenizer,
            peft_config=peft_config,
        )
    except (ValueError, ImportError) as error:
        # What TRL and peft find only when they see the model: a LoRA target that it lacks, a
        # tracker that is not installed.
        if type(error).__module__.partition(".")[0] in {"retrievers", "rewards", "rewriter"}:
            raise
        raise ConfigError(f"trainer or lora: {' '.join(str(error).split())}") from error
    lighten(trainer)
    if config.sampling == "informative":
        draw_informative(config, run, data, trainer, watchers)
    journal = Journal(run, options.process_index)
    alarms = Alarms(config.alarms, run)
    watchers.append(journal.completions)
    if options.process_index == 0:  # one rank's rows show a collapse as well as all ranks' do
        watchers.append(alarms.watch)
    held_out = held_out_split(config, data, retrievers, tokenizer, config.collection.validation)
    best = BestAdapter(held_out, run, _unwrap(trainer), _dispatch(trainer))
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    for callback in (PromptOrder(), journal, Progress(), AdapterGuard(), alarms, best):
        trainer.add_callback(callback)
    return trainer, best


def lighten(trainer: Any) -> None:
    """Leave out work that a step repeats; its values stay the same."""
    from rewriter.cpu_head import project_contiguous
    from rewriter.shared_prefix import share_prefixes

    model = trainer.accelerator.unwrap_model(trainer.model)
    project_contiguous(model)
    # Sharding gathers weights for one call of each layer a step; sharing would make it several.
    if not (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
        share_prefixes(model)


def held_out_split(
    config: Config,
    data: TrainingData,
    retrievers: Mapping[str, Retriever],
    tokenizer: Any,
    split: str,
) -> Any:
    """A split made ready for evaluation with this run's prompt and token limit."""
    from rewriter.config.conventions import conventions
    from rewriter.evaluation.groups import query_groups
    from rewriter.evaluation.models import decoding_of
    from rewriter.held_out import HeldOut

    return HeldOut(
        config=config,
        tokenizer=tokenizer,
        queries=data.collection.queries(split),
        qrels=data.collection.qrels(split),
        retrievers=retrievers,
        decoding=decoding_of(config),
        split=split,
        groups=query_groups(data.collection, split),
        conventions=conventions(config, data.collection),
    )


def check_base(config: Config, options: Any) -> None:
    """Refuse a base model that is damaged: TRL would train on weights that are made up.

    Not where weights are sharded or quantised as they are loaded: names differ there.

    Raises:
        ModelError: it cannot be loaded, or weights are missing.
    """
    from rewriter.base_model import check_weights

    init = options.model_init_kwargs
    sharded = options.fsdp or options.deepspeed_plugin is not None
    if not sharded and {"device_map", "quantization_config"}.isdisjoint(init):
        check_weights(config.model.name, init)


def check_policy(config: Config, trainer: Any, data: TrainingData) -> None:
    """Sample before the first step; randomness is put back, so that the check changes no result.

    Raises:
        PreflightError: training would earn nothing.
    """
    import torch

    from rewriter.preflight import check_completions, check_room

    check_room(trainer.model, trainer.processing_class, data.rows, trainer.args)
    conversations = [row["prompt"] for row in data.rows]
    with torch.random.fork_rng(), _unwrap(trainer)(trainer.model) as model:
        check_completions(config, model, trainer.processing_class, conversations, trainer.args)


def draw_informative(
    config: Config,
    run: RunDirectory,
    data: TrainingData,
    trainer: Any,
    watchers: list[Callable[[StepScores], None]],
) -> None:
    """Have the trainer draw its prompts by what their groups taught."""
    from rewriter.callbacks import EpochOfSampler
    from rewriter.informative import GroupLog, InformativeSampler

    options = trainer.args
    backends = list(config.reward.backends)
    log = GroupLog(run, data.rows, backends, writes=options.process_index == 0)
    workers = options.dataloader_num_workers * (options.dataloader_prefetch_factor or 2)
    sampler = InformativeSampler(
        log,
        rows=len(data.rows),
        size=options.generation_batch_size // options.num_generations,
        generations=options.num_generations,
        repeats=options.num_iterations * options.steps_per_generation,
        seed=options.seed,
        accumulation=options.gradient_accumulation_steps,
        ahead=1 + workers,  # accelerate looks one batch ahead, to notice the last one
    )
    trainer._get_train_sampler = lambda dataset=None: sampler
    trainer.add_callback(EpochOfSampler(sampler))
    watchers.append(log.watch)


def _model(config: Config, options: Any, lora: Any) -> tuple[Any, Any]:
    """What GRPOTrainer is given: a name and a new LoRA, or a model that has an adapter already."""
    from retrievers.models import resolve

    if config.model.adapter is None:
        return resolve(config.model.name), lora
    loaded = load_policy(config, options, lora)
    options.model_init_kwargs = None  # they are for a name
    return loaded


def load_policy(config: Config, options: Any, lora: Any) -> tuple[Any, Any]:
    """The model, and the LoRA that it still needs: None where it starts from an adapter."""
    from transformers import AutoModelForCausalLM

    from retrievers.models import resolve
    from rewriter.checkpoint import MANIFEST, CheckpointError, attach, fingerprint, read_manifest

    init = dict(options.model_init_kwargs)
    base = AutoModelForCausalLM.from_pretrained(resolve(config.model.name), **init)
    if config.model.adapter is None:
        return base, lora
    folder = Path(config.model.adapter)
    if (folder / MANIFEST).is_file() and read_manifest(folder).base.fingerprint != fingerprint(
        base
    ):
        raise CheckpointError(
            f"{config.where('model.adapter')}: {folder} was trained on "
            f"{read_manifest(folder).base.name}, and {config.model.name} is another model"
        )
    return attach(base, Path(config.model.adapter), trainable=True), None


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

    `trainer.log` would also write out, and clear, the running means of the step in progress. And
    whoever logs withdraws the request to log: it is put back, or the step itself would be left out.
    """

    def send(state: Any, control: Any, numbers: dict[str, float]) -> None:
        state.log_history.append({**numbers, "step": state.global_step})
        pending = control.should_log
        trainer.callback_handler.on_log(trainer.args, state, control, numbers)
        control.should_log = pending

    return send
