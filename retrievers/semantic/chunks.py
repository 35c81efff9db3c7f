"""Long texts → overlapping pieces of a fixed number of tokens."""

from collections.abc import Callable, Iterator, Sequence

Offsets = Sequence[tuple[int, int]]


def joined(title: str, text: str) -> str:
    """What is encoded of a document: title, line break, text; blank parts are left out."""
    return readable("\n".join(part for part in (title, text) if part.strip()))


def readable(text: str) -> str:
    """The text with "?" for halves of surrogate pairs, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class Chunker:
    """Callable: text → its pieces in order.

    Args:
        offsets: text → (start, end) in characters of each of its tokens.
        tokens: of a piece, the last one may have fewer.
        overlap: tokens that a piece shares with the one before it.
    """

    def __init__(self, offsets: Callable[[str], Offsets], tokens: int, overlap: int) -> None:
        self._offsets = offsets
        self._tokens = tokens
        self._step = tokens - overlap

    def __call__(self, text: str) -> list[str]:
        pieces = [text[start:end] for start, end in self._spans(self._offsets(text))]
        # A text whose characters the tokenizer drops altogether is still a document.
        return [piece for piece in pieces if piece.strip()] or [text]

    def _spans(self, offsets: Offsets) -> Iterator[tuple[int, int]]:
        for first in range(0, len(offsets), self._step):
            last = min(first + self._tokens, len(offsets))
            yield offsets[first][0], offsets[last - 1][1]
            if last == len(offsets):  # what follows would only repeat the end
                return
