"""Collection → the rows that GRPO trains on, with every loss counted."""

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from retrievers.collection import Collection
from retrievers.leaks import check_leaks, near_leaks
from retrievers.queries import Query
from rewriter.config import Config
from rewriter.config.collection import open_collection
from rewriter.yaml_source import ConfigError

logger = logging.getLogger(__name__)

SHOWN = 5  # near-duplicates named in a note


@dataclass(frozen=True)
class TrainingData:
    """What a run reads.

    Attributes:
        collection: documents, queries, judgements.
        rows: one a training query: prompt, query_id, query, relevant; where the prompt names the
            backend, one a query and backend, with `backends`, the only one that rewards it.
        notes: what was left out or looks doubtful, to be shown.
        validation: name of the split that chooses the best adapter.
    """

    collection: Collection
    rows: list[dict[str, Any]]
    notes: list[str]
    validation: str
    test: str

    def facts(self) -> dict[str, Any]:
        """Fingerprints: equal ones mean the same documents, training rows and held-out splits."""
        rows = ((row["query_id"], row["query"], row["relevant"]) for row in self.rows)
        return {
            "documents": self.collection.fingerprint,
            "training_queries": _digest(rows),
            "validation_queries": self._split(self.validation),
            "test_queries": self._split(self.test),
        }

    def _split(self, split: str) -> str:
        queries = [(q.id, q.text, q.reference) for q in self.collection.queries(split)]
        judged = [self.collection.qrels(split, kind) for kind in self.collection.kinds(split)]
        return _digest([queries, judged])


def load_data(config: Config) -> TrainingData:
    """Load the collection, check it for leaks, and build the training rows.

    Raises:
        ConfigError: a split is missing, or no training query is left.
        retrievers.leaks.LeakError: a query id or a source document is in two splits.
        retrievers.identity.CollectionError: the data cannot be read.
    """
    settings = config.collection
    collection = open_collection(config)
    for key in ("train", "validation", "test"):
        split = getattr(settings, key)
        if split not in collection.splits:
            raise ConfigError(
                f"{config.where(f'collection.{key}')}: collection {collection.name!r} has no split "
                f"{split!r}; there are: {', '.join(collection.splits)}"
            )
        if not any(g > 0 for grades in collection.qrels(split).values() for g in grades.values()):
            raise ConfigError(
                f"{config.where(f'collection.{key}')}: in split {split!r} no document has a grade "
                "above 0, so that there is nothing to find; check its qrels"
            )
    splits = (settings.train, settings.validation, settings.test)
    check_leaks(collection, strict=True, splits=splits)
    notes = [f"{count} left out: {reason}" for reason, count in collection.left_out.items()]
    alike = near_leaks(collection, settings.near_duplicates, splits)
    if alike:
        shown = ", ".join(f"{one} and {other} ({score:.2f})" for one, other, score in alike[:SHOWN])
        notes.append(f"{len(alike)} near-duplicates in different splits, such as {shown}")
    rows, skipped = _rows(config, collection)
    if skipped:
        notes.append(f"{len(skipped)} training queries skipped: none of their documents is there")
    if not rows:
        raise ConfigError(f"split {settings.train!r}: no query has a document in the collection")
    return TrainingData(collection, rows, notes, settings.validation, settings.test)


def _digest(values: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for value in values:
        digest.update(repr(value).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _rows(config: Config, collection: Collection) -> tuple[list[dict[str, Any]], list[str]]:
    split = config.collection.train
    qrels = collection.qrels(split)
    rows: list[dict[str, Any]] = []
    skipped: list[str] = []
    for query in collection.queries(split):
        grades = qrels.get(query.id, {})
        if any(grade > 0 and document in collection for document, grade in grades.items()):
            rows += _rows_of(config, query, grades)
        else:
            skipped.append(query.id)
    return rows, skipped


def _rows_of(config: Config, query: Query, grades: dict[str, float]) -> Iterator[dict[str, Any]]:
    row = {
        "query_id": query.id,
        "query": query.text,
        "relevant": [{"id": document, "grade": grade} for document, grade in grades.items()],
    }
    if not config.prompt.by_backend:
        yield row | {"prompt": config.prompt.messages(query.text)}
        return
    for name in config.reward.backends:
        yield row | {"prompt": config.prompt.messages(query.text, name), "backends": [name]}


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
