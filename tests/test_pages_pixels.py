"""Page images of whatever kind of pixels: 16 bits, fractions, print colours, palettes, alpha."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from retrievers.pages import PageError, pixels
from retrievers.pages.images import pages_of_file
from retrievers.pages.pixels import rgb
from tests.page_images import SETTINGS

BLACK, WHITE, RED = (0, 0, 0), (255, 255, 255), (255, 0, 0)


def page_of(path: Path) -> Image.Image:
    (page,) = pages_of_file(path, SETTINGS)
    assert isinstance(page, Image.Image)
    assert page.mode == "RGB"
    return page


def row(values: list[float], kind: Any) -> Image.Image:
    """An image of one row."""
    return Image.fromarray(np.array([values], dtype=kind))


def shades(image: Image.Image) -> list[int]:
    """Of a gray image of one row."""
    found = np.asarray(image)[0]
    assert (found == found[:, :1]).all()
    return [int(shade) for shade in found[:, 0]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 257, 300, 32896, 65535], [0, 1, 1, 128, 255]),  # 16 bits: 257 is 65535 / 255
        ([0, 273, 2056, 4095], [0, 17, 128, 255]),  # 12 bits: 273 * 255 / 4095 = 17
        ([0, 7, 128, 255], [0, 7, 128, 255]),  # 8 bits, in a larger container
        ([0, 1], [0, 255]),  # black and white
    ],
)
@pytest.mark.parametrize("name", ["gray.png", "gray.tif", "whole.tif", "fractions.tif"])
def test_gray_of_more_than_8_bits(
    name: str, values: list[float], expected: list[int], tmp_path: Path
) -> None:
    kind = {"whole.tif": np.int32, "fractions.tif": np.float32}.get(name, np.uint16)
    row(values, kind).save(tmp_path / name)
    with Image.open(tmp_path / name) as saved:
        wanted = {"whole.tif": "I", "fractions.tif": "F"}.get(name, "I;16")
        assert saved.mode.startswith(wanted)
    assert shades(page_of(tmp_path / name)) == expected


def test_fractions_of_one() -> None:
    assert shades(rgb(row([0, 0.2, 1], np.float32))) == [0, 51, 255]
    # Scaling overshoots a little, on either side.
    assert shades(rgb(row([-0.005, 0.2, 1.01], np.float32))) == [0, 51, 255]
    assert shades(rgb(row([-1, 51, 255.5], np.float32))) == [0, 51, 255]


@pytest.mark.parametrize("order", ["I;16", "I;16B", "I;16L", "I;16N"])
def test_either_order_of_bytes(order: str) -> None:
    image = Image.new(order, (2, 1), 65535)
    image.putpixel((0, 0), 257)
    assert shades(rgb(image)) == [1, 255]


def test_a_transparent_shade_of_16_bits_is_paper(tmp_path: Path) -> None:
    row([0, 257, 65535], np.uint16).save(tmp_path / "a.png", transparency=257)
    assert shades(page_of(tmp_path / "a.png")) == [0, 255, 255]


def test_a_16_bit_page_is_blank_only_if_it_is(tmp_path: Path) -> None:
    row([300, 65535], np.uint16).save(tmp_path / "seen.png")
    row([60000, 60000], np.uint16).save(tmp_path / "blank.png")
    assert shades(page_of(tmp_path / "seen.png")) == [1, 255]
    assert list(pages_of_file(tmp_path / "blank.png", SETTINGS)) == [None]


@pytest.mark.parametrize(
    ("name", "mode", "pixels", "expected"),
    [
        (
            "print.tif",
            "CMYK",
            [(0, 255, 255, 0), (0, 0, 0, 255), (0, 0, 0, 0)],
            [RED, BLACK, WHITE],
        ),
        (
            "alpha.png",
            "RGBA",
            [(0, 0, 0, 0), (0, 0, 0, 255), (255, 0, 0, 255)],
            [WHITE, BLACK, RED],
        ),
        ("alpha.png", "LA", [(0, 0), (0, 255), (0, 51)], [WHITE, BLACK, (204, 204, 204)]),
        ("bits.png", "1", [0, 255, 255], [BLACK, WHITE, WHITE]),
        ("gray.png", "L", [0, 7, 255], [BLACK, (7, 7, 7), WHITE]),
    ],
)
def test_other_modes(
    name: str, mode: str, pixels: list[Any], expected: list[Any], tmp_path: Path
) -> None:
    image = Image.new(mode, (3, 1))
    for place, pixel in enumerate(pixels):
        image.putpixel((place, 0), pixel)
    image.save(tmp_path / name)
    page = page_of(tmp_path / name)
    assert [page.getpixel((place, 0)) for place in range(3)] == expected


def test_a_palette_with_and_without_a_transparent_colour(tmp_path: Path) -> None:
    image = Image.new("P", (3, 1))
    image.putpalette([*BLACK, *RED, *WHITE])
    for place in range(3):
        image.putpixel((place, 0), place)
    image.save(tmp_path / "plain.gif")
    image.save(tmp_path / "clear.png", transparency=0)
    plain, clear = page_of(tmp_path / "plain.gif"), page_of(tmp_path / "clear.png")
    assert [plain.getpixel((place, 0)) for place in range(3)] == [BLACK, RED, WHITE]
    assert [clear.getpixel((place, 0)) for place in range(3)] == [WHITE, RED, WHITE]


@pytest.mark.parametrize(
    ("values", "kind", "says"),
    [
        ([0, 65537], np.int32, "its mode is I, with values from 0 to 65537"),
        ([-500, 500], np.int32, "its mode is I, with values from -500 to 500"),
        ([-1, 1], np.float32, "its mode is F, with values from -1 to 1"),
        ([float("nan"), 1], np.float32, "its mode is F, with values from nan"),
        ([0, float("inf")], np.float32, "its mode is F, with values from 0 to inf"),
    ],
)
def test_values_whose_white_is_unknown(
    values: list[float], kind: Any, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "scan.tif"
    row(values, kind).save(path)
    (page,) = pages_of_file(path, SETTINGS)
    assert isinstance(page, PageError)
    assert f"{path}: no readable image: {says}" in str(page)
    assert "the ranges known are 0 to 1, 255, 4095 and 65535" in str(page)


def test_a_mode_that_nothing_is_known_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row([0, 255], np.uint8).save(tmp_path / "odd.png")  # of mode L
    monkeypatch.setattr(pixels, "PLAIN", frozenset({"RGB"}))
    (page,) = pages_of_file(tmp_path / "odd.png", SETTINGS)
    assert isinstance(page, PageError)
    assert "odd.png: no readable image: its mode is L, and what that means is not" in str(page)
