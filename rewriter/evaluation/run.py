"""An evaluation, top to bottom: what `rlqr eval` does.

    run(config, output, systems=["raw", "hyde"], checkpoints=["runs/demo"], backends=["lexical"])

System by system: rewrites, each once for all backends; then every (system, backend) pair is
searched, judged and put aside. In the end everything is counted from the records.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retrievers.analysis import Analyzer
from rewards.search.patience import Patience
from rewriter.config import Config
from rewriter.evaluation.diagnostics import diagnose
from rewriter.evaluation.export import export
from rewriter.evaluation.folder import Part, ResultFolder, write_json
from rewriter.evaluation.judging import EvaluationError, evaluate_samples
from rewriter.evaluation.kinds import add_kinds
from rewriter.evaluation.plan import RAW, Entry, plan
from rewriter.evaluation.setting import Setting
from rewriter.evaluation.summary import Result, summarise, write_result
from rewriter.evaluation.trained_with import warn_of_other_search
from rewriter.evaluation.writing import Writer, Written
from rewriter.records import Record
from rewriter.systems import CollectionTerms

logger = logging.getLogger(__name__)


def run(
    config: Config,
    output: str | Path,
    *,
    systems: Sequence[str] | None = None,
    checkpoints: Sequence[str] = (),
    backends: Sequence[str] | None = None,
    split: str | None = None,
    qrels: Path | None = None,
    baseline: str | None = None,
    missing_ok: bool = False,
) -> tuple[Result, dict[str, Any]]:
    """Evaluate, and write the folder.

    Args:
        config: the resolved configuration.
        output: the result folder; what is finished in it and made by the same is not done again.
        systems, checkpoints: see `plan`.
        backends: None takes those that the reward names.
        split: None takes the configuration's test split.
        qrels: judgements that stand in for the split's own.
        baseline: a system that the others are compared with, beside "raw".
        missing_ok: whether a file of rewrites may lack queries.

    Returns:
        The result, and what `facts.json` holds.

    Raises:
        EvaluationError: no such system or baseline, or a folder that is no evaluation's, or that of
            another collection, split or file of judgements.
        CheckpointError, ModelError, CollectionError, ConfigError, SearchError: as they say.
    """
    entries = plan(config, systems, checkpoints)
    baselines = list(dict.fromkeys((RAW, *([baseline] if baseline else []))))
    names = [entry.name for entry in entries]
    if baseline and baseline not in names:
        raise EvaluationError(
            f"no system {baseline!r} to compare with; there are: {', '.join(names)}"
        )
    folder = ResultFolder(output)
    setting = Setting.open(config, split, backends, qrels)
    folder.refuse_other(setting.identity)
    warn_of_other_search(config, entries, setting.retrievers)
    records, facts, fingerprints = _records(setting, folder, entries, missing_ok)
    facts |= {"baselines": baselines}
    samples = config.evaluation.bootstrap_samples
    known = setting.conventions
    result = summarise(
        records, baselines, samples=samples, primary=known.primary, subset=known.subset
    )
    if qrels is None:
        add_kinds(result, setting.collection, setting.split, records, samples)
    write_result(result, folder.result)
    write_json(diagnose(records, _terms(setting), setting.collection), folder.diagnostics)
    export(config, records, setting.qrels, setting.collection, setting.retrievers, folder.path)
    folder.write(records, facts, fingerprints)
    return result, facts


def _records(
    setting: Setting, folder: ResultFolder, entries: Sequence[Entry], missing_ok: bool
) -> tuple[list[Record], dict[str, Any], dict[Part, str]]:
    """All records, backend by backend, and what they were made by."""
    terms = _terms(setting)
    writer = Writer(
        setting.config,
        setting.queries,
        list(setting.retrievers),
        terms,
        folder.cache,
        missing_ok=missing_ok,
    )
    made: dict[Part, list[Record]] = {}
    fingerprints: dict[Part, str] = {}
    facts: dict[str, Any] = {}
    for entry in entries:
        written = writer.write(entry)
        facts[entry.name] = written.facts
        for backend in setting.retrievers:
            part = (backend, entry.name)
            fingerprint = _fingerprint(setting, part, written)
            made[part] = _part(setting, folder, part, written, fingerprint)
            if not any(record.failed for record in made[part]):  # else it is tried again next time
                fingerprints[part] = fingerprint
    ordered = [(backend, entry.name) for backend in setting.retrievers for entry in entries]
    records = [record for part in ordered for record in made[part]]
    return records, setting.facts(facts), fingerprints


def _part(
    setting: Setting, folder: ResultFolder, part: Part, written: Written, fingerprint: str
) -> list[Record]:
    backend, system = part
    found = folder.part(part, fingerprint)
    if found is not None:
        return found
    config = setting.config
    reward = config.reward
    records = evaluate_samples(
        system,
        written.samples[backend],
        setting.queries,
        setting.qrels,
        {backend: setting.retrievers[backend]},
        measures=setting.measures,
        depth=config.evaluation.depth,
        split=setting.split,
        render=written.render,
        groups=setting.groups,
        drop_query_id=setting.conventions.drop_query_id,
        patience=Patience(reward.retries, reward.backoff_s, reward.max_failures),
    )
    failed = sum(record.failed for record in records)
    if failed:
        logger.warning("%s, %s: %d searches failed and count nowhere", backend, system, failed)
    else:
        folder.keep(part, fingerprint, records)
    return records


def _fingerprint(setting: Setting, part: Part, written: Written) -> str:
    texts = {query.id: query.text for query in setting.queries}
    samples = written.samples[part[0]]
    sent = [
        [
            None if one.text is None else written.render(texts[q], one.text)
            for q, one in made.items()
        ]
        for made in samples
    ]
    return setting.fingerprint_of(*part, samples, sent)


def _terms(setting: Setting) -> CollectionTerms:
    settings: Any = setting.config.retriever_settings("lexical")
    return CollectionTerms(setting.collection, Analyzer(settings.analysis))


def labels(facts: Mapping[str, Any]) -> dict[str, str]:
    """System → its name in tables."""
    return {name: str(one.get("label", name)) for name, one in facts.get("systems", {}).items()}
