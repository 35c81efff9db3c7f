"""What a result holds beside its records: documents, page pictures, files for other tools."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from retrievers.collection import Collection
from rewards.metrics import Grades
from rewriter.config import Config
from rewriter.evaluation.documents import write_documents
from rewriter.evaluation.pictures import page_settings, write_pictures
from rewriter.records import Record
from rewriter.trec import TrecError, write_trec

logger = logging.getLogger(__name__)


def export(
    config: Config,
    records: Sequence[Record],
    qrels: Mapping[str, Grades],
    collection: Collection,
    backends: Iterable[str],
    folder: Path,
) -> None:
    """Write `documents.jsonl`, `pages/`, `runs/*.trec` and `qrels.trec`, in place of earlier ones.

    Ids that TREC's format cannot hold are a warning, and there are no TREC files then.
    """
    pictures = write_pictures(records, qrels, collection, page_settings(config, backends), folder)
    write_documents(records, qrels, collection, folder / "documents.jsonl", pictures)
    # Some may be of systems that are gone; beside another split's judgements they would score 0.
    for path in (*folder.glob("runs/*.trec"), *folder.glob("mteb/*.json")):
        path.unlink()
    (folder / "qrels.trec").unlink(missing_ok=True)
    try:
        write_trec(records, qrels, folder)
    except TrecError as error:
        logger.warning("no TREC files: %s", error)
