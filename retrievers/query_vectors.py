"""The vectors of query texts, each computed once.

One text is searched several times: at the depth of a reward, as a part of a hybrid search, at the
depth of an evaluation. Its vectors are the same each time, and cost far more than the search.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from retrievers.base import PermanentSearchError

BYTES = 2**27  # of all vectors that are kept

Encode = Callable[[list[str]], Iterable[NDArray[np.float32]]]


class QueryVectors:
    """Encodes texts that were not encoded lately. Not safe for threads: hold a lock.

    Args:
        encode: distinct texts → the vectors of each, (D,) or (n, D).
        most: texts to keep, least recently used go first; 0 keeps none.
        most_bytes: of their vectors.
    """

    def __init__(self, encode: Encode, most: int, most_bytes: int = BYTES) -> None:
        self._encode = encode
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._bytes = 0

    def of(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors of each text; those of equal texts are one object.

        Raises:
            PermanentSearchError: a text's vectors hold NaN.
        """
        found = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            found |= zip(missing, self._encoded(missing), strict=True)
        for text, vectors in found.items():
            self._keep(text, vectors)
        return [found[text] for text in texts]

    def _encoded(self, texts: list[str]) -> list[NDArray[np.float32]]:
        # Copies: a row of an array would keep the vectors of all texts of its batch in memory.
        vectors = [np.array(one) for one in self._encode(texts)]
        for text, one in zip(texts, vectors, strict=True):
            if not np.isfinite(one).all():
                raise PermanentSearchError(
                    f"the vector of the query {text!r} holds NaN; look for NaN in the model"
                )
        return vectors

    def _keep(self, text: str, vectors: NDArray[np.float32]) -> None:
        if text not in self._kept:
            self._kept[text] = vectors
            self._bytes += vectors.nbytes
        self._kept.move_to_end(text)
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
