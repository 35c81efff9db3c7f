"""PDF files by hand: a line of text a page, a black square, or nothing."""

from collections.abc import Sequence

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
ENCRYPTION = b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (b"ab" * 32, b"cd" * 32)


def pdf(*pages: str | None, encrypted: bool = False) -> bytes:
    """Pages of 200 x 100 points. A text (ASCII) is written, "" is blank, None is a black square."""
    contents = [_content(page) for page in pages]
    kids = b" ".join(b"%d 0 R" % (5 + 2 * i) for i in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        FONT,
        ENCRYPTION,
    ]
    for content in contents:
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (len(objects) + 2),
            b"<< /Length %d >> stream\n%s\nendstream" % (len(content), content),
        ]
    return _file(objects, b"/Encrypt 4 0 R" if encrypted else b"")


def written_pdf(width: int, height: int, trailer: str = "", kids: str = "3 0 R") -> bytes:
    """One page of width x height points with a black square in a corner.

    kids: the pages that the tree of pages names. "/Encrypt 5 0 R" in the trailer encrypts it.
    """
    square = b"0 0 0 rg 0 0 %d %d re f" % (width // 4, height // 4)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(kids) // 5} >>".encode(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 4 0 R >>" % (width, height),
        b"<< /Length %d >> stream\n%s\nendstream" % (len(square), square),
        ENCRYPTION,
    ]
    return _file(objects, trailer.encode())


def _content(page: str | None) -> bytes:
    if page is None:
        return b"0 0 0 rg 20 20 50 50 re f"
    return b"BT /F1 20 Tf 20 40 Td (%s) Tj ET" % page.encode("ascii") if page else b""


def _file(objects: Sequence[bytes], trailer: bytes) -> bytes:
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"trailer << /Size %d /Root 1 0 R /ID [<00> <00>] %s >>\n" % (size, trailer)
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n" % size
        + table
        + end
        + b"startxref\n%d\n%%%%EOF\n" % len(out)
    )


ENCRYPTED = pdf("secret", encrypted=True)
