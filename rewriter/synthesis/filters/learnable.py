"""Queries without a learning signal: the untrained rewriter always hits, or never does.

GRPO compares the rewrites of one query; where all of them earn the same, it learns nothing.
"""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from retrievers.base import Hit
from rewards.metrics import hit
from rewriter.synthesis.filters.base import FAILED, Backend, Context, Draft


class LearnableSettings(BaseModel):
    """How the untrained rewriter is tried. Its model and prompt are the configuration's.

    Attributes:
        backend: that is searched.
        k: a hit is the source document within the first k.
        samples: rewrites a query; as many as a training's `num_generations` see what it will see.
        temperature: of the samples.
        always: drop queries that all samples hit. never: drop those that none does.
        batch_size: queries rewritten at once.
        max_new_tokens: longest rewrite; None takes the training's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Backend = "lexical"
    k: int = Field(default=10, ge=1)
    samples: int = Field(default=8, ge=2)
    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    always: bool = True
    never: bool = True
    batch_size: int = Field(default=16, ge=1)
    max_new_tokens: int | None = Field(default=None, ge=1)


class LearnableFilter:
    """Drops queries whose samples all hit, or all miss."""

    def __init__(self, settings: LearnableSettings, context: Context) -> None:
        self._settings = settings
        self._context = context

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """See `Filter`."""
        samples = list(self._samples([draft.text for draft in drafts])) if drafts else []
        sent = [text for texts in samples for text in texts if text is not None]
        found = self._context.find(self._settings.backend, sent, self._settings.k)
        return [
            self._judge([texts[row] for texts in samples], found, draft.document)
            for row, draft in enumerate(drafts)
        ]

    def _judge(
        self,
        texts: Sequence[str | None],
        found: Mapping[str, list[Hit] | None],
        document: str,
    ) -> str | None:
        hits = [[] if text is None else found[text] for text in texts]
        if any(one is None for one in hits):
            return FAILED
        counts = sum(
            hit([h.id for h in one or ()], {document: 1.0}, self._settings.k) for one in hits
        )
        if self._settings.always and counts == len(texts):
            return "always hit"
        return "never hit" if self._settings.never and counts == 0 else None

    def _samples(self, queries: Sequence[str]) -> Iterator[list[str | None]]:
        """For each sample: (Q,) search texts, None where nothing could be parsed."""
        from rewriter.generation import rewrites
        from rewriter.synthesis.filters.untrained import Untrained

        prompt = self._context.config.prompt
        untrained = Untrained(self._context, self._settings)
        for number in range(self._settings.samples):
            written = untrained.complete(queries, number)
            made = rewrites(written, list(map(str, range(len(queries)))), prompt)
            yield [
                None if one.text is None else prompt.search_text(query, one.text)
                for query, one in zip(queries, made.values(), strict=True)
            ]
