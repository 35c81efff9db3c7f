"""The end of a run: the best adapter, the comparison on the test split, the table."""

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrievers import Retriever
from rewriter.config import Config
from rewriter.evaluation import Result, summarise, write_result
from rewriter.held_out import BestAdapter, HeldOut
from rewriter.policy import MANIFEST, fingerprint
from rewriter.records import Record, Rewrite, write_lines, write_records
from rewriter.run_directory import RunDirectory, git_commit, versions
from rewriter.systems import SYSTEMS, CollectionTerms
from rewriter.systems import rewrites as rule_rewrites
from rewriter.tables import markdown, table
from rewriter.training_data import TrainingData

logger = logging.getLogger(__name__)

TRAINED, UNTRAINED = "trained", "untrained"
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
    """
    from rewriter.training import held_out_split

    chosen = best.best
    if chosen is None:
        raise RuntimeError("the run was never evaluated")  # on_train_begin evaluates
    _load_adapter(trainer, run.adapters / f"step-{chosen['step']:06d}")
    tokenizer = trainer.processing_class
    test = held_out_split(config, data, dict(retrievers), tokenizer, config.collection.test)
    model = trainer.accelerator.unwrap_model(trainer.model)
    made = _rewrites(config, data, test, model)
    records = [record for system, one in made.items() for record in test.records(system, one)]
    if trainer.is_world_process_zero():
        result = summarise(records, samples=config.evaluation.bootstrap_samples)
        labels = {
            UNTRAINED: "untrained rewriter",
            TRAINED: f"trained rewriter (step {chosen['step']}, best)",
        }
        _save(config, run, data, retrievers, model, tokenizer, chosen, test, result, labels)
        write_records(records, run.records)
        write_result(result, run.result)
        _show(run, result, labels, _graded(data, test, records))
    trainer.accelerator.wait_for_everyone()
    return run.best


def _rewrites(
    config: Config, data: TrainingData, test: HeldOut, model: Any
) -> dict[str, dict[str, Rewrite]]:
    """System → query id → rewrite: the rules, the base model, the best adapter."""
    settings: Any = config.retriever_settings("lexical")
    from retrievers.analysis import Analyzer

    terms = CollectionTerms(data.collection, Analyzer(settings.analysis))
    made: dict[str, dict[str, Rewrite]] = {}
    for system in config.evaluation.systems:
        if system == UNTRAINED:
            with model.disable_adapter():
                made[system] = test.write(model)
        else:
            made[system] = rule_rewrites(system, test.queries, terms)
    made[TRAINED] = test.write(model)
    return made


def _graded(
    data: TrainingData, test: HeldOut, records: list[Record]
) -> dict[str, dict[str, float]]:
    """Backend → system → NDCG@3 by the graded judgements, where the split has them."""
    from rewards import metrics

    if GRADED not in data.collection.kinds(test.split):
        return {}
    qrels = data.collection.qrels(test.split, GRADED)
    found: dict[str, dict[str, float]] = {}
    runs: dict[tuple[str, str], dict[str, list[str]]] = {}
    for record in records:
        run = runs.setdefault((record.backend, record.system), {})
        run[record.query_id] = [hit.id for hit in record.hits]
    for (backend, system), run in runs.items():
        found.setdefault(backend, {})[system] = metrics.evaluate(run, qrels, ["ndcg@3"]).mean(
            "ndcg@3"
        )
    return found


def _load_adapter(trainer: Any, folder: Path) -> None:
    """Put the best adapter's weights into the trained model, on every rank."""
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    model = trainer.accelerator.unwrap_model(trainer.model)
    weights = load_file(folder / "adapter_model.safetensors")
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
    shutil.copytree(run.adapters / f"step-{chosen['step']:06d}", run.best)
    tokenizer.save_pretrained(run.best)
    manifest = {
        "format": 1,
        "base": {
            "name": config.model.name,
            "revision": config.model.revision,
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
    write_lines([_card(config, data, chosen, result, labels)], run.best / "README.md")


def _card(
    config: Config,
    data: TrainingData,
    chosen: Mapping[str, Any],
    result: Result,
    labels: Mapping[str, str],
) -> str:
    """The model card."""
    collection = data.collection
    tables = "\n\n".join(markdown(result, backend, labels=labels) for backend in result)
    backends = ", ".join(
        f"{name} ({config.reward.label(name)}, weight {reward.weight:g})"
        for name, reward in config.reward.backends.items()
    )
    return f"""---
library_name: peft
base_model: {config.model.name}
tags: [query-rewriting, information-retrieval, grpo, lora, rlqr]
---

# Query rewriter for `{collection.name}`

A LoRA adapter that rewrites search queries, trained with GRPO. Its reward was the search itself:
whether the rewritten query brings back the document that the query was written from.

- base model: `{config.model.name}`
- rewards: {backends}
- training queries: {len(data.rows)}; documents: {len(collection)}
- best step by held-out NDCG@3: {chosen["step"]}

## Held-out results

{tables}

Intervals are 95% percentile bootstrap over queries; the last columns are paired with the raw query.

## Use

```python
from rewriter import Rewriter

rewriter = Rewriter.from_pretrained("path/to/this/folder")
print(rewriter.rewrite(["…"]))
```

The prompt, the token limit, the resolved configuration, library versions and the fingerprints of
data and indexes are in `{MANIFEST}`.
"""


def _show(
    run: RunDirectory,
    result: Result,
    labels: Mapping[str, str],
    graded: Mapping[str, Mapping[str, float]],
) -> None:
    """Say what was gained, and where everything lies."""
    for backend in result:
        logger.info("%s", table(result, backend, labels=labels))
        if backend in graded:
            known = {name: system.label for name, system in SYSTEMS.items()} | dict(labels)
            shown = ", ".join(
                f"{known[name]} {value:.3f}" for name, value in graded[backend].items()
            )
            logger.info("NDCG@3 with every document that helps, graded: %s", shown)
    logger.info("checkpoint   %s", run.best)
    logger.info("records      %s", run.records)
    logger.info("result       %s", run.result)
    logger.info("completions  %s", run.completions(0))
