"""Page images: text rendered to the pixel."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from retrievers.base import MissingExtra
from retrievers.pages import (
    PageStyle,
    PageStyleError,
    draw_page,
    lay_out,
    missing_characters,
    render_pages,
)
from retrievers.pages.style import font_file
from tests.page_images import fingerprint

# Eight characters of 8 pixels a line, two lines a page.
SMALL = PageStyle(width=64, height=32, word_grid=1)


def test_lines_are_filled_and_go_on_on_further_pages() -> None:
    pages = lay_out("ab cd", "one two\nthree\n\nfour", SMALL)
    # "one two" is 7 x 8 = 56 of 64 pixels, "three" no longer fits; a paragraph begins a line.
    assert pages == [
        [[(0, "ab"), (24, "cd")], [(0, "one"), (32, "two")]],
        [[(0, "three")], [(0, "four")]],
    ]


def test_words_begin_on_the_grid() -> None:
    # "ab" and a space end at 24, the next multiple of 16 is 32; "cd" would end at 48, "ef" at 64.
    (page,) = lay_out("", "ab cd ef", PageStyle(width=96, word_grid=16))
    assert page == [[(0, "ab"), (32, "cd"), (64, "ef")]]


def test_a_word_longer_than_a_line_goes_on() -> None:
    assert lay_out("", "x abcdefghij", SMALL) == [
        [[(0, "x")], [(0, "abcdefgh")]],
        [[(0, "ij")]],
    ]


def test_a_letter_stays_in_its_cell() -> None:
    style = PageStyle(width=64, height=64, margin=16, offset=(8, 4))
    page = draw_page([[], [(16, "X")]], style).convert("L")
    left, top, right, bottom = page.point(lambda value: 255 - value).getbbox() or (0, 0, 0, 0)
    # 16 + 8 + 16 = 40 is where the cell begins; the second line begins at 16 + 4 + 16 = 36.
    assert 40 <= left < right <= 48
    assert 36 <= top < bottom <= 52


def test_a_page_ends_below_its_text() -> None:
    style = PageStyle(width=64, height=100, margin=4, word_grid=1, height_grid=16)
    # 2 x 4 + 2 x 16 = 40 pixels, the next multiple of 16 is 48; five lines would need 88, so 96.
    assert [page.size for page in render_pages("one", "two", style)] == [(64, 48)]
    assert [p.size for p in render_pages("", "1\n\n2\n\n3\n\n4\n\n5\n\n6", style)] == [
        (64, 96),
        (64, 32),
    ]
    whole = style.model_copy(update={"height_grid": None})
    assert [page.size for page in render_pages("one", "two", whole)] == [(64, 100)]


def test_the_same_text_is_the_same_to_the_pixel() -> None:
    text = "The budget of 2024 — a summary. " * 60
    once, again = (list(map(fingerprint, render_pages("T", text, PageStyle()))) for _ in range(2))
    assert once == again
    assert len(set(once)) == len(once) > 1
    other = list(map(fingerprint, render_pages("T", text, PageStyle(offset=(1, 0)))))
    assert set(once).isdisjoint(other)


def test_a_blank_text_has_no_page() -> None:
    assert render_pages(" ", "\n \n", PageStyle()) == []


@pytest.mark.parametrize(
    ("style", "says"),
    [
        ({"height": 20, "margin": 8}, "no room for a line of 16"),
        ({"width": 16, "margin": 6}, "no room for 'a' in DejaVuSansMono 13"),
        ({"font": "Comic"}, "no font 'Comic'; name a .ttf file, or one of: .*DejaVuSansMono"),
        ({"font": "missing.ttf"}, "font 'missing.ttf': no such file"),
    ],
)
def test_a_page_that_takes_no_text(style: dict[str, Any], says: str) -> None:
    with pytest.raises(PageStyleError, match=says):
        render_pages("", "abc", PageStyle(**style))


def test_a_font_file_of_your_own(tmp_path: Path) -> None:
    own = tmp_path / "own.ttf"
    own.write_bytes(font_file("DejaVuSerif").read_bytes())
    style = PageStyle(font=str(own))
    named = PageStyle(font="DejaVuSerif")
    assert fingerprint(render_pages("", "abc", style)[0]) == fingerprint(
        render_pages("", "abc", named)[0]
    )
    assert style.identity()["font_sha256"] == named.identity()["font_sha256"]
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    with pytest.raises(PageStyleError, match=r"broken\.ttf' cannot be read"):
        render_pages("", "abc", PageStyle(font=str(broken)))


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "rlqr\[fonts\]"'):
        font_file("DejaVuSans")


def test_characters_that_the_font_lacks() -> None:
    assert missing_characters("예산 2024: naïve — Ω", PageStyle()) == {"예", "산"}


@pytest.mark.parametrize(
    "change",
    [
        {"width": 400},
        {"height": 400},
        {"font": "DejaVuSans"},
        {"font_size": 12},
        {"line_height": 17},
        {"margin": 1},
        {"offset": (0, 1)},
        {"word_grid": 1},
        {"height_grid": None},
    ],
)
def test_every_setting_is_part_of_the_identity(change: dict[str, Any]) -> None:
    assert PageStyle(**change).identity() != PageStyle().identity()


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="fontsize"):
        PageStyle.model_validate({"fontsize": 12})
