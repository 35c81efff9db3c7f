"""Markdown, HTML and plain text: a file is a document."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from retrievers.base import import_extra
from retrievers.identity import CollectionError
from retrievers.loaders.file_settings import FileFault, FilesSettings, Found

HIDDEN = ("script", "style", "noscript", "template", "svg", "head")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)


def plain_text(path: Path, name: str, settings: FilesSettings) -> Iterator[Found]:
    """The file as it is."""
    yield Found(name, "", _decoded(path, settings.encoding), str(path))


def markdown(path: Path, name: str, settings: FilesSettings) -> Iterator[Found]:
    """The text as written, without the YAML in front; its title is the first heading."""
    text = _without_front(_decoded(path, settings.encoding))
    heading = _HEADING.search(_FENCED.sub("", text))
    yield Found(name, heading[1] if heading else "", text, str(path))


def _without_front(text: str) -> str:
    """Two rules with a text between them are no YAML: that text stays."""
    front = _FRONT.match(text)
    if front is None:
        return text
    try:
        given = yaml.safe_load(front[1])
    except yaml.YAMLError:
        return text
    return text[front.end() :] if given is None or isinstance(given, dict) else text


def html(path: Path, name: str, settings: FilesSettings) -> Iterator[Found]:
    """What a reader of the page sees, a line a block; its title is <title>.

    The encoding is the one that the page declares, else it is guessed, as browsers do.
    """
    parser = import_extra("bs4", "html")
    soup = parser.BeautifulSoup(_bytes(path), "html.parser")
    if soup.contains_replacement_characters:
        raise FileFault(f"{path}: not readable as {soup.original_encoding}", "undecodable file")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for hidden in soup(HIDDEN):
        hidden.decompose()
    yield Found(name, title, _blocks(soup), str(path))


def _blocks(soup: Any) -> str:
    for line in soup(["br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre"]):
        line.insert_after("\n")
    for cell in soup(["td", "th"]):
        cell.insert_after(" ")
    lines = (" ".join(line.split()) for line in soup.get_text().splitlines())
    return "\n".join(line for line in lines if line)


def _bytes(path: Path) -> bytes:
    if data := path.read_bytes():
        return data
    raise FileFault(f"{path}: an empty file of 0 bytes; remove it", "empty file")


def _decoded(path: Path, encoding: str) -> str:
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileFault(
            f"{path}:{line}: {error}; save the file as UTF-8, or set `encoding`", "undecodable file"
        ) from error
    except LookupError as error:
        raise CollectionError(f"no encoding {encoding!r}; give one such as utf-8, cp949") from error
    return text.replace("\r\n", "\n")
