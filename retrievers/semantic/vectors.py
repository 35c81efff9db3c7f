"""Documents → vectors, in shards that survive a kill."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Documents
from retrievers.chunks import Chunker, joined
from retrievers.index import Index, IndexWriter
from retrievers.semantic.encoder import Encoder
from retrievers.semantic.stored import STORED, DType, as_float32, as_stored
from retrievers.shards import open_or_remake
from retrievers.terms import EmptyCorpusError

SHARD = 2048  # documents: what a kill can cost
BATCHES = 8  # between two movements of the progress bar


class VectorError(ValueError):
    """The model's vector of a text holds something that is no number, or is too large to store."""


@dataclass(frozen=True)
class Vectors:
    """The vectors of documents.

    Attributes:
        values: (R, D) as stored.
        owners: (R,) position of the document that each row belongs to, never falling.
        digests: (R,) of the text behind each row.
        about: counts: `documents`, `blank`, `truncated` (documents), `longest` (row length).
    """

    values: NDArray[Any]
    owners: NDArray[np.int32]
    digests: NDArray[np.uint64]
    about: Mapping[str, Any]


class VectorBuilder:
    """Encodes a collection.

    Args:
        documents: the collection.
        encoder: the model.
        dtype: of what is stored.
        chunker: cuts texts into pieces, each with a vector of its own; None: one vector a document.
    """

    def __init__(
        self, documents: Documents, encoder: Encoder, dtype: DType, chunker: Chunker | None
    ) -> None:
        self._documents = documents
        self._encoder = encoder
        self._dtype = dtype
        self._chunker = chunker

    def in_memory(self) -> Vectors:
        """Encode everything, keep nothing on the disk."""
        with self._bar() as bar:
            shards = [self._encoded(first, texts, bar) for first, texts in self._batches()]
        about = self._summed([shard.about for shard in shards])
        values = np.concatenate([shard.values for shard in shards])
        owners = np.concatenate([shard.owners for shard in shards])
        digests = np.concatenate([shard.digests for shard in shards])
        _share(values, digests)
        return Vectors(values, owners, digests, about)

    def write(self, writer: IndexWriter, folder: Path, parts: Mapping[str, Any]) -> None:
        """Encode what is not encoded yet, then write `vectors` and `owners`.

        Args:
            writer: of the index.
            folder: where finished shards are kept until then.
            parts: what the vectors depend on; a shard made of anything else is made again.
        """
        shards = list(self._shards(folder, parts))
        about = self._summed([shard.about for shard in shards])
        # Read, and the vectors mapped one shard after the other: a mapped array keeps its file
        # open, and a process may have about a thousand.
        joined = {
            name: np.concatenate([shard.read(name) for shard in shards])
            for name in ("owners", "digests")
        }
        values = np.lib.format.open_memmap(
            writer.path / "vectors.npy",
            mode="w+",
            dtype=STORED[self._dtype],
            shape=(len(joined["owners"]), self._encoder.dimension),
        )
        written = 0
        for shard in shards:
            part = shard.array("vectors")
            values[written : written + len(part)] = part
            written += len(part)
        _share(values, joined["digests"])
        values.flush()
        for name, derived in joined.items():
            writer.array(name, derived)
        writer.about.update(about)
        if self._chunker is not None:
            writer.about["chunks"] = len(values)

    def _shards(self, folder: Path, parts: Mapping[str, Any]) -> Iterator[Index]:
        with self._bar() as bar:
            for first, texts in self._batches():
                place = folder / f"{first:012d}"
                asked = {**parts, "first": first, "count": len(texts)}

                def fill(
                    writer: IndexWriter, first: int = first, texts: Sequence[str] = texts
                ) -> None:
                    shard = self._encoded(first, texts, bar)
                    writer.array("vectors", shard.values)
                    writer.array("owners", shard.owners)
                    writer.array("digests", shard.digests)
                    writer.about.update(shard.about)

                shard = open_or_remake(place, "vectors", asked, fill)
                bar.update(first + len(texts) - bar.n)
                yield shard

    def _batches(self) -> Iterator[tuple[int, list[str]]]:
        """(position of the first document, texts) of every shard."""
        texts = (joined(title, text) for title, text in self._documents.texts())
        first = 0
        while batch := list(islice(texts, SHARD)):
            yield first, batch
            first += len(batch)

    def _encoded(self, first: int, texts: Sequence[str], bar: Any) -> Vectors:
        kept = [place for place, text in enumerate(texts) if text]
        cut = self._chunker or (lambda text: [text])
        pieces = [(place, piece) for place in kept for piece in cut(texts[place])]
        owners = np.array([place for place, _ in pieces], dtype=np.int32)
        contents = [piece for _, piece in pieces]
        values = self._values(contents, owners + first, bar, len(texts))
        too_long = owners[self._encoder.too_long(contents)] if contents else owners
        lengths = np.linalg.norm(as_float32(values, self._dtype), axis=1)
        about = {
            "documents": len(texts),
            "blank": len(texts) - len(kept),
            "truncated": len(np.unique(too_long)),
            "longest": float(lengths.max(initial=0.0)),
        }
        digests = np.array([_digest(piece) for piece in contents], dtype=np.uint64)
        return Vectors(values, (owners + first).astype(np.int32), digests, about)

    def _values(
        self, pieces: Sequence[str], owners: NDArray[np.int32], bar: Any, documents: int
    ) -> NDArray[Any]:
        values = np.empty((len(pieces), self._encoder.dimension), dtype=STORED[self._dtype])
        # Texts of about the same length together, so that little is padded; the longest first, so
        # that it is known at once whether the memory is enough.
        order = sorted(range(len(pieces)), key=lambda place: -len(pieces[place]))
        step = BATCHES * self._encoder.batch_size
        before = bar.n
        for start in range(0, len(order), step):
            some = order[start : start + step]
            stored = as_stored(
                self._encoder.documents([pieces[place] for place in some]), self._dtype
            )
            self._refuse(stored, owners[some])
            values[some] = stored
            done = min(start + step, len(order))
            bar.update(before + documents * done // len(order) - bar.n)
        return values

    def _refuse(self, stored: NDArray[Any], owners: NDArray[np.int32]) -> None:
        bad = ~np.isfinite(as_float32(stored, self._dtype)).all(axis=1)
        if bad.any():
            document = self._documents.ids[owners[bad.argmax()]]
            raise VectorError(
                f"the vector of document {document!r} holds NaN, or numbers too large for "
                f"{self._dtype}: look for NaN in the model, or choose another dtype for the "
                "vectors or, with model_kwargs, for the model's weights"
            )

    def _summed(self, abouts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        names = ("documents", "blank", "truncated")
        summed = {name: sum(about[name] for about in abouts) for name in names}
        if summed["blank"] == summed["documents"]:
            blank = f"the titles and texts of all {summed['documents']} are blank"
            what = blank if abouts else "it has none"
            raise EmptyCorpusError(f"the collection has no document to find: {what}")
        return {**summed, "longest": max(about["longest"] for about in abouts)}

    def _bar(self) -> Any:
        from tqdm import tqdm

        # disable=None: shown on a terminal only, so that log files stay readable.
        return tqdm(
            total=len(self._documents.ids), desc="encoding", unit=" documents", disable=None
        )


def _digest(text: str) -> int:
    """64 bits: of a million texts two different ones are taken for equal once in 10^7 builds."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _share(values: NDArray[Any], digests: NDArray[np.uint64]) -> None:
    """Give equal texts one vector: the first one's.

    A text's last digits depend on what else was in its batch, and would decide ties.
    """
    _, first, group = np.unique(digests, return_index=True, return_inverse=True)
    source = first[group]
    later = np.flatnonzero(source != np.arange(len(source)))
    for start in range(0, len(later), SHARD):
        some = later[start : start + SHARD]
        values[some] = values[source[some]]
