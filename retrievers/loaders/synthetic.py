"""A folder of `rlqr synth` over the documents that its queries were written from.

The folder itself is a collection in the layout of BEIR, and `beir` loads it too; but that layout
has no page images. Here the documents come from the source, opened as it was.
"""

import json
from pathlib import Path
from typing import Any

from retrievers.collection import Collection
from retrievers.identity import CollectionError, MissingFileError
from retrievers.loaders import beir
from retrievers.loaders import load as load_source
from retrievers.loaders.settings import LoaderSettings

FACTS = "synthesis.json"


class SyntheticSettings(LoaderSettings):
    """folder: that `rlqr synth` wrote; what it calls its source has to be where it was."""

    folder: Path


def load(settings: SyntheticSettings) -> Collection:
    """Load queries and judgements from the folder, documents from the source.

    Raises:
        MissingFileError: no such folder, or `rlqr synth` did not finish it.
        CollectionError: the source has other documents now; or what its loader finds wrong.
    """
    path = settings.folder / FACTS
    if not path.is_file():
        raise MissingFileError(f"{path} is missing; give a folder that `rlqr synth` has finished")
    try:
        source: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["source"]
        documents = load_source(source["loader"], **source["options"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, CollectionError):
            raise
        raise CollectionError(f"{path}: not written by `rlqr synth` ({error!r})") from error
    if documents.fingerprint != source.get("fingerprint"):
        raise CollectionError(
            f"{settings.folder}: its queries were written from other documents than the source "
            f"{source['loader']} {source['options']} has now; write them anew with `rlqr synth`"
        )
    written = beir.load(settings.folder)
    return Collection(
        settings.name or written.name,
        documents.documents,
        [query for split in written.splits for query in written.queries(split)],
        {
            split: {kind: written.qrels(split, kind) for kind in written.kinds(split)}
            for split in written.splits
        },
        left_out=documents.left_out,
        conventions=documents.conventions,
    )
