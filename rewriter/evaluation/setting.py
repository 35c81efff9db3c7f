"""What an evaluation is carried out on: the split, its judgements, the backends; its facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from retrievers import RETRIEVERS, Retriever
from retrievers.collection import Collection
from retrievers.conventions import Conventions
from retrievers.index import fingerprint
from retrievers.loaders.judgements import read_qrels
from retrievers.qrels import Qrels, dangling
from retrievers.queries import Query
from rewriter.config import Config
from rewriter.config.backends import open_retrievers
from rewriter.config.collection import open_collection
from rewriter.config.conventions import conventions, with_primary
from rewriter.evaluation.groups import check_subset, query_groups
from rewriter.evaluation.judged import check_judgements
from rewriter.evaluation.judging import EvaluationError
from rewriter.records import Record, Rewrite
from rewriter.run_directory import PACKAGES, git_commit, versions

FORMAT = 1
MORE_PACKAGES: tuple[str, ...] = (
    "rlqr",
    "sentence-transformers",
    "colpali-engine",
    "numpy",
    "faiss-cpu",
)
MORE_PACKAGES += ("kiwipiepy", "PyStemmer", "pymilvus")


@dataclass(frozen=True)
class Setting:
    """Everything but the systems.

    Attributes:
        config: the resolved configuration.
        collection: documents and queries.
        split: its name.
        queries, qrels: those that are evaluated.
        judged_by: "split", or the file of judgements that stands in for the split's own.
        retrievers: backend → where to search.
        groups: query id → by what reports part the queries.
        conventions: how results on the collection are reported.
    """

    config: Config
    collection: Collection
    split: str
    queries: list[Query]
    qrels: Qrels
    judged_by: str
    retrievers: Mapping[str, Retriever]
    groups: Mapping[str, Mapping[str, str]]
    conventions: Conventions

    @classmethod
    def open(
        cls, config: Config, split: str | None, backends: Sequence[str] | None, qrels: Path | None
    ) -> "Setting":
        """Open collection and backends.

        Raises:
            EvaluationError: no query of the split is judged, no judged document is in the
                collection, no query has the column of subsets, or a backend does not exist or lacks
                settings.
            CollectionError: the data cannot be read, or there is no such split.
        """
        _check_backends(config, backends or ())
        collection = open_collection(config)
        split = split or config.collection.test
        queries = collection.queries(split)
        judged = collection.qrels(split)
        if qrels is not None:
            judged = read_qrels(qrels)
            check_judgements(judged, queries, collection, f"{qrels}")
        kept = [query for query in queries if query.id in judged]
        groups = query_groups(collection, split, judged)
        found = conventions(config, collection)
        check_subset(config, found.subset, groups)
        return cls(
            config=config,
            collection=collection,
            split=split,
            queries=kept,
            qrels={query.id: judged[query.id] for query in kept},
            judged_by="split" if qrels is None else str(qrels),
            retrievers=open_retrievers(config, collection, backends),
            groups=groups,
            conventions=found,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What a result folder is of: with another of these it is another result."""
        return {
            "collection": self.collection.name,
            "split": self.split,
            "judged_by": self.judged_by,
        }

    @property
    def measures(self) -> tuple[str, ...]:
        """What is computed."""
        return with_primary(self.config.evaluation.measures, self.conventions)

    def fingerprint_of(
        self, backend: str, system: str, samples: Sequence[Mapping[str, Rewrite]], texts: Any
    ) -> str:
        """Hash of all that the records of one (system, backend) are made of."""
        made = [[(r.text, r.failure) for r in one.values()] for one in samples]
        return fingerprint(
            {
                "record": sorted(Record.__dataclass_fields__),
                "names": [system, backend, self.split],
                "backend": self.retrievers[backend].fingerprint,
                "measures": [list(self.measures), self.config.evaluation.depth],
                "drop_query_id": self.conventions.drop_query_id,
                "data": [self._queries(), self._judgements()],
                "rewrites": made,
                "texts": texts,
            }
        )

    def facts(self, systems: Mapping[str, Any]) -> dict[str, Any]:
        """What the result depends on. systems: name → what it was made by."""
        names = dict.fromkeys(self.retrievers)
        return {
            "format": FORMAT,
            **self.identity,
            "documents": self.collection.fingerprint,
            "queries": self._queries(),
            "unjudged": len(self.collection.queries(self.split)) - len(self.queries),
            "qrels": self._judgements(),
            "dangling": len(dangling([self.qrels], self.collection)),
            "measures": list(self.measures),
            "depth": self.config.evaluation.depth,
            "primary": self.conventions.primary,
            "subset": self.conventions.subset,
            "drop_query_id": self.conventions.drop_query_id,
            "backends": {name: self._backend(name) for name in names},
            "systems": dict(systems),
            "versions": versions((*PACKAGES, *MORE_PACKAGES)),
            "git_commit": git_commit(),
            "config": self.config.dump(),
        }

    def _backend(self, name: str) -> dict[str, Any]:
        settings = self.config.retriever_settings(name)
        parts = getattr(settings, "part_names", ())
        found: dict[str, Any] = {
            "fingerprint": self.retrievers[name].fingerprint,
            "settings": settings.model_dump(mode="json"),
            "index": self.retrievers[name].facts,
        }
        if parts:
            found["parts"] = {
                part: self.config.retriever_settings(part).model_dump(mode="json") for part in parts
            }
        return found

    def _queries(self) -> str:
        rows = [
            [q.id, q.text, q.origin, q.source, dict(self.groups.get(q.id, {}))]
            for q in self.queries
        ]
        return fingerprint({"queries": rows})

    def _judgements(self) -> str:
        return fingerprint({"qrels": self.qrels})


def _check_backends(config: Config, names: Sequence[str]) -> None:
    for name in names:
        if name not in RETRIEVERS:
            there = ", ".join(RETRIEVERS)
            raise EvaluationError(f"no backend {name!r}; there are: {there}")
        try:
            config.retriever_settings(name)
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
            )
            raise EvaluationError(
                f"backend {name!r} needs settings ({faults}); give them under `retrievers.{name}`"
            ) from error
