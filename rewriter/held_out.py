"""Held-out evaluation: a split, rewritten by a model and searched."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from retrievers.base import Retriever
from retrievers.conventions import Conventions
from retrievers.queries import Query
from rewards.search.patience import Patience
from rewriter.config import Config
from rewriter.config.conventions import with_primary
from rewriter.evaluation import evaluate
from rewriter.generation import Decoding, generate, on_all_ranks, rewrites
from rewriter.prompt import PromptSettings
from rewriter.prompt_systems import PromptSystem
from rewriter.records import Record, Rewrite

Made = Mapping[str, Mapping[str, Rewrite]]  # backend → query id → rewrite


@dataclass(frozen=True)
class HeldOut:
    """Evaluates a model on one split, on every reward backend apart.

    Attributes:
        config: of the run.
        tokenizer: the model's.
        queries, qrels: of the split.
        retrievers: backend → retriever.
        decoding: greedy, with the run's token limit.
        split: the split's name.
        groups: query id → by what reports part the queries.
        conventions: how results on the collection are reported.
    """

    config: Config
    tokenizer: Any
    queries: list[Query]
    qrels: Mapping[str, Mapping[str, float]]
    retrievers: Mapping[str, Retriever]
    decoding: Decoding
    split: str
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    conventions: Conventions = field(default_factory=Conventions)

    def write(self, model: Any, system: str | None = None) -> Made:
        """Backend → query id → rewrite, each query once, shared out over the ranks.

        Only where the prompt names the backend is there a rewrite for each; else all are the same.

        model: what writes. system: one of `evaluation.prompts`; None: the run's own prompt.
        """
        prompt = self._prompt(system)
        if prompt.by_backend:
            return {name: self._write(model, prompt, name) for name in self.retrievers}
        return self.for_all(self._write(model, prompt, None))

    def for_all(self, made: Mapping[str, Rewrite]) -> Made:
        """The same rewrites for every backend."""
        return dict.fromkeys(self.retrievers, made)

    def _write(self, model: Any, prompt: PromptSettings, backend: str | None) -> dict[str, Rewrite]:
        texts = {query.id: query.text for query in self.queries}
        decoding = self.decoding
        if isinstance(prompt, PromptSystem):
            decoding = replace(decoding, max_new_tokens=prompt.max_new_tokens)

        def work(ids: Any) -> dict[str, Rewrite]:
            conversations = prompt.batch([texts[identity] for identity in ids], backend)
            written = generate(model, self.tokenizer, conversations, decoding)
            return rewrites(written, ids, prompt)

        return on_all_ranks(work, list(texts))

    def records(self, system: str, made: Made) -> list[Record]:
        """Search with the rewrites and judge."""
        return [record for name in self.retrievers for record in self._records(system, made, name)]

    def _records(self, system: str, made: Made, backend: str) -> list[Record]:
        reward = self.config.reward
        return evaluate(
            system,
            made[backend],
            self.queries,
            self.qrels,
            {backend: self.retrievers[backend]},
            measures=with_primary(self.config.evaluation.measures, self.conventions),
            depth=self.config.evaluation.depth,
            split=self.split,
            render=self._prompt(system).search_text,
            groups=self.groups,
            drop_query_id=self.conventions.drop_query_id,
            patience=Patience(reward.retries, reward.backoff_s, reward.max_failures),
        )

    def _prompt(self, system: str | None) -> PromptSettings:
        return self.config.evaluation.prompts.get(system or "", self.config.prompt)
