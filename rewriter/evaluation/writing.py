"""Systems → rewrites: each once for all backends, and none that is in the cache."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from retrievers.index import fingerprint
from retrievers.queries import Query
from rewriter.config import Config
from rewriter.evaluation.completion_cache import CompletionCache
from rewriter.evaluation.models import Models
from rewriter.evaluation.plan import Entry
from rewriter.generation import BLANK, Completion, generate, rewrites
from rewriter.records import Rewrite
from rewriter.rewrite_file import read_rewrites
from rewriter.run_directory import versions
from rewriter.systems import Statistics
from rewriter.systems import rewrites as rule_rewrites

logger = logging.getLogger(__name__)

CHUNK = 8  # batches that are generated before they are put into the cache
_VERSIONS = ("torch", "transformers")  # that what a model writes may depend on
Samples: TypeAlias = list[dict[str, Rewrite]]  # for each sample: query id → rewrite


@dataclass(frozen=True)
class Written:
    """What a system made of all queries.

    Attributes:
        samples: by backend; they differ only where the prompt names the backend.
        render: (query, rewrite) → search text.
        facts: what it was made by, as JSON values.
    """

    samples: Mapping[str, Samples]
    render: Callable[[str, str], str]
    facts: dict[str, Any]


class Writer:
    """Makes the rewrites of any system.

    Args:
        config: of the run.
        queries: to rewrite.
        backends: that will be searched with the rewrites.
        statistics: what rules may know about the collection.
        cache: folder of completions.
        missing_ok: whether a file of rewrites may lack queries.
    """

    def __init__(
        self,
        config: Config,
        queries: Sequence[Query],
        backends: Sequence[str],
        statistics: Statistics,
        cache: Path,
        *,
        missing_ok: bool = False,
    ) -> None:
        self._config = config
        self._queries = queries
        self._backends = backends
        self._statistics = statistics
        self._cache = cache
        self._missing_ok = missing_ok
        self._models = Models(config)

    def write(self, entry: Entry) -> Written:
        """The rewrites of one system.

        Raises:
            CheckpointError, ModelError: its model cannot be loaded.
            RecordError, MissingFileError, CollectionError: its file cannot be used.
        """
        plain = self._config.prompt.search_text
        facts: dict[str, Any] = {"kind": entry.kind, "label": entry.label}
        if entry.kind == "rule":
            made = rule_rewrites(entry.name, self._queries, self._statistics)
            return Written(self._for_all([made]), plain, facts)
        if entry.kind == "file" and entry.place is not None:
            made = read_rewrites(entry.place, self._queries, missing_ok=self._missing_ok)
            return Written(self._for_all([made]), plain, facts | {"file": str(entry.place)})
        with self._models.rewriter(entry) as (rewriter, weights):
            return self._generated(entry, rewriter, weights, facts)

    def _for_all(self, samples: Samples) -> dict[str, Samples]:
        return dict.fromkeys(self._backends, samples)

    def _generated(
        self, entry: Entry, rewriter: Any, weights: str, facts: Mapping[str, Any]
    ) -> Written:
        settings = self._config.evaluation
        if settings.samples > 1:
            rewriter.decoding = replace(rewriter.decoding, temperature=settings.temperature)
        made_by = {
            "weights": weights,
            "prompt": rewriter.prompt.model_dump(mode="json"),
            "decoding": {k: v for k, v in asdict(rewriter.decoding).items() if k != "batch_size"},
            "template": rewriter.tokenizer.chat_template,
            "versions": {name: versions().get(name) for name in _VERSIONS},
        }
        if rewriter.prompt.by_backend:
            samples = {
                name: self._samples(entry, rewriter, made_by | {"backend": name}, name)
                for name in self._backends
            }
        else:
            samples = self._for_all(self._samples(entry, rewriter, made_by, None))
        more = {"checkpoint": str(entry.place)} if entry.place else {}
        short = made_by | {"template": fingerprint({"template": made_by["template"]})[:12]}
        return Written(samples, rewriter.prompt.search_text, {**facts, **more, **short})

    def _samples(
        self, entry: Entry, rewriter: Any, made_by: Mapping[str, Any], backend: str | None
    ) -> Samples:
        settings = self._config.evaluation
        samples = []
        for number in range(settings.samples):
            draw = {"seed": settings.seed, "sample": number} if settings.samples > 1 else {}
            cache = CompletionCache(self._cache, {**made_by, **draw})
            seed = int(fingerprint({"seed": settings.seed, "sample": number})[:8], 16)
            samples.append(self._complete(entry, rewriter, cache, seed, backend))
        return samples

    def _complete(
        self, entry: Entry, rewriter: Any, cache: CompletionCache, seed: int, backend: str | None
    ) -> dict[str, Rewrite]:
        asked = dict.fromkeys(query.text for query in self._queries if query.text.strip())
        # Long ones first: a memory that is too small is noticed at once. Equally long ones in the
        # order of the queries, so that batches are those of the training's own evaluation.
        todo = sorted((text for text in asked if cache.get(text) is None), key=len, reverse=True)
        if todo:
            logger.info("%s: rewriting %d of %d texts", entry.name, len(todo), len(asked))
        for chunk in _chunks(todo, CHUNK * rewriter.decoding.batch_size):
            written = _write(rewriter, chunk, seed, backend)
            cache.add(dict(zip(chunk, written, strict=True)))
        found = {query.id: cache.get(query.text) for query in self._queries}
        known = {identity: one for identity, one in found.items() if one is not None}
        parsed = rewrites(list(known.values()), list(known), rewriter.prompt)
        return {query.id: parsed.get(query.id, Rewrite(None, BLANK)) for query in self._queries}


def _chunks(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def _write(rewriter: Any, texts: Sequence[str], seed: int, backend: str | None) -> list[Completion]:
    import torch

    conversations = rewriter.prompt.batch(texts, backend)
    with torch.random.fork_rng():
        # From the texts too: a run that goes on after a kill draws what it would have drawn.
        torch.manual_seed(seed ^ int(fingerprint({"texts": list(texts)})[:8], 16))
        return generate(rewriter.model, rewriter.tokenizer, conversations, rewriter.decoding)
