"""Four queries, a backend that knows their hits by heart, and the records of two systems."""

from collections.abc import Mapping, Sequence

from retrievers.base import Hit, Retriever
from retrievers.queries import Query
from rewriter.evaluation import evaluate
from rewriter.records import Record, Rewrite


class Fake(Retriever):
    """Knows the answers by heart: search text → document ids, all of score 1."""

    fingerprint = "fake"

    def __init__(self, answers: Mapping[str, str], backend: str = "lexical") -> None:
        super().__init__()
        self.backend = backend
        self.answers = answers
        self.calls: list[tuple[list[str], int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.calls.append((list(queries), k))
        return super().search(queries, k)

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [[Hit(doc, 1.0) for doc in self.answers.get(q, "").split()] for q in queries]


QUERIES = [
    Query("q1", "long one", origin="synthetic"),
    Query("q2", "long two"),
    Query("q3", "long three"),
    Query("q4", "long four"),
]
QRELS = {
    "q1": {"a": 1.0},
    "q2": {"b": 2.0, "c": 1.0, "a": 0.0, "d": -1.0},
    "q3": {"c": 1.0},
    "q4": {"a": 0.0},  # nothing relevant
    "other": {"z": 1.0},  # not asked for
}
ANSWERS = {
    "long one": "x a",  # rank 2: NDCG@3 .63093
    "long two": "x y d b",  # rank 4: 0
    "long four": "a b",
    "one": "a x",  # rank 1: 1
    "two": "c b c a",  # DCG 1 + 2 × .63093, ideal 2 + .63093: .85972
}
RAW = {query.id: Rewrite(None) for query in QUERIES}
TRAINED = {
    "q1": Rewrite("one"),
    "q2": Rewrite("two"),
    "q3": Rewrite("three"),  # finds nothing
    "q4": Rewrite(None, "empty"),
}
MEASURES = ("ndcg@3", "mrr@10", "recall@10")


def records(**options: object) -> list[Record]:
    options = {"measures": MEASURES, "depth": 10} | options
    backends = {"lexical": Fake(ANSWERS), "semantic": Fake({"three": "c"}, "semantic")}
    return [
        record
        for system, rewrites in (("raw", RAW), ("trained", TRAINED))
        for record in evaluate(system, rewrites, QUERIES, QRELS, backends, **options)  # type: ignore[arg-type]
    ]


def pick(found: Sequence[Record], system: str, backend: str, query: str) -> Record:
    (record,) = (r for r in found if (r.system, r.backend, r.query_id) == (system, backend, query))
    return record
