"""PDF and image files: text layer and place of the page image."""

from collections.abc import Iterator
from pathlib import Path

from retrievers.loaders.file_settings import FileFault, FilesSettings, Found
from retrievers.pages.page import PageError, PageSettings
from retrievers.pages.pdf import BrokenPdf, EmptyPdf, EncryptedPdf, HugePdf
from retrievers.pages.pdf_text import PageText, pdf_texts

REASONS: dict[type[PageError], str] = {
    BrokenPdf: "broken PDF",
    EmptyPdf: "empty PDF",
    EncryptedPdf: "encrypted PDF",
    HugePdf: "PDF with too many pages",
}


def pdf(path: Path, name: str, settings: FilesSettings) -> Iterator[Found]:
    """Its pages, or all of it as one document.

    A page without text is a document too, so that numbers stay those of the file; what is doubtful
    about its text layer stands under `doubts` in its metadata. A PDF of which one page cannot be
    read is a broken PDF: half of it would go unnoticed.

    Raises:
        FileFault: it cannot be read.
    """
    try:
        pages = list(pdf_texts(path, str(path), PageSettings(max_pages=settings.max_pages)))
    except PageError as error:
        raise FileFault(str(error), REASONS.get(type(error), "unreadable PDF")) from error
    where = str(path.absolute())
    if settings.pdf == "files":
        text = "\n\n".join(page.text.strip() for page in pages if page.text.strip())
        facts = {"pages": len(pages), **_doubts(pages)}
        yield Found(name, "", text, str(path), {"path": where}, facts)
        return
    whole = Found(name, "", "", str(path))
    for page in pages:
        image = {"path": where, "page": page.number}
        found = whole.part("page", page.number, text=page.text, image=image)
        found.facts.update({"file": name, **_doubts([page])})
        yield found


def image(path: Path, name: str, settings: FilesSettings) -> Iterator[Found]:
    """A page without text.

    Raises:
        FileFault: it is empty. Whether it can be decoded is seen when it is looked at.
    """
    if not path.stat().st_size:
        raise FileFault(f"{path}: an empty file of 0 bytes; remove it", "empty file")
    yield Found(name, "", "", str(path), {"path": str(path.absolute())})


def _doubts(pages: list[PageText]) -> dict[str, list[str]]:
    found = list(dict.fromkeys(doubt for page in pages for doubt in page.doubts))
    return {"doubts": found} if found else {}
