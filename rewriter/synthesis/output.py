"""The folder that is written.

data/mine/
    corpus.jsonl, queries.jsonl, qrels/    the collection, in the layout of BEIR
    card.md, card.html                     the data card
    dropped.jsonl                          every query that is not kept, and why
    synthesis.json                         generator, prompt hash, source, versions
    config.yaml                            the resolved configuration
    journal.jsonl                          every answer of the generator
    cache/                                 samples of the untrained rewriter
"""

import json
import logging
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrievers.collection import Collection, Query
from retrievers.loaders.beir import write as write_beir
from retrievers.qrels import SOURCE, Judgements, Qrels
from rewriter.records import write_lines
from rewriter.run_directory import git_commit, versions
from rewriter.synthesis.asking import prompt_hash
from rewriter.synthesis.filters import Draft, Dropped

if TYPE_CHECKING:
    from rewriter.config import Config
    from rewriter.synthesis.pipeline import Outcome

logger = logging.getLogger(__name__)

FACTS = "synthesis.json"
_PARTS = (FACTS, "qrels", "queries.jsonl", "corpus.jsonl")


class FolderError(ValueError):
    """A folder that holds something else."""


class Folder:
    """Paths, and what is written to them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal.jsonl"
        self.cache = path / "cache"

    def prepare(self) -> None:
        """Make it. Raises FolderError where files of another kind are in it."""
        if self.path.exists() and not self.path.is_dir():
            raise FolderError(f"{self.path} is a file; choose a folder with --output")
        held = {one.name for one in self.path.iterdir()} if self.path.is_dir() else set()
        if held and not held & {self.journal.name, "card.md"}:
            raise FolderError(
                f"{self.path} holds files that `rlqr synth` did not write; choose another folder "
                "with --output"
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, config: "Config", outcome: "Outcome") -> None:
        """The collection and what it was made by.

        An earlier one is taken away first and the queries come last, so that a folder that a kill
        left half-written does not look whole.
        """
        made = self.path / "making"
        shutil.rmtree(made, ignore_errors=True)
        write_beir(_collection(outcome), made)
        self.forget()
        for name in ("corpus.jsonl", "qrels", "queries.jsonl"):
            (made / name).rename(self.path / name)
        shutil.rmtree(made)
        (self.path / ".making.lock").unlink(missing_ok=True)  # of `write_once`
        write_lines([json.dumps(_facts(config, outcome), indent=2)], self.path / FACTS)
        write_lines([config.to_yaml().rstrip()], self.path / "config.yaml")

    def forget(self) -> None:
        """Take away the collection that an earlier run wrote."""
        for name in _PARTS:
            _remove(self.path / name)

    def write_dropped(self, dropped: Iterable[Dropped]) -> None:
        """`dropped.jsonl`."""
        rows = (
            {"filter": one.filter, "reason": one.reason, "source": one.draft.document}
            | {"text": one.draft.text}
            for one in dropped
        )
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        write_lines(lines, self.path / "dropped.jsonl")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _collection(outcome: "Outcome") -> Collection:
    """The source's documents with the queries that are kept, and the splits that are."""
    source = outcome.collection
    provenance = _provenance(outcome)
    queries = [_query(draft, provenance) for draft in outcome.kept]
    documents = {draft.id: draft.document for draft in outcome.kept}
    qrels: dict[str, Mapping[str, Judgements]] = {
        split: {SOURCE: {query: {documents[query]: 1.0} for query in ids}}
        for split, ids in outcome.splits.items()
    }
    for split in outcome.settings.keep:
        qrels[split] = _judged(source, split)
        queries += [one for one in source.queries(split) if one.id in qrels[split][SOURCE]]
    return Collection(outcome.settings.output, source.documents, queries, qrels)


def _judged(source: Collection, split: str) -> dict[str, Qrels]:
    """A split's judgements by kind, without queries that have none: BEIR has no place for them."""
    main = {query: grades for query, grades in source.qrels(split).items() if grades}
    if lost := len(source.qrels(split)) - len(main):
        logger.warning("split %s: %d queries have no judgement and are left out", split, lost)
    return {
        kind: {q: grades for q, grades in source.qrels(split, kind).items() if grades and q in main}
        for kind in source.kinds(split)
    }


def _provenance(outcome: "Outcome") -> dict[str, Any]:
    identity = outcome.settings.generator.options.identity()
    return {
        "generator": identity["generator"],
        "model": identity.get("model"),
        "prompt": prompt_hash(outcome.settings),
        "filters": list(outcome.settings.filters),
    }


def _query(draft: Draft, provenance: Mapping[str, Any]) -> Query:
    own = {
        "scenario": draft.scenario,
        "question": draft.question,
        "page": draft.page,
        "number": draft.number,
        "seed": draft.seed,
    }
    known = {key: value for key, value in {**provenance, **own}.items() if value not in (None, "")}
    return Query(draft.id, draft.text, "synthetic", draft.document, metadata=known)


def _facts(config: "Config", outcome: "Outcome") -> dict[str, Any]:
    source = outcome.settings.source or config.collection
    return {
        "generator": outcome.settings.generator.options.identity(),
        "prompt": prompt_hash(outcome.settings),
        "source": {
            "loader": source.loader,
            "options": json.loads(source.model_dump_json(include={"options"}))["options"],
            "documents": len(outcome.collection),
            "fingerprint": outcome.collection.fingerprint,
        },
        "queries": {split: len(ids) for split, ids in outcome.splits.items()},
        "versions": versions(),
        "git_commit": git_commit(),
    }
