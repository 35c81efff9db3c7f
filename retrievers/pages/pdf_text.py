"""The text layer of PDF files, read by PDFium."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrievers.base import import_extra
from retrievers.pages.page import PageSettings
from retrievers.pages.pdf import EXTRA, BrokenPdf, checked_count, opened_pdf, pdfium_lock

GARBAGE = 0.1  # share of a text's characters from which it is taken for garbage
_CID = re.compile(r"\(cid:[0-9]+\)")  # what extractors write for a glyph without a character


@dataclass(frozen=True)
class PageText:
    """The text of one page.

    Attributes:
        number: of the page, the first is 1.
        text: line ends as "\\n"; blank where there is no text layer.
        drawn: whether anything is drawn on the page, such as a scan.
    """

    number: int
    text: str
    drawn: bool

    @property
    def doubts(self) -> list[str]:
        """What may be wrong with it: "blank page", "no text layer", "garbled text layer"."""
        if not self.text.strip():
            return ["no text layer" if self.drawn else "blank page"]
        return ["garbled text layer"] if garbled(self.text) else []


def pdf_texts(content: Path | bytes, name: str, settings: PageSettings) -> Iterator[PageText]:
    """Read the pages of a PDF one after the other. Arguments and errors as `pdf_pages`.

    Raises:
        BrokenPdf: also for a page that cannot be read.
    """
    with opened_pdf(content, name) as document:
        for index in range(checked_count(document, name, settings)):
            yield _read(document, index, name)


def garbled(text: str) -> bool:
    """Whether a text layer is garbage: fonts that do not say which characters their glyphs are.

    Counted are replacement characters, private and unassigned ones, control characters, and glyph
    numbers in place of text. Letters that are merely the wrong ones are not found.
    """
    rest, numbers = _CID.subn("", text)
    letters = [character for character in rest if not character.isspace()]
    bad = sum(c == "\ufffd" or unicodedata.category(c) in ("Co", "Cn", "Cc") for c in letters)
    return bad + numbers >= GARBAGE * max(1, len(letters) + numbers)


def _read(document: Any, index: int, name: str) -> PageText:
    pdfium = import_extra("pypdfium2", EXTRA)
    with pdfium_lock:
        try:
            page = document[index]
        except pdfium.PdfiumError as error:
            raise BrokenPdf(f"{name}: page {index + 1} cannot be read: {error}") from error
        try:
            layer = page.get_textpage()
            text = layer.get_text_range()
            drawn = bool(pdfium.raw.FPDFPage_CountObjects(page))
            layer.close()
        except pdfium.PdfiumError as error:
            raise BrokenPdf(f"{name}: page {index + 1} has no readable text: {error}") from error
        finally:
            page.close()
    return PageText(index + 1, _plain(text), drawn)


def _plain(text: str) -> str:
    # PDFium writes U+FFFE, or a control character, for a hyphen at the end of a line.
    joined = re.sub("[\ufffe\x02](?:\r?\n)?", "", text)
    return joined.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
