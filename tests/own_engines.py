"""Search engines that tests name as `retrievers.custom.path`."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

FORMS: dict[str, Any] = {
    "ids": lambda found: [one for one, _ in found],
    "pairs": lambda found: found,
    "lists": lambda found: [list(pair) for pair in found],
    "dicts": lambda found: [{"id": one, "score": score} for one, score in found],
    "dicts without score": lambda found: [{"id": one} for one, _ in found],
    "objects": lambda found: [Scored(one, score, "x") for one, score in found],
    "generator": lambda found: iter(found),
    "one missing": lambda found: [found[0], (found[1][0], None)],
    "none": lambda found: None,
    "text": lambda found: "d0",
    "mapping": lambda found: dict(found),
    "triples": lambda found: [(one, score, 0) for one, score in found],
    "swapped": lambda found: [(score, one) for one, score in found],
    "nan": lambda found: [(one, float("nan")) for one, _ in found],
    "numbers": lambda found: [(int(one[1:]), score) for one, score in found],
}


class Scored(NamedTuple):
    """A hit with more than a pair holds."""

    id: str
    score: float
    text: str


class Engine:
    """Finds d2 and d0 for everything, in the form it is told to."""

    def __init__(self, form: str = "pairs", found: Sequence[Any] = (("d2", 1), ("d0", 5))) -> None:
        self.form, self.found = form, [tuple(pair) for pair in found]
        self.calls: list[tuple[list[str], int]] = []

    def search(self, queries: list[str], k: int) -> list[Any]:
        self.calls.append((queries, k))
        return [FORMS[self.form](self.found) for _ in queries]


class Reader:
    """Wants the collection; finds documents that hold the text."""

    def __init__(self, suffix: str, collection: Any) -> None:
        self.texts = dict(zip(collection.ids, (b for _, b in collection.texts()), strict=True))
        self.suffix = suffix

    def search(self, queries: list[str], top_k: int) -> Iterator[list[str]]:
        for query in queries:
            held = [one for one, text in self.texts.items() if query in text + self.suffix]
            yield held[:top_k]


class Flat:
    """One list for all queries."""

    def search(self, queries: list[str], k: int) -> list[str]:
        return ["d0", "d1", "d2"]


class Raises:
    """Its engine is down."""

    def search(self, queries: list[str], k: int) -> list[Any]:
        raise RuntimeError("down")


class Asynchronous:
    """Cannot be called as the others."""

    async def search(self, queries: list[str], k: int) -> list[Any]:
        return []


class OneQuery:
    """Takes something else."""

    def search(self, query: str) -> list[str]:
        return []


class Nothing:
    """No engine."""


def make(form: str) -> Engine:
    """An engine from a function."""
    return Engine(form)


constant = 5
