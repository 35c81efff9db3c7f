"""Text → page images, the same to the pixel for the same `PageStyle.identity()`."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from retrievers.pages.style import PageStyle, PageStyleError, opened_font

if TYPE_CHECKING:
    from PIL.Image import Image

Line: TypeAlias = list[tuple[int, str]]  # (pixels from the text's left edge, word)
PARAGRAPHS = re.compile(r"\n\s*\n")
NOT_A_CHARACTER = "\U0010ffff"  # no font draws it, so it looks as all missing ones do


def render_pages(title: str, text: str, style: PageStyle) -> list["Image"]:
    """A title and a text on as many pages as they need.

    Paragraphs are apart by blank lines; within one, lines are filled anew. A word longer than a
    line is continued on the next one.

    Returns:
        RGB images; none where title and text are blank.

    Raises:
        PageStyleError: no such font, or not one character fits on the page.
    """
    return [draw_page(lines, style) for lines in lay_out(title, text, style)]


def lay_out(title: str, text: str, style: PageStyle) -> list[list[Line]]:
    """The lines of each page, every word with its place in its line. Raises as `render_pages`."""
    rows = _rows(style)
    lines = list(_lines(title, text, style))
    return [lines[start : start + rows] for start in range(0, len(lines), rows)]


def draw_page(lines: Sequence[Line], style: PageStyle) -> "Image":
    """One page of lines, the first one on top."""
    from PIL import Image, ImageDraw

    page = Image.new("L", (style.width, _height(len(lines), style)), 255)
    draw = ImageDraw.Draw(page)
    font = opened_font(style.font, style.font_size)
    ascent, descent = font.getmetrics()
    left = style.margin + style.offset[0]
    # The letters' middle in the middle of the line.
    above = (style.line_height - ascent - descent) // 2 + ascent
    baseline = style.margin + style.offset[1] + above
    for row, line in enumerate(lines):
        for x, word in line:
            draw.text((left + x, baseline + row * style.line_height), word, 0, font, anchor="ls")
    return page.convert("RGB")


def missing_characters(text: str, style: PageStyle) -> set[str]:
    """Characters that the style's font cannot draw: on the page they are all the same box."""
    kept = {character for character in set(text) if not character.isspace()}
    return {character for character in kept if not _drawable(character, style.font)}


@lru_cache(maxsize=65536)
def _drawable(character: str, font: str) -> bool:
    probe = opened_font(font, 16)
    mask, box = probe.getmask(character), probe.getmask(NOT_A_CHARACTER)
    return mask.size != box.size or bytes(mask) != bytes(box)


def _rows(style: PageStyle) -> int:
    rows = (style.height - 2 * style.margin - style.offset[1]) // style.line_height
    if rows < 1:
        raise PageStyleError(
            f"a page {style.height} pixels high with margin {style.margin} and offset "
            f"{style.offset[1]} has no room for a line of {style.line_height}; make it larger"
        )
    return rows


def _height(rows: int, style: PageStyle) -> int:
    if style.height_grid is None:
        return style.height
    needed = 2 * style.margin + style.offset[1] + rows * style.line_height
    return min(style.height, _snapped(needed, style.height_grid))


def _lines(title: str, text: str, style: PageStyle) -> Iterator[Line]:
    for paragraph in (title, *PARAGRAPHS.split(text)):
        if words := paragraph.split():
            yield from _filled(words, style)


def _filled(words: list[str], style: PageStyle) -> Iterator[Line]:
    """Lines of a paragraph."""
    font = opened_font(style.font, style.font_size)
    room = style.width - 2 * style.margin - style.offset[0]
    space = round(font.getlength(" "))
    line: Line = []
    x = 0
    for word in words:
        for part in _parts(word, style, room):
            length = round(font.getlength(part))
            if line and x + length > room:
                yield line
                line, x = [], 0
            line.append((x, part))
            x = _snapped(x + length + space, style.word_grid)
    yield line


def _parts(word: str, style: PageStyle, room: int) -> Iterator[str]:
    """The word, cut where it is longer than a line."""
    font = opened_font(style.font, style.font_size)
    while word:
        size = len(word)
        while size > 1 and font.getlength(word[:size]) > room:
            size -= 1
        if font.getlength(word[:size]) > room:
            raise PageStyleError(
                f"a page {style.width} pixels wide with margin {style.margin} and offset "
                f"{style.offset[0]} has no room for {word[0]!r} in {style.font} "
                f"{style.font_size}; make it wider"
            )
        yield word[:size]
        word = word[size:]


def _snapped(length: int, grid: int) -> int:
    """The next multiple of `grid`."""
    return -(-length // grid) * grid
