"""The end of a run: the best adapter, the comparison on the test split, the table."""

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrievers import Retriever
from rewards.comparison import paired
from rewriter.best_adapter import BestAdapter
from rewriter.config import Config
from rewriter.evaluation import HEADLINE, Result, summarise, write_result
from rewriter.evaluation.export import export
from rewriter.evaluation.kinds import add_kinds
from rewriter.evaluation.summary import pair
from rewriter.held_out import HeldOut, Made
from rewriter.model_card import card
from rewriter.policy import MANIFEST, fingerprint
from rewriter.records import Record, by, write_lines, write_records
from rewriter.resume import RunError
from rewriter.run_directory import RunDirectory, git_commit, versions
from rewriter.systems import SYSTEMS, UNTRAINED, CollectionTerms
from rewriter.systems import rewrites as rule_rewrites
from rewriter.tables import table
from rewriter.training_data import TrainingData

logger = logging.getLogger(__name__)

RAW, TRAINED = "raw", "trained"
GRADED = "graded"


def finish(
    config: Config,
    run: RunDirectory,
    data: TrainingData,
    retrievers: Mapping[str, Retriever],
    trainer: Any,
    best: BestAdapter,
) -> Path:
    """Evaluate the best adapter and the other systems on the test split, and save the result.

    Returns:
        The folder of the best adapter.

    Raises:
        RunError: the best adapter is not there any more.
    """
    from rewriter.trainer_setup import held_out_split

    chosen = best.best
    if chosen is None:  # on_train_begin evaluates
        raise RunError(f"{run.evaluations} holds no evaluation; put it back, or start a new run")
    _load_adapter(trainer, run.adapter(chosen["step"]))
    tokenizer = trainer.processing_class
    test = held_out_split(config, data, retrievers, tokenizer, config.collection.test)
    model = trainer.accelerator.unwrap_model(trainer.model)
    made = _rewrites(config, data, test, model)
    # Searched on the first rank alone: an engine is not asked the same by every process.
    if trainer.is_world_process_zero():
        records = [record for system, one in made.items() for record in test.records(system, one)]
        samples = config.evaluation.bootstrap_samples
        known = test.conventions
        result = summarise(records, samples=samples, primary=known.primary, subset=known.subset)
        _add_comparisons(result, records, samples)
        add_kinds(result, data.collection, test.split, records, samples)
        labels = {
            UNTRAINED: "untrained rewriter",
            TRAINED: f"trained rewriter (step {chosen['step']}, best)",
        }
        _save(config, run, data, retrievers, model, tokenizer, chosen, test, result, labels)
        write_records(records, run.records)
        write_result(result, run.result)
        export(config, records, test.qrels, data.collection, test.retrievers, run.path)
        _show(run, result, labels)
    trainer.accelerator.wait_for_everyone()
    return run.best


def _rewrites(config: Config, data: TrainingData, test: HeldOut, model: Any) -> dict[str, Made]:
    """System → its rewrites: the rules, the base model, the best adapter."""
    settings: Any = config.retriever_settings("lexical")
    from retrievers.analysis import Analyzer

    terms = CollectionTerms(data.collection, Analyzer(settings.analysis))
    made: dict[str, Made] = {}
    for system in config.evaluation.systems:
        if system == UNTRAINED:
            with model.disable_adapter():
                made[system] = test.write(model)
        elif system in config.evaluation.prompts:
            with model.disable_adapter():
                made[system] = test.write(model, system)
        else:
            made[system] = test.for_all(rule_rewrites(system, test.queries, terms))
    made[TRAINED] = test.write(model)
    return made


def _add_comparisons(result: Result, records: list[Record], samples: int) -> None:
    """`vs_SYSTEM` of the trained rewriter, paired, for every other system.

    On the queries whose search failed for neither of the two, as for the raw query.
    """
    for backend, rows in by(records, "backend").items():
        systems = by(rows, "system")
        scores = {
            system: {row.query_id: row.metrics[HEADLINE] for row in found if not row.excluded}
            for system, found in systems.items()
        }
        for system, values in scores.items():
            if system not in {TRAINED, RAW}:
                both = pair(scores[TRAINED], values, systems[TRAINED], systems[system])
                compared = paired(*both, samples=samples)._asdict()
                kept = {key: compared[key] for key in result[backend][TRAINED][f"vs_{RAW}"]}
                result[backend][TRAINED][f"vs_{system}"] = kept


def _load_adapter(trainer: Any, folder: Path) -> None:
    """Put the best adapter's weights into the trained model, on every rank."""
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    model = trainer.accelerator.unwrap_model(trainer.model)
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise RunError(f"{file}: the best adapter is not there; put it back, or start a new run")
    weights = load_file(file)
    outcome = set_peft_model_state_dict(model, weights)
    if outcome.unexpected_keys:
        raise RuntimeError(f"{folder}: unexpected adapter keys {outcome.unexpected_keys[:3]}")


def _save(
    config: Config,
    run: RunDirectory,
    data: TrainingData,
    retrievers: Mapping[str, Retriever],
    model: Any,
    tokenizer: Any,
    chosen: Mapping[str, Any],
    test: HeldOut,
    result: Result,
    labels: Mapping[str, str],
) -> None:
    """`best/`: adapter, tokenizer, manifest and model card; everything `Rewriter` needs."""
    shutil.rmtree(run.best, ignore_errors=True)
    shutil.copytree(run.adapter(chosen["step"]), run.best)
    tokenizer.save_pretrained(run.best)
    manifest = {
        "format": 1,
        "base": {
            "name": config.model.name,
            "revision": config.model.revision,
            "dtype": config.model.dtype,
            "fingerprint": fingerprint(model),
        },
        "step": chosen["step"],
        "prompt": config.prompt.model_dump(mode="json"),
        "decoding": {
            "max_new_tokens": test.decoding.max_new_tokens,
            "batch_size": test.decoding.batch_size,
            "chat_template_kwargs": test.decoding.chat_template_kwargs,
        },
        "indexes": {name: retriever.fingerprint for name, retriever in retrievers.items()},
        "data": data.facts(),
        "versions": versions(),
        "git_commit": git_commit(),
        "config": config.dump(),
    }
    write_lines([json.dumps(manifest, ensure_ascii=False, indent=2)], run.best / MANIFEST)
    write_lines([card(config, data, chosen["step"], result, labels)], run.best / "README.md")


def _show(run: RunDirectory, result: Result, labels: Mapping[str, str]) -> None:
    """Say what was gained, what was not, and where everything lies."""
    known = {name: system.label for name, system in SYSTEMS.items()} | dict(labels)
    for backend, systems in result.items():
        logger.info("%s", table(result, backend, labels=labels))
        for system in systems:
            versus = systems[TRAINED].get(f"vs_{system}")
            if versus is not None:
                logger.info("%s", _verdict(known.get(system, system), versus))
        graded = {name: found.get(f"{GRADED}_{HEADLINE}") for name, found in systems.items()}
        shown = [
            f"{known.get(name, name)} {one['mean']:.3f}" for name, one in graded.items() if one
        ]
        if shown:
            logger.info("NDCG@3 by every document that helps, graded: %s", ", ".join(shown))
    logger.info("checkpoint   %s", run.best)
    logger.info("records      %s", run.records)
    logger.info("result       %s", run.result)
    logger.info("completions  %s", run.completions(0))


def _verdict(system: str, versus: Mapping[str, float]) -> str:
    """One line: the trained rewriter against a system, and whether that is beyond chance."""
    low, high = versus["low"], versus["high"]
    said = "better" if low > 0 else "worse" if high < 0 else "no clear difference"
    return f"trained − {system}: {versus['diff']:+.3f} [{low:+.3f}, {high:+.3f}], {said}"
