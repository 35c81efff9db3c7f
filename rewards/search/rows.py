"""What TRL hands to a reward function -> typed rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.parsing import Completion, Parsed, parse
from rewards.shaping import Group

COLUMNS = ("query_id", "query", "relevant")


class RewardInputError(ValueError):
    """A data set whose rows cannot be rewarded."""


@dataclass(frozen=True)
class Row:
    """One completion with what its prompt's data set row says.

    Attributes:
        query_id, query: of the raw query.
        grades: document id -> grade; at least one is above 0.
        backends: the panel's backends that apply to the prompt.
        completion: the model's whole output.
        parsed: the rewrite, or why there is none.
    """

    query_id: str
    query: str
    grades: Mapping[str, float]
    backends: tuple[str, ...]
    completion: str
    parsed: Parsed

    @property
    def group(self) -> Group:
        """Equal for all completions of a prompt, on every rank.

        One query can have a prompt for each backend in the same batch: those are groups apart.
        """
        return (self.query_id, *self.backends)


@dataclass(frozen=True)
class RowReader:
    """Reads a batch into rows.

    Attributes:
        backends: the panel's backends.
        answer_tag: see `rewards.parsing.parse`.
        idle: whether a row may have no applying backend, because something else rewards it.
    """

    backends: tuple[str, ...]
    answer_tag: str | None = None
    idle: bool = False

    def __call__(self, completions: Sequence[Completion], columns: Mapping[str, Any]) -> list[Row]:
        """Rows of a batch.

        Args:
            completions: (R,) strings or message lists.
            columns: TRL's keyword arguments; each data set column is a list of R values. Needed are
                `query_id`, `query` and `relevant` (a list of {"id", "grade"}); `backends` (a list
                of names) may be absent, or None in a row: then all apply.

        Raises:
            RewardInputError: a column is missing, or a row cannot be rewarded.
            TypeError: a completion is neither a string nor a message list.
        """
        for name in COLUMNS:
            if name not in columns:
                raise _missing(name, columns)
        applying = columns.get("backends") or [None] * len(completions)
        needed = (columns[name] for name in COLUMNS)
        batch = zip(*needed, applying, completions, strict=True)
        return [self._row(*values) for values in batch]

    def _row(
        self, query_id: Any, query: Any, relevant: Any, named: Any, completion: Completion
    ) -> Row:
        return Row(
            query_id=str(query_id),
            query=_query(query_id, query),
            grades=_grades(query_id, relevant),
            backends=self._applying(query_id, named),
            completion=_text(completion),
            parsed=parse(completion, self.answer_tag),
        )

    def _applying(self, query_id: object, named: Sequence[str] | None) -> tuple[str, ...]:
        if named is None:
            return self.backends
        applying = tuple(name for name in self.backends if name in list(named))
        if not applying and not self.idle:
            raise RewardInputError(
                f"query {query_id}: backends is {named!r}, which names none of "
                f"{', '.join(self.backends)}; nothing rewards it: correct it, or leave it out"
            )
        return applying


def _missing(name: str, columns: Mapping[str, Any]) -> RewardInputError:
    present = sorted(key for key, value in columns.items() if isinstance(value, list))
    return RewardInputError(
        f'the data set has no column "{name}"; a search reward needs {", ".join(COLUMNS)}, and '
        f"there are {', '.join(present) or 'none'}"
    )


def _query(query_id: object, query: object) -> str:
    if isinstance(query, str):
        return query
    raise RewardInputError(f"query {query_id}: its text is {query!r}; it must be a string")


def _grades(query_id: object, relevant: Any) -> dict[str, float]:
    try:
        grades = {str(one["id"]): float(one["grade"]) for one in relevant}
    except (TypeError, KeyError, ValueError) as error:
        raise RewardInputError(
            f'query {query_id}: relevant is {relevant!r}; give a list of {{"id": document id, '
            '"grade": number}'
        ) from error
    if not any(grade > 0 for grade in grades.values()):
        raise RewardInputError(
            f"query {query_id} has no document of grade above 0, so that every rewrite earns 0; "
            "leave it out of the training set"
        )
    return grades


def _text(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    contents = (message.get("content") for message in completion)
    return "\n".join(text if isinstance(text, str) else str(text) for text in contents if text)
