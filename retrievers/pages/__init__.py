"""Pages as images: text rendered, PDF files, image files.

- `style`, `rendering`: text → page images;
- `pdf`, `images`: files → page images;
- `digests`: checksums of files, remembered;
- `sources`: the pages of a collection.
"""

from retrievers.pages.page import Page, PageError, PageSettings
from retrievers.pages.rendering import draw_page, lay_out, missing_characters, render_pages
from retrievers.pages.sources import PageSource, page_source
from retrievers.pages.style import PageStyle, PageStyleError

__all__ = [
    "Page",
    "PageError",
    "PageSettings",
    "PageSource",
    "PageStyle",
    "PageStyleError",
    "draw_page",
    "lay_out",
    "missing_characters",
    "page_source",
    "render_pages",
]
