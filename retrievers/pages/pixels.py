"""Whatever an image's pixels are → RGB of 8 bits, on white paper."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

# Modes of Pillow that it brings to RGB with every shade in its place.
PLAIN = frozenset(
    {"1", "L", "P", "RGB", "RGBX", "RGBA", "RGBa", "CMYK", "YCbCr", "HSV", "LAB", "LA", "PA"}
)
# White in images of more than 8 bits: of shares, of 8, of 12 (many scanners) and of 16 bits.
WHITES = (1, 255, 4095, 65535)


def rgb(image: "Image") -> "Image":
    """The image in 8 bits a colour; what is transparent becomes white.

    Gray of 16 bits, of whole numbers or of fractions (modes I;16, I and F) does not say which of
    its values is white. It is taken for the least of 1, 255, 4095 and 65535 that no value is above
    by 1 or more, and 0 for black: 16 bits are divided by 257, and rounded.

    Raises:
        ValueError: of another mode, or its values are in none of these ranges; names both.
    """
    from PIL import Image

    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _in_eight_bits(image).convert("RGB")
    if image.mode not in PLAIN:
        raise ValueError(f"its mode is {image.mode}, and what that means is not known here")
    if image.has_transparency_data:
        # What is transparent is paper, and would turn black.
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image.convert("RGBA"))
    return image.convert("RGB")


def _in_eight_bits(image: "Image") -> "Image":
    from PIL import Image

    values = np.asarray(image, dtype=np.float32)
    low, high = float(values.min()), float(values.max())
    white = next((one for one in WHITES if high < one + 1), None)
    # A little below black is what scaling an image leaves behind.
    if white is None or not low > -white / 100:
        raise ValueError(
            f"its mode is {image.mode}, with values from {low:g} to {high:g}, and the ranges known "
            f"are 0 to {WHITES[0]}, {WHITES[1]}, {WHITES[2]} and {WHITES[3]}"
        )
    shades = np.rint(np.clip(values * (255 / white), 0, 255)).astype(np.uint8)
    if "transparency" in image.info:  # the one value that is
        shades[values == image.info["transparency"]] = 255
    return Image.fromarray(shades)
