"""ViDoRe v1, v2 and v3: questions and page images, in the three layouts of its data sets.

v1  rows with `query`, `image`, `image_filename` (in the text variant also `text_description`);
    equal queries are one query, rows without a query are pages only
v2  configurations corpus (`corpus-id`, `image`), queries (`query-id`, `query`, `language`) and
    qrels (`query-id`, `corpus-id`, `score`)
v3  the same with underscores, graded scores, and `markdown`, `doc_id`, `page_number_in_doc`

Several data sets are one collection. The id of a page or query is SUBSET/ID whether there are
several or one, so that ids never collide and never change. Results are parted by `subset`, a data
set and a language.
"""

from collections import Counter
from pathlib import Path

from pydantic import Field

from retrievers.collection import Collection, Query
from retrievers.conventions import Conventions
from retrievers.identity import CollectionError, MissingFileError, UnknownNameError
from retrievers.loaders.hub import data_files, dataset_folder, short_name
from retrievers.loaders.rows import column_names
from retrievers.loaders.settings import LoaderSettings
from retrievers.loaders.storing import places, store
from retrievers.loaders.vidore_rows import Subset, judged, pages
from retrievers.qrels import SOURCE, Qrels

V1_COLUMNS = {"query", "image", "image_filename"}
GRADED = "markdown"  # a column that v3 has and v2 has not


class VidoreSettings(LoaderSettings):
    """What is loaded.

    Attributes:
        folders: the data sets: local copies, or hub:vidore/… .
        revision: of the hub's.
        split: of the data sets, and of the collection.
        language: of the queries, such as "english", as the data set writes it; None: all. Queries
            in other languages are counted.
        text: column with the pages' texts; None: the first of markdown, text_description, text
            that there is. "" for none: pages are images only.
    """

    folders: tuple[str, ...] = Field(min_length=1)
    revision: str | None = None
    split: str = "test"
    language: str | None = None
    text: str | None = None


def load(settings: VidoreSettings) -> Collection:
    """Load a collection.

    Raises:
        MissingFileError: no such folder, or a file is missing.
        UnknownNameError: no query is in the language.
        CollectionError: a row that is not as published; names file and row.
    """
    subsets = _subsets(settings)
    table, left_out = store(
        [path for subset in subsets for path in subset.pages],
        {"text": settings.text, "names": [subset.name for subset in subsets]},
        lambda _: pages(subsets, settings.text),
        images=True,
    )
    asked: list[Query] = []
    grades: Qrels = {}
    for subset in subsets:
        queries, qrels = judged(subset)
        asked += queries
        grades.update(qrels)
    kept = _in_language(asked, settings.language)
    left_out = dict(left_out)
    if len(kept) < len(asked):
        left_out["query in another language"] = len(asked) - len(kept)
    graded = all(GRADED in subset.columns for subset in subsets)
    return Collection(
        settings.name or "+".join(subset.name for subset in subsets),
        table,
        kept,
        {settings.split: {SOURCE: {query.id: grades[query.id] for query in kept}}},
        left_out=left_out,
        where=places(table),
        conventions=Conventions("ndcg@10" if graded else "ndcg@5", subset="subset"),
    )


def _subsets(settings: VidoreSettings) -> list[Subset]:
    names = [short_name(source) for source in settings.folders]
    if len(set(names)) < len(names):
        raise CollectionError(f"folders {list(settings.folders)} share a name; rename one of them")
    folders = [dataset_folder(source, settings.revision) for source in settings.folders]
    return [_subset(*pair, settings.split) for pair in zip(names, folders, strict=True)]


def _subset(name: str, folder: Path, split: str) -> Subset:
    try:
        parts = [data_files(folder, config, split) for config in ("corpus", "queries", "qrels")]
    except MissingFileError as missing:
        # Nothing of v2 and v3 is there, so it may be v1; half of it is no layout at all.
        try:
            pages = data_files(folder, None, split)
        except MissingFileError:
            raise missing from None
        if lacking := V1_COLUMNS - set(column_names(pages[0])):
            raise CollectionError(
                f"{pages[0]}: ViDoRe v1 has columns {', '.join(sorted(lacking))} too; and for v2 "
                f"and v3: {missing}"
            ) from missing
        parts = [pages, [], []]
    return Subset(name, *parts)


def _in_language(queries: list[Query], language: str | None) -> list[Query]:
    if language is None:
        return queries
    wanted = language.casefold()
    kept = [q for q in queries if str(q.metadata.get("language") or "").casefold() == wanted]
    if not kept:
        there = Counter(str(query.metadata.get("language")) for query in queries)
        raise UnknownNameError(
            f"no query is in the language {language!r}; there are: {dict(there)}; choose one of "
            "them, or leave out `language`"
        )
    return kept
