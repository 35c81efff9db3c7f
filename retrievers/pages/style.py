"""How a text looks on a page: sizes in pixels, the font, what it is aligned to."""

import hashlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from retrievers.base import MissingExtra

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

FONTS = Path("mpl-data", "fonts", "ttf")  # below matplotlib's folder


class PageStyleError(ValueError):
    """A font that is not there, or a page on which no text fits."""


class PageStyle(BaseModel):
    """A page of one font, black on white. All sizes are pixels.

    Attributes:
        width, height: of the page.
        font: one that matplotlib ships (DejaVuSansMono, DejaVuSans, DejaVuSerif, STIXGeneral, …,
            with -Bold and the like), or the path of a .ttf, .otf or .ttc file.
        font_size: DejaVuSansMono of 13 is 8 pixels wide, so two characters a patch of 16.
        line_height: from one line's top to the next one's.
        margin: on all four sides.
        offset: (right, down) that the text is moved; its area shrinks by as much.
        word_grid: words begin at multiples of so many pixels from the text's edge; 1: anywhere.
        height_grid: a page ends below its last line, at a multiple of so many pixels, so that no
            model reads empty paper; None: every page has the full height.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(default=384, ge=16)
    height: int = Field(default=384, ge=16)
    font: str = "DejaVuSansMono"
    font_size: int = Field(default=13, ge=4)
    line_height: int = Field(default=16, ge=4)
    margin: int = Field(default=0, ge=0)
    offset: tuple[NonNegativeInt, NonNegativeInt] = (0, 0)
    word_grid: int = Field(default=16, ge=1)
    height_grid: int | None = Field(default=16, ge=1)

    def identity(self) -> dict[str, Any]:
        """JSON values that decide every pixel: the settings, the font's bytes, what draws it."""
        from PIL import __version__, features

        return {
            **self.model_dump(mode="json"),
            "font_sha256": hashlib.sha256(font_file(self.font).read_bytes()).hexdigest(),
            "pillow": __version__,
            "freetype": features.version("freetype2"),
        }


def font_file(name: str) -> Path:
    """Where a font is.

    Raises:
        MissingExtra: it is matplotlib's to give, and matplotlib is not installed.
        PageStyleError: there is no such font; the message lists those there are.
    """
    if Path(name).suffix.lower() in (".ttf", ".otf", ".ttc"):
        own = Path(name).expanduser()
        if not own.is_file():
            raise PageStyleError(f"font {name!r}: no such file")
        return own
    # Located and not imported: matplotlib would set up plotting for a second.
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise MissingExtra(
            f"font {name!r} is one that matplotlib ships, and matplotlib is not installed: "
            'pip install "rlqr[fonts]", or name a .ttf file',
            name="matplotlib",
        )
    folder = Path(spec.origin).parent / FONTS
    known = sorted(path.stem for path in folder.glob("*.ttf"))
    if name not in known:
        raise PageStyleError(f"no font {name!r}; name a .ttf file, or one of: {', '.join(known)}")
    return folder / f"{name}.ttf"


@lru_cache(maxsize=32)
def opened_font(name: str, size: int) -> "FreeTypeFont":
    """The font, laid out by FreeType alone: what else is installed must not move a pixel."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype(font_file(name), size, layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        raise PageStyleError(f"font {name!r} cannot be read: {error}") from error
