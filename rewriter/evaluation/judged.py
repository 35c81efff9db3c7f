"""Whether a file of judgements fits the queries and documents that it is to judge."""

import logging
from collections.abc import Sequence

from retrievers.collection import Collection
from retrievers.qrels import Judgements, dangling
from retrievers.queries import Query
from rewriter.evaluation.judging import EvaluationError

logger = logging.getLogger(__name__)


def check_judgements(
    judged: Judgements, queries: Sequence[Query], collection: Collection, name: str
) -> None:
    """Refuse a file that judges nothing here, and log what part of it does not fit.

    Args:
        judged: its judgements.
        queries: of the split.
        collection: whose documents are judged.
        name: of the file, for messages.

    Raises:
        EvaluationError: it judges none of the queries, or no document of the collection.
    """
    ids = {query.id for query in queries}
    kept = {query: grades for query, grades in judged.items() if query in ids}
    if not kept:
        raise EvaluationError(
            f"{name}: judges none of the {len(queries)} queries of the split, but for example "
            f"{next(iter(judged))!r}; check that the ids are the collection's"
        )
    if not any(kept.values()):
        raise EvaluationError(
            f"{name}: holds queries of the split, but no judgement of them; add some"
        )
    lost = dangling([kept], collection)
    if len(lost) == sum(map(len, kept.values())):
        raise EvaluationError(
            f"{name}: no judged document is in collection {collection.name!r}, for example "
            f"{lost[0][1]!r}; check that the ids are the collection's"
        )
    unjudged = [query for query in ids if query not in kept]
    _log(name, "queries of the split are not judged and left out", unjudged)
    _log(name, "judged queries are not in the split", [q for q in judged if q not in ids])
    _log(name, "judged documents are not in the collection", [document for _, document in lost])


def _log(name: str, said: str, found: Sequence[str]) -> None:
    if found:
        logger.warning("%s: %d %s, for example %r", name, len(found), said, min(found))
