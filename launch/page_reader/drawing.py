"""Quick drawing of words, character by character from a cache.

FreeType takes a quarter of a millisecond for a word, which is more than a training step has. For
fonts without kerning (DejaVuSansMono, STIXGeneral) the pixels are those of ``render_pages``.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from retrievers.pages.style import PageStyle, opened_font

Word = tuple[int, int, str]  # (pixels from the page's left edge, baseline, characters)


@dataclass(frozen=True)
class Glyph:
    """Ink 0–255 (height, width), where it lies from the pen, and how far the pen goes on."""

    ink: np.ndarray
    right: int
    down: int
    advance: int


@lru_cache(maxsize=65536)
def glyph(character: str, font: str, size: int) -> Glyph:
    opened = opened_font(font, size)
    mask, (right, down) = opened.getmask2(character, mode="L", anchor="ls")
    width, height = mask.size
    ink = np.array(mask, dtype=np.uint8).reshape(height, width) if width * height else None
    empty = np.zeros((0, 0), np.uint8)
    advance = round(opened.getlength(character))
    return Glyph(empty if ink is None else ink, right, down, advance)


def edges(word: str, style: PageStyle) -> list[int]:
    """Pixels from the word's start at which its characters begin, and its end."""
    found = [0]
    for character in word:
        found.append(found[-1] + glyph(character, style.font, style.font_size).advance)
    return found


def lay_out(text: str, style: PageStyle) -> list[Word]:
    """The words of a text that fit on one page, filled as ``render_pages`` fills lines.

    Words longer than a line are left out.
    """
    left = style.margin + max(style.offset[0], 0)
    room = style.width - 2 * style.margin - abs(style.offset[0])
    rows = (style.height - 2 * style.margin - abs(style.offset[1])) // style.line_height
    space = glyph(" ", style.font, style.font_size).advance
    words: list[Word] = []
    row = 0
    for paragraph in text.split("\n\n"):
        x = 0
        for word in paragraph.split():
            length = edges(word, style)[-1]
            if x and x + length > room:
                row, x = row + 1, 0
            if row >= rows:
                return words
            if length <= room:
                words.append((left + x, baseline(row, style), word))
                x = -(-(x + length + space) // style.word_grid) * style.word_grid
        row += bool(x)
    return words


def baseline(row: int, style: PageStyle) -> int:
    ascent, descent = opened_font(style.font, style.font_size).getmetrics()
    top = style.margin + max(style.offset[1], 0) + row * style.line_height
    return top + (style.line_height - ascent - descent) // 2 + ascent


def draw(words: list[Word], style: PageStyle) -> np.ndarray:
    """Words on a page: uint8 (height, width), 255 is white."""
    page = np.full((style.height, style.width), 255, np.uint8)
    for x, base, word in words:
        for character in word:
            shape = glyph(character, style.font, style.font_size)
            _press(page, shape, x + shape.right, base + shape.down)
            x += shape.advance
    return page


def _press(page: np.ndarray, shape: Glyph, x: int, y: int) -> None:
    height, width = shape.ink.shape
    cut_x, cut_y = max(-x, 0), max(-y, 0)
    spot = page[max(y, 0) : y + height, max(x, 0) : x + width]
    ink = shape.ink[cut_y : cut_y + spot.shape[0], cut_x : cut_x + spot.shape[1]]
    np.minimum(spot, 255 - ink, out=spot)
