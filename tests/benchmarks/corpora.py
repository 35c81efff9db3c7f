"""Synthetic collections and indexes of any size, made fast and without holding them in memory.

Documents have sixty words that follow Zipf's law. A query is four different words of a document
that is drawn at random, frequent words included. Vectors are random unit vectors of 384 numbers:
the stand-in for the model, `RandomEncoder`, gives them to texts, so that an index of a million
documents goes through the same code as one that a model would take hours to encode.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrievers.collection import Collection

WORDS_A_DOCUMENT = 60
VOCABULARY = 100_000
BLOCK = 50_000  # documents made at once
DIMENSION = 384


def write_documents(path: Path, size: int, seed: int = 0) -> None:
    """Write an Arrow file of documents; the first ones are the same whatever the size."""
    words = pa.array([f"w{number}" for number in range(VOCABULARY)])
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for first in range(0, size, BLOCK):
            numbers = _numbers(first, seed)[: size - first]
            ends = np.arange(0, numbers.size + 1, WORDS_A_DOCUMENT, dtype=np.int32)
            lists = pa.ListArray.from_arrays(ends, words.take(pa.array(numbers.ravel())))
            ids = pa.array([f"document-{first + row}" for row in range(len(numbers))])
            writer.write_batch(pa.record_batch([ids, pc.binary_join(lists, " ")], schema=schema))


def documents(path: Path) -> Collection:
    """The collection in a file of `write_documents`, its texts mapped from the disk."""
    return Collection(path.stem, pa.ipc.open_file(pa.memory_map(str(path))).read_all())


def queries(size: int, count: int, seed: int = 0) -> list[str]:
    """Distinct queries for the first `size` documents, at most `BLOCK` of which are drawn from."""
    rows = _numbers(0, seed)[:size]
    rng = np.random.default_rng(seed + 1)
    found: dict[str, None] = {}
    while len(found) < count:
        different = np.unique(rows[rng.integers(len(rows))])
        found[" ".join(f"w{word}" for word in rng.choice(different, 4, replace=False))] = None
    return list(found)


def unit_vectors(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """(count, 384) vectors of length 1."""
    vectors = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def embeddings(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """(count, 384) vectors of length 1 that spread in 24 directions, as those of texts nearly do.

    A graph of neighbours finds no way among vectors that are equally far from one another, which
    `unit_vectors` are.
    """
    directions = unit_vectors(np.random.default_rng(2), 24)
    near = rng.standard_normal((count, 24), dtype=np.float32) @ directions
    vectors = near + 0.05 * rng.standard_normal(near.shape, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class RandomEncoder:
    """Has what the semantic backend needs of `retrievers.semantic.encoder.Encoder`."""

    similarity = "cosine"
    query_prompt = document_prompt = ""
    dimension, batch_size, limit = DIMENSION, 256, None

    def __init__(self, settings: Any) -> None:
        """No model is loaded."""

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit_vectors(np.random.default_rng(zlib.crc32(texts[0].encode())), len(texts))

    documents = queries

    def too_long(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(texts), dtype=np.bool_)

    def identity(self) -> dict[str, Any]:
        return {"content": "random", "versions": {}}


def _numbers(first: int, seed: int) -> NDArray[np.int32]:
    """(BLOCK, 60) word numbers of a block; the n-th most frequent word has a chance of ~ 1 / n."""
    shares = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    drawn = np.random.default_rng([seed, first]).random((BLOCK, WORDS_A_DOCUMENT))
    return np.searchsorted(shares, drawn * shares[-1]).astype(np.int32)
