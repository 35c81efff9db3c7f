"""The page: templates, style and script put into one file that asks for nothing."""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import rewriter.report.summary as summary
from rewriter.evaluation.pictures import QUERIES
from rewriter.report.diagnostics import diagnostics
from rewriter.report.faults import missing_extra
from rewriter.report.gather import Source
from rewriter.report.packed import packed
from rewriter.report.palette import DARK, LIGHT
from rewriter.report.plots import draw
from rewriter.report.queries import code
from rewriter.report.texts import ROOM, pack
from rewriter.report.thumbnails import thumbnails
from rewriter.tables import heading

SCRIPTS = ("elements", "words", "data", "list", "detail", "keys", "main")
STYLES = ("base", "tables", "queries")


def render(source: Source, plots: Path) -> str:
    """The page.

    Args:
        source: of `gather`.
        plots: where the plots are written.

    Raises:
        ReportError: an image cannot be read, or an extra is not installed.
    """
    template = _environment().get_template("page.html")
    script = _script()
    own = {"script": script, "policy": _policy(script), "style": _style()}
    page: str = template.render(own | _shown(source, plots) | _data(source))
    return page


def _shown(source: Source, plots: Path) -> dict[str, Any]:
    return {
        "title": _title(source),
        "source": source,
        "summary": summary,
        "measures": [heading(key) for key in summary.measures(source.result)],
        "sections": draw(source, plots),
        "diagnostics": diagnostics(source.diagnostics),
        "facts": {name: _readable(value) for name, value in source.facts.items()},
    }


def _title(source: Source) -> str:
    """The folder's name; a grid's results lie in `report/` inside of the grid's own folder."""
    folder = source.folder.resolve()
    grid = source.matrix is not None and summary.main_system(source) is None
    return folder.parent.name if grid else folder.name


def _data(source: Source) -> dict[str, Any]:
    """What the script unpacks."""
    coded = code(source)
    pictures = thumbnails(source.documents, coded.documents, coded.order)
    pages = packed(pictures)
    return {
        "count": len(coded.listed["ids"]),
        "pictured": pictures["queries"],
        "pictured_of": QUERIES,
        "listed": packed(coded.listed),
        "found": packed(coded.found),
        "texts": pack(source.documents, coded.documents, ROOM - len(pages)),
        "pages": pages,
    }


def _environment() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra("jinja2") from error
    return Environment(
        loader=PackageLoader("rewriter.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _policy(script: str) -> str:
    """Nothing from outside, and no script but the page's own, whatever the data holds."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _script() -> str:
    parts = "\n".join(_static(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();'


def _style() -> str:
    light, dark = _variables(LIGHT), _variables(DARK)
    return "\n".join(
        [
            f":root {{ color-scheme: light; {light} }}",
            "@media (prefers-color-scheme: dark) {",
            f':root:not([data-theme="light"]) {{ color-scheme: dark; {dark} }} }}',
            f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}',
            *(_static(f"{name}.css") for name in STYLES),
        ]
    )


def _variables(palette: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in palette.items())


def _static(name: str) -> str:
    return (files("rewriter.report") / "static" / name).read_text(encoding="utf-8")


def _readable(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
