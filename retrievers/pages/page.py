"""One page of a document, and what a page may be."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from retrievers.pages.style import PageStyle

if TYPE_CHECKING:
    from PIL.Image import Image


class PageError(ValueError):
    """A file that gives no page image; the message names the file and what to do."""


class PageSettings(BaseModel):
    """Where pages come from and how large their images are.

    Attributes:
        source: "images" are those of the collection, in its column `images` or `image`; "text" has
            title and text rendered; "auto": its images if it has that column, else its text.
        style: of rendered text.
        dpi: dots per inch that PDF pages are drawn at.
        max_side: longest side of an image in pixels; larger ones are drawn or scaled down to it.
        max_pages: of one PDF file; a longer one is an error whatever `failed` is, so that an index
            holds the same pages for all values that let it be built.
        failed: what a page does that cannot be drawn or decoded, or that the model's processor
            refuses: "stop", or "skip" to go on without it. Skipped ones are counted, and an index
            that lacks some is not opened with "stop"; any other is the same for both.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Literal["auto", "images", "text"] = "auto"
    style: PageStyle = PageStyle()
    dpi: int = Field(default=150, ge=10)
    max_side: int = Field(default=4096, ge=16)
    max_pages: int = Field(default=5000, ge=1)
    failed: Literal["stop", "skip"] = "stop"


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        number: in its document; the first is 1, and pages without an image are counted too.
        image: RGB; None where there is nothing to see, or where it failed.
        failed: whether it could not be drawn or decoded.
        file: that it is of, or the document and column that hold it; "" if rendered.
    """

    number: int
    image: "Image | None"
    failed: bool = False
    file: str = ""

    @property
    def blank(self) -> bool:
        """Whether it is there, and all of one colour."""
        return self.image is None and not self.failed


def seen(image: "Image") -> "Image | None":
    """The image; None if all of it is one colour."""
    low_high: Any = image.getextrema()  # a pair for each band of a colour image
    return None if all(low == high for low, high in low_high) else image
