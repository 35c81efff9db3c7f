"""By what queries are parted in reports: languages, and whatever the data says about them."""

import logging
from collections.abc import Mapping
from typing import Any

from retrievers.collection import Collection
from retrievers.queries import Query
from rewards.metrics import Grades
from rewards.texts import main_script
from rewriter.config import Config
from rewriter.evaluation.breakdowns import ORIGIN
from rewriter.evaluation.judging import EvaluationError

logger = logging.getLogger(__name__)

LANGUAGES = "languages"  # of query and document, as "ko→en"
LANGUAGE = "language"  # the column of metadata that says it, of queries and of documents


def query_groups(
    collection: Collection, split: str, qrels: Mapping[str, Grades] | None = None
) -> dict[str, dict[str, str]]:
    """Query id → column → value, for `Record.groups`.

    Columns are those of the queries' metadata whose values are texts, numbers or lists of such, and
    "languages": the query's and that of the document it looks for (its source, else the one with
    the highest grade), as their metadata says under "language"; where it does not, the script of
    most letters stands in, such as "hangul".
    """
    judged = collection.qrels(split) if qrels is None else qrels
    return {
        query.id: _columns(query) | _languages(collection, query, judged.get(query.id, {}))
        for query in collection.queries(split)
    }


def check_subset(
    config: Config, subset: str | None, groups: Mapping[str, Mapping[str, str]]
) -> None:
    """See that some query has the column of subsets: no macro mean may be missing without a word.

    Raises:
        EvaluationError: the configuration names a column that there is not. Where the collection
            does, it is logged.
    """
    columns = dict.fromkeys((ORIGIN, *(name for one in groups.values() for name in one)))
    if subset is None or subset in columns:
        return
    said = f"no query has a column {subset!r}; there are: {', '.join(columns)}"
    if config.collection.subset is not None:
        raise EvaluationError(f"{config.where('collection.subset')}: {said}")
    logger.warning("there is no macro mean over %r: %s", subset, said)


def _columns(query: Query) -> dict[str, str]:
    texts = {name: _text(value) for name, value in query.metadata.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _text(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        parts = [_text(one) for one in value]
        return ", ".join(sorted(part for part in parts if part)) or None
    return str(value) if isinstance(value, str | int | float | bool) and value != "" else None


def _languages(collection: Collection, query: Query, grades: Grades) -> dict[str, str]:
    relevant = [document for document, grade in grades.items() if grade > 0]
    wanted = query.source or max(relevant, key=lambda one: grades[one], default=None)
    if wanted is None or wanted not in collection:
        return {}
    said = query.metadata.get(LANGUAGE) or main_script(query.text)
    document = collection.document(wanted)
    other = collection.metadata(wanted).get(LANGUAGE)
    return {LANGUAGES: f"{said}→{other or main_script(f'{document.title} {document.text}')}"}
