"""What a collection asks of whoever evaluates on it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Conventions:
    """How results on a collection are reported by those who publish them.

    Attributes:
        primary: the measure that its results are compared by, such as "recall@5"; it stands beside
            NDCG@3, which is always reported.
        subset: column of the queries' metadata that parts them into subsets: the mean of each is
            averaged without regard to its size (macro), beside the mean over all queries (micro).
        drop_query_id: leave out a hit whose id is the query's, before ranks are counted: for
            collections whose queries are documents themselves.
    """

    primary: str | None = None
    subset: str | None = None
    drop_query_id: bool = False
