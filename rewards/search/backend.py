"""One backend of a panel: search with patience, then score."""

from collections.abc import Iterable, Mapping
from functools import partial

from retrievers.base import Hit, Retriever
from rewards.metrics import Grades, Measure, Ranking, ndcg
from rewards.search.patience import Patience, PatientSearch
from rewards.search.rows import Row
from rewards.settings import RewardSettings


class Backend:
    """A retriever, how its results are rewarded, and how often it failed in a row.

    Args:
        name: as in the settings.
        retriever: what is searched.
        settings: of the whole reward.
        drop_query_id: leave out a hit whose id is the query's; one more is asked for instead.

    Attributes:
        reward: this backend's own settings.
        label: name of its reward function.
    """

    def __init__(
        self,
        name: str,
        retriever: Retriever,
        settings: RewardSettings,
        drop_query_id: bool = False,
    ) -> None:
        self.name = name
        self.retriever = retriever
        self.reward = settings.backends[name]
        self.label = settings.label(name)
        depth = settings.depth(name)
        patience = Patience(settings.retries, settings.backoff_s, settings.max_failures)
        self._search = PatientSearch(name, retriever, depth + drop_query_id, patience)
        self._drop_query_id = drop_query_id
        self._in_a_row = 0
        kind = self.reward.kind
        self._measure = partial(best_rank, k=depth) if kind == "rank" else Measure(kind, depth)

    def wanted(self, row: Row, text: str | None) -> list[str]:
        """Texts that have to be searched to reward one row; `text` is None if it has no rewrite."""
        raw = [row.query] if self.reward.gain else []
        return raw if text is None else [text, *raw]

    def find(self, texts: Iterable[str]) -> dict[str, list[Hit] | None]:
        """Text -> its hits, None where the search failed for good; see `PatientSearch.find`."""
        return self._search.find(texts)

    def settle(self, rows_failed: Iterable[bool]) -> None:
        """Count failing rows in a row, over all steps.

        Args:
            rows_failed: for every row that needed a search, in order, whether it failed.

        Raises:
            TooManyFailures: more in a row than `max_failures` allows.
        """
        for failed in rows_failed:
            self._in_a_row = self._in_a_row + 1 if failed else 0
            self._search.give_up(self._in_a_row)

    def score(self, row: Row, text: str | None, found: Mapping[str, list[Hit] | None]) -> float:
        """What a row earns: the score of its rewrite, 0 without one, less the raw query's (gain).

        Without the subtraction for unparsed completions too, breaking the format would earn more
        than a rewrite that is worse than the raw query.
        """
        earned = 0.0 if text is None else self._value(row, text, found)
        return earned - self._value(row, row.query, found) if self.reward.gain else earned

    def hit(self, row: Row, text: str | None, found: Mapping[str, list[Hit] | None]) -> bool:
        """Whether the rewrite brought back a relevant document."""
        return text is not None and self._value(row, text, found) > 0

    def _value(self, row: Row, text: str, found: Mapping[str, list[Hit] | None]) -> float:
        ids = [hit.id for hit in found[text] or ()]
        if self._drop_query_id:
            ids = [one for one in ids if one != row.query_id]
        return self._measure(ids, row.grades)


def best_rank(ranking: Ranking, grades: Grades, k: int) -> float:
    """1 / log2(rank + 1) of the best-ranked relevant document within the first k, else 0."""
    # NDCG with that document as the only relevant one: the same discount from the same scorer.
    return max(ndcg(ranking, {doc: 1.0}, k) for doc, grade in grades.items() if grade > 0)
