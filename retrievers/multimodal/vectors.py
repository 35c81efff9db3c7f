"""Pages → vectors, in shards that survive a kill."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Documents
from retrievers.index import IndexWriter
from retrievers.multimodal.encoder import PageEncoder
from retrievers.multimodal.pooled import pooled_pages
from retrievers.multimodal.reading import Batch, PageReading, Seen, visible
from retrievers.multimodal.stored import PageVectors
from retrievers.pages.sources import PageSource
from retrievers.semantic.stored import STORED, DType, as_float32
from retrievers.shards import open_or_remake
from retrievers.terms import EmptyCorpusError

SHARD = 32  # documents: what a kill can cost
WINDOW = 8  # batches of images held at once, to put those of one size together
COUNTS = ("documents", "blank", "pages", "blank_pages", "failed_pages")


@dataclass(frozen=True)
class _Shard:
    """The pages of a few documents; `about` as in `PageVectors`.

    `values`: gives (V, D), for as long as they are needed: those on the disk are mapped, which
    keeps a file open, and a process may have about a thousand.
    `arrays`: lengths, owners and digests of the images, (P,).
    """

    values: Callable[[], NDArray[Any]]
    arrays: Mapping[str, NDArray[Any]]
    about: Mapping[str, Any]

    NAMES = ("lengths", "owners", "digests")


class PageVectorBuilder:
    """Encodes the pages of a collection.

    Args:
        documents: the collection.
        source: its pages.
        encoder: the model.
        dtype: of what is stored.
        skip: whether a page that the model's processor refuses is left out and counted; else it is
            a PageError, which names it and its file.
    """

    def __init__(
        self,
        documents: Documents,
        source: PageSource,
        encoder: PageEncoder,
        dtype: DType,
        skip: bool = False,
    ) -> None:
        self._ids = documents.ids
        self._source = source
        self._encoder = encoder
        self._dtype = dtype
        self._skip = skip
        self._reading = PageReading(self._ids, encoder, dtype, skip)

    def in_memory(self) -> PageVectors:
        """Encode everything, keep nothing on the disk."""
        with self._bar() as bar:
            shards = [self._encoded(batch, bar) for batch in self._batches()]
        about = self._summed(shards)
        return self._joined(shards, about, np.empty(self._shape(shards), STORED[self._dtype]))

    def write(self, writer: IndexWriter, folder: Path, parts: Mapping[str, Any]) -> None:
        """Encode what is not encoded yet, then write the arrays of `PageVectors`.

        Args:
            writer: of the index.
            folder: where finished shards are kept until then.
            parts: what the vectors depend on; a shard made of anything else is made again.
        """
        with self._bar() as bar:
            shards = list(self._shards(folder, parts, bar))
        writer.about.update(self._summed(shards))
        values = np.lib.format.open_memmap(
            writer.path / "values.npy",
            mode="w+",
            dtype=STORED[self._dtype],
            shape=self._shape(shards),
        )
        made = self._joined(shards, writer.about, values)
        values.flush()
        for name in PageVectors.DERIVED:
            writer.array(name, getattr(made, name))

    def _shards(self, folder: Path, parts: Mapping[str, Any], bar: Any) -> Iterator[_Shard]:
        for batch in self._batches():
            first, documents = batch
            asked = {**parts, "first": first, "count": len(documents)}

            def fill(writer: IndexWriter, batch: Batch = batch) -> None:
                made = self._encoded(batch, bar)
                for name, values in {"values": made.values(), **made.arrays}.items():
                    writer.array(name, values)
                writer.about.update(made.about)

            place = folder / f"{first:012d}"
            shard = open_or_remake(place, "pages", asked, fill)
            if shard.about["failed_pages"] and not self._skip:
                # It is of a build that went on without them; made again, the first is named.
                shutil.rmtree(place)
                shard = open_or_remake(place, "pages", asked, fill)
            bar.update(first + len(documents) - bar.n)
            arrays = {name: shard.read(name) for name in _Shard.NAMES}
            yield _Shard(partial(shard.array, "values"), arrays, shard.about)

    def _batches(self) -> Iterator[Batch]:
        documents = self._source.documents()
        first = 0
        while batch := list(islice(documents, SHARD)):
            yield first, batch
            first += len(batch)

    def _encoded(self, batch: Batch, bar: Any) -> _Shard:
        self._source.missing.clear()
        documents = len(batch[1])
        counts = dict.fromkeys(COUNTS, 0) | {"documents": documents}
        kept: list[tuple[Seen, NDArray[Any]]] = []
        stream = visible(batch, counts, bar)
        while window := list(islice(stream, WINDOW * self._encoder.batch_size)):
            for page, stored in zip(window, self._reading.vectors(window), strict=True):
                if stored is None:
                    counts["failed_pages"] += 1
                else:
                    kept.append((page._replace(image=None), stored))  # the image is done with
        counts["blank"] = documents - len({page.owner for page, _ in kept})
        nothing = np.empty((0, self._encoder.dimension), dtype=STORED[self._dtype])
        values = np.concatenate([nothing, *(stored for _, stored in kept)])
        lengths = np.linalg.norm(as_float32(values, self._dtype), axis=1)
        about = counts | {
            "longest": float(lengths.max(initial=0.0)),
            "missing": "".join(sorted(self._source.missing)),
        }
        arrays: dict[str, NDArray[Any]] = {
            "lengths": np.array([len(stored) for _, stored in kept], dtype=np.int64),
            "owners": np.array([page.owner for page, _ in kept], dtype=np.int32),
            "digests": np.array([page.digest for page, _ in kept], dtype=np.uint64),
        }
        return _Shard(lambda: values, arrays, about)

    def _summed(self, shards: Sequence[_Shard]) -> dict[str, Any]:
        summed = {name: sum(shard.about[name] for shard in shards) for name in COUNTS}
        if summed["blank"] == summed["documents"]:
            failed = f"; {summed['failed_pages']} pages failed" if summed["failed_pages"] else ""
            blank = f"all {summed['documents']} have no page, or blank ones only{failed}"
            what = blank if shards else "it has none"
            raise EmptyCorpusError(f"the collection has no document to find: {what}")
        missing = set().union(*(shard.about["missing"] for shard in shards))
        longest = max(shard.about["longest"] for shard in shards)
        return {**summed, "longest": longest, "missing": "".join(sorted(missing))}

    def _shape(self, shards: Sequence[_Shard]) -> tuple[int, int]:
        vectors = sum(int(shard.arrays["lengths"].sum()) for shard in shards)
        return vectors, self._encoder.dimension

    def _joined(
        self, shards: Sequence[_Shard], about: Mapping[str, Any], values: NDArray[Any]
    ) -> PageVectors:
        """All shards as one; `values` is the place for the vectors."""
        joined = {
            name: np.concatenate([shard.arrays[name] for shard in shards]) for name in _Shard.NAMES
        }
        offsets = np.concatenate([[0], np.cumsum(joined["lengths"])]).astype(np.int64)
        written = 0
        for shard in shards:
            part = shard.values()
            values[written : written + len(part)] = part
            written += len(part)
        same = _first_equal(joined["digests"])
        for page in np.flatnonzero(same != np.arange(len(same))).tolist():
            # The last digits depend on what else was in a page's batch, and would decide ties.
            source = same[page]
            values[offsets[page] : offsets[page + 1]] = values[
                offsets[source] : offsets[source + 1]
            ]
        pooled = pooled_pages(values, offsets, self._dtype)
        return PageVectors(values, offsets, joined["owners"], same, pooled, about)

    def _bar(self) -> Any:
        from tqdm import tqdm

        # disable=None: shown on a terminal only, so that log files stay readable.
        return tqdm(total=len(self._ids), desc="encoding", unit=" documents", disable=None)


def _first_equal(digests: NDArray[np.uint64]) -> NDArray[np.int32]:
    """(P,) position of the first page with each page's digest."""
    _, first, group = np.unique(digests, return_index=True, return_inverse=True)
    found: NDArray[np.int32] = first[group].astype(np.int32)
    return found
