"""Pages of PDF files, drawn by PDFium.

PDFium may be in one thread only, whatever the documents: every call is made under one lock.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from retrievers.base import import_extra
from retrievers.pages.page import PageError, PageSettings, seen

if TYPE_CHECKING:
    from PIL.Image import Image

EXTRA = "pdf"
POINTS = 72  # an inch
NO_FILE, PASSWORD = 2, 4  # FPDF_ERR_FILE, FPDF_ERR_PASSWORD
# Re-entrant: the garbage collector may close another document while this thread holds it.
pdfium_lock = RLock()


class PdfError(PageError):
    """A PDF file that cannot be used."""


class BrokenPdf(PdfError):
    """It is no PDF, or damaged."""


class EmptyPdf(PdfError):
    """It holds no bytes, or no page."""


class EncryptedPdf(PdfError):
    """It wants a password."""


class HugePdf(PdfError):
    """It has more pages than the settings allow."""


def pdf_pages(
    content: Path | bytes, name: str, settings: PageSettings, only: int | None = None
) -> Iterator["Image | BrokenPdf | None"]:
    """Draw the pages of a PDF one after the other.

    Args:
        content: the file, or its bytes.
        name: for messages.
        settings: resolution and limits.
        only: number of the one page that is wanted, the first is 1; None: all.

    Yields:
        An RGB image; None for a page of one colour; the error of a page that cannot be drawn, to be
        raised or passed over.

    Raises:
        retrievers.base.MissingExtra: pypdfium2 is not installed.
        BrokenPdf, EmptyPdf, EncryptedPdf, HugePdf: see there.
    """
    with opened_pdf(content, name) as document:
        count = checked_count(document, name, settings)
        if only is not None and not 1 <= only <= count:
            raise PdfError(f"{name}: has no page {only}, but {count} pages")
        for index in range(count) if only is None else [only - 1]:
            yield _drawn(document, index, name, settings)


def checked_count(document: Any, name: str, settings: PageSettings) -> int:
    """How many pages an opened PDF has.

    Raises:
        EmptyPdf, HugePdf: see there.
    """
    with pdfium_lock:
        count = len(document)
    if count == 0:
        raise EmptyPdf(f"{name}: a PDF without pages; remove it")
    if count > settings.max_pages:
        raise HugePdf(
            f"{name}: {count} pages, and at most {settings.max_pages} are taken; split the file, "
            "or raise pages.max_pages"
        )
    return count


@contextmanager
def opened_pdf(content: Path | bytes, name: str) -> Iterator[Any]:
    """The document, which may be used under `pdfium_lock` only. Raises as `pdf_pages`."""
    pdfium = import_extra("pypdfium2", EXTRA)
    if isinstance(content, Path) and not content.is_file():
        raise PageError(f"{name}: no such file")
    if (content.stat().st_size if isinstance(content, Path) else len(content)) == 0:
        raise EmptyPdf(f"{name}: an empty file of 0 bytes; remove it")
    with pdfium_lock:
        try:
            document = pdfium.PdfDocument(content)
        except pdfium.PdfiumError as error:
            raise _fault(content, name) from error
        document.init_forms()  # what was filled into forms is drawn too
    try:
        yield document
    finally:
        with pdfium_lock:
            document.close()


def _fault(content: Path | bytes, name: str) -> PdfError:
    """Why a file cannot be opened. To be called under the lock."""
    pdfium = import_extra("pypdfium2", EXTRA)
    # Of a file without pages PDFium sets no error code, so that the one of an earlier file is read.
    # Here that is the code of a missing file, which this one cannot have.
    pdfium.raw.FPDF_LoadDocument(b"", None)
    try:
        pdfium.PdfDocument(content).close()
    except pdfium.PdfiumError as error:
        if error.err_code == PASSWORD:
            return EncryptedPdf(f"{name}: encrypted with a password; save it without one")
        if error.err_code == NO_FILE:
            return EmptyPdf(f"{name}: a PDF without pages; remove it")
        return BrokenPdf(f"{name}: no readable PDF: {error}; repair or remove it")
    return BrokenPdf(f"{name}: it could not be opened at first; try again")


def _drawn(
    document: Any, index: int, name: str, settings: PageSettings
) -> "Image | BrokenPdf | None":
    pdfium = import_extra("pypdfium2", EXTRA)
    with pdfium_lock:
        try:
            page = document[index]
        except pdfium.PdfiumError as error:
            return BrokenPdf(f"{name}: page {index + 1} cannot be read: {error}")
        try:
            scale = min(settings.dpi / POINTS, settings.max_side / max(page.get_size()))
            # A side is rounded up to whole pixels, which must not pass the limit.
            image = page.render(scale=scale).to_pil().convert("RGB")
        except (pdfium.PdfiumError, ZeroDivisionError) as error:
            return BrokenPdf(f"{name}: page {index + 1} cannot be drawn: {error}")
        finally:
            page.close()
    return seen(image.crop((0, 0, *(min(side, settings.max_side) for side in image.size))))
