"""One rank's part of a step: parse, search each backend once, score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from retrievers.base import Hit
from rewards.parsing import Completion
from rewards.search.backend import Backend
from rewards.search.rows import Row, RowReader
from rewards.search.step import RowScores
from rewards.shaping import Outcome

Values: TypeAlias = list[float | None]
Render: TypeAlias = Callable[[str, str], str]
Found: TypeAlias = dict[str, dict[str, list[Hit] | None]]  # backend -> text -> hits

SHOWN = 5  # hits a backend that are kept for the log


@dataclass(frozen=True)
class Scored:
    """R rows scored. texts: what was sent, None without a rewrite. columns: (R,) values each."""

    rows: list[Row]
    texts: list[str | None]
    found: Found
    failed: list[bool]
    columns: dict[str, Values]
    outcomes: list[Outcome]

    @property
    def distinct(self) -> int:
        """Number of different texts that were asked for, over all backends."""
        return len({text for hits in self.found.values() for text in hits})

    def shown(self) -> list[RowScores]:
        """The rows as they are logged."""
        return [self._shown(n, row) for n, row in enumerate(self.rows)]

    def _shown(self, n: int, row: Row) -> RowScores:
        text = self.texts[n]
        hits = {name: self.found[name].get(text) for name in row.backends} if text else {}
        return RowScores(
            query_id=row.query_id,
            query=row.query,
            completion=row.completion,
            parsed=row.parsed,
            search_text=text,
            hits={name: some[:SHOWN] for name, some in hits.items() if some is not None},
            rewards={name: values[n] for name, values in self.columns.items()},
            failed=self.failed[n],
        )


@dataclass(frozen=True)
class Scorer:
    """Scores this rank's rows on every backend. render: (query, rewrite) -> search text."""

    backends: list[Backend]
    read: RowReader
    render: Render | None

    def __call__(self, completions: Sequence[Completion], columns: Mapping[str, Any]) -> Scored:
        """Raises what reading, rendering and searching raise; see `RewardPanel`."""
        rows = self.read(completions, columns)
        texts = [self._text(row) for row in rows]
        found: Found = {}
        failed = [False] * len(rows)
        for backend in self.backends:
            found[backend.name], lost = self._find(backend, rows, texts)
            failed = [before or now for before, now in zip(failed, lost, strict=True)]
        scored = Scored(rows, texts, found, failed, {}, [])
        for backend in self.backends:
            scored.columns[backend.label] = [
                self._value(backend, scored, n) for n in range(len(rows))
            ]
        scored.outcomes.extend(self._outcome(scored, n) for n in range(len(rows)))
        return scored

    def _text(self, row: Row) -> str | None:
        rewrite = row.parsed.text
        if rewrite is None or self.render is None:
            return rewrite
        return self.render(row.query, rewrite)

    def _find(
        self, backend: Backend, rows: list[Row], texts: list[str | None]
    ) -> tuple[dict[str, list[Hit] | None], list[bool]]:
        wanted = [
            backend.wanted(row, text) if backend.name in row.backends else []
            for row, text in zip(rows, texts, strict=True)
        ]
        hits = backend.find(text for some in wanted for text in some)
        lost = [any(hits[text] is None for text in some) for some in wanted]
        backend.settle(one for one, some in zip(lost, wanted, strict=True) if some)
        return hits, lost

    def _value(self, backend: Backend, scored: Scored, n: int) -> float | None:
        row = scored.rows[n]
        # Another backend's failure counts too: TRL would add up what is left as if it were all.
        if scored.failed[n] or backend.name not in row.backends:
            return None
        return backend.score(row, scored.texts[n], scored.found[backend.name])

    def _outcome(self, scored: Scored, n: int) -> Outcome:
        row, text = scored.rows[n], scored.texts[n]
        applying = [backend for backend in self.backends if backend.name in row.backends]
        values = [(one.reward.weight, scored.columns[one.label][n]) for one in applying]
        total = sum(weight * value for weight, value in values if value is not None)
        return Outcome(
            group=row.group,
            search=None if scored.failed[n] else total,
            unparsed=row.parsed.text is None,
            outside=row.parsed.outside,
            found={one.name: one.hit(row, text, scored.found[one.name]) for one in applying},
        )
