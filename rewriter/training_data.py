"""Collection → the rows that GRPO trains on, with every loss counted."""

import hashlib
import logging
from dataclasses import dataclass
from typing import Any

from retrievers.collection import Collection
from retrievers.leaks import check_leaks, near_leaks
from retrievers.loaders import load
from retrievers.queries import Query
from rewriter.config import Config
from rewriter.yaml_source import ConfigError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingData:
    """What a run reads.

    Attributes:
        collection: documents, queries, judgements.
        rows: one a training query: prompt, query_id, query, relevant.
        skipped: training queries left out, because none of their documents is in the collection.
        notes: what was left out or looks doubtful, to be shown.
    """

    collection: Collection
    rows: list[dict[str, Any]]
    skipped: list[str]
    notes: list[str]

    def facts(self) -> dict[str, Any]:
        """Fingerprints: equal ones mean the same documents and the same training rows."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(repr((row["query_id"], row["query"], row["relevant"])).encode())
        return {"documents": self.collection.fingerprint, "training_queries": digest.hexdigest()}


def load_data(config: Config) -> TrainingData:
    """Load the collection, check it for leaks, and build the training rows.

    Raises:
        ConfigError: a split is missing, or no training query is left.
        retrievers.leaks.LeakError: a query id or a source document is in two splits.
        retrievers.identity.CollectionError: the data cannot be read.
    """
    settings = config.collection
    collection = load(settings.loader, **settings.options)
    for split in (settings.train, settings.validation, settings.test):
        if split not in collection.splits:
            raise ConfigError(
                f"collection {collection.name!r} has no split {split!r}; there are: "
                f"{', '.join(collection.splits)}"
            )
    check_leaks(collection, strict=True)
    notes = [f"{count} left out: {reason}" for reason, count in collection.left_out.items()]
    for one, other, similarity in near_leaks(collection, settings.near_duplicates):
        notes.append(f"near-duplicates in different splits ({similarity:.2f}): {one}, {other}")
    rows, skipped = _rows(config, collection)
    if skipped:
        notes.append(f"{len(skipped)} training queries skipped: none of their documents is there")
    if not rows:
        raise ConfigError(f"split {settings.train!r}: no query has a document in the collection")
    return TrainingData(collection, rows, skipped, notes)


def _rows(config: Config, collection: Collection) -> tuple[list[dict[str, Any]], list[str]]:
    split = config.collection.train
    qrels = collection.qrels(split)
    rows, skipped = [], []
    for query in collection.queries(split):
        grades = qrels.get(query.id, {})
        if any(grade > 0 and document in collection for document, grade in grades.items()):
            rows.append(_row(config, query, grades))
        else:
            skipped.append(query.id)
    return rows, skipped


def _row(config: Config, query: Query, grades: dict[str, float]) -> dict[str, Any]:
    return {
        "prompt": config.prompt.messages(query.text),
        "query_id": query.id,
        "query": query.text,
        "relevant": [{"id": document, "grade": grade} for document, grade in grades.items()],
    }


def check_batch(rows: int, options: Any) -> str | None:
    """Whether the training queries fill TRL's generation batches.

    Returns:
        A note on queries left out of every epoch, or None.

    Raises:
        ConfigError: there are fewer than one batch takes.
    """
    wanted = options.generation_batch_size // options.num_generations
    if rows < wanted:
        raise ConfigError(
            f"{rows} training queries, but one generation batch takes {wanted} "
            f"(generation_batch_size {options.generation_batch_size} ÷ num_generations "
            f"{options.num_generations}); lower trainer.per_device_train_batch_size or "
            "trainer.gradient_accumulation_steps, or raise trainer.num_generations"
        )
    dropped = rows % wanted
    if dropped:
        return f"{rows - dropped} of {rows} training queries used an epoch ({dropped} dropped)"
    return None
