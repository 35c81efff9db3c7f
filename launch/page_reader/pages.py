"""Training pages: looking as the product's do, with what rendering tells about them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from launch.page_reader.drawing import Word, draw, edges, lay_out
from launch.page_reader.text import WORD, TextMaker
from retrievers.pages import PageStyle

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PATCH = 16
CLASSES = "abcdefghijklmnopqrstuvwxyz0123456789"  # then: any other character, nothing
OTHER, NOTHING = len(CLASSES), len(CLASSES) + 1
IN_PATCH = 3  # a token counts for a patch from so many pixels on
SMALL_LETTERS = 0.6  # of the font's size: what lies above the baseline and is looked for in a row
BAND = 0.4  # a row of patches shows a line with so much of its small letters

Spans = Callable[[str], list[tuple[int, int, int]]]


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        pixels: uint8 (height, width), 255 is white.
        tokens: int64 (rows, columns, 2), the query tokens seen in each patch; -1: none.
        characters: int64 (rows, columns, 2), the classes at each patch's quarter points.
        words: the page's words in order.
    """

    pixels: np.ndarray
    tokens: np.ndarray
    characters: np.ndarray
    words: list[str]


@dataclass(frozen=True)
class Look:
    """Styles to draw from: the wider, the harder.

    Attributes:
        word_grids: 16: words begin on the patch grid; 1: anywhere.
        pitches: line heights; 16 keeps each line in one row of patches.
        shift: the text is moved by up to so many pixels, right and down.
    """

    fonts: Sequence[str] = ("DejaVuSansMono",)
    sizes: Sequence[int] = (13,)
    word_grids: Sequence[int] = (16,)
    pitches: Sequence[int] = (16,)
    shift: tuple[int, int] = (0, 0)

    def style(self, random: Random, width: int, height: int) -> PageStyle:
        size = random.choice(self.sizes)
        return PageStyle(
            width=width,
            height=height,
            font=random.choice(self.fonts),
            font_size=size,
            line_height=random.choice(self.pitches),
            margin=random.choice((0, 16)) if height >= 96 else 0,
            offset=(random.randint(0, self.shift[0]), random.randint(0, self.shift[1])),
            word_grid=random.choice(self.word_grids),
        )


class PageMaker:
    """Random pages with their labels.

    Args:
        maker: of the text.
        tokenizer: of the queries; its tokens are what a patch shows.
    """

    def __init__(self, maker: TextMaker, tokenizer: "PreTrainedTokenizerBase") -> None:
        self.maker = maker
        self._spans: Spans = lru_cache(maxsize=200_000)(lambda chunk: _spans(tokenizer, chunk))

    def page(
        self, random: Random, look: Look, width: int, height: int, twin: Page | None = None
    ) -> Page:
        """A page; given a twin, half of its words are the twin's in another order."""
        style = look.style(random, width, height)
        text = self.maker.text(random, height * width // 96, twin.words if twin else ())
        return self.labelled(lay_out(f"{self.maker.name(random)}\n\n{text}", style), style)

    def labelled(self, words: list[Word], style: PageStyle) -> Page:
        shape = (style.height // PATCH, style.width // PATCH, 2)
        tokens, characters = np.full(shape, -1), np.full(shape, NOTHING)
        overlap = np.zeros(shape)
        for x, base, word in words:
            places = [x + edge for edge in edges(word, style)]
            for row in _bands(base, style):
                _paint_characters(word, places, characters[row])
                for token, start, end in self._spans(word):
                    _paint_token(token, places[start], places[end], tokens[row], overlap[row])
        text = " ".join(word for _, _, word in words)
        return Page(draw(words, style), tokens, characters, WORD.findall(text))


def _spans(tokenizer: "PreTrainedTokenizerBase", chunk: str) -> list[tuple[int, int, int]]:
    found = tokenizer(chunk, add_special_tokens=False, return_offsets_mapping=True)
    return [
        (t, s, e) for t, (s, e) in zip(found["input_ids"], found["offset_mapping"], strict=True)
    ]


def _bands(base: int, style: PageStyle) -> list[int]:
    """Rows of patches that show a line."""
    top = base - SMALL_LETTERS * style.font_size
    rows = range(int(top) // PATCH, min(base // PATCH + 1, style.height // PATCH))
    need = BAND * (base - top)
    return [r for r in rows if min(base, (r + 1) * PATCH) - max(top, r * PATCH) >= need]


def _paint_token(token: int, low: int, high: int, row: np.ndarray, overlap: np.ndarray) -> None:
    """Give a token its patches of a row (columns, 2), against smaller parts of others."""
    for column in range(low // PATCH, min(-(-high // PATCH), len(row))):
        seen = min(high, (column + 1) * PATCH) - max(low, column * PATCH)
        slot = int(overlap[column].argmin())
        if seen >= IN_PATCH and seen > overlap[column, slot]:
            overlap[column, slot] = seen
            row[column, slot] = token


def _paint_characters(word: str, places: list[int], row: np.ndarray) -> None:
    """Classes at the quarter points, 4 and 12 pixels into each patch of a row (columns, 2)."""
    half, flat = PATCH // 2, row.reshape(-1)
    for character, low, high in zip(word, places, places[1:], strict=False):
        kind = CLASSES.find(character.lower())
        first, last = -(-(low - half // 2) // half), -(-(high - half // 2) // half)
        flat[max(first, 0) : max(last, 0)] = kind if kind >= 0 else OTHER


def run_of_words(page: Page, random: Random) -> str:
    """A query: 3 to 8 words of the page as they follow each other."""
    size = min(random.randint(3, 8), len(page.words))
    start = random.randint(0, len(page.words) - size)
    return " ".join(page.words[start : start + size])
