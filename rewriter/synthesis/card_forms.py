"""A data card as Markdown, and as an HTML page that asks for nothing from outside."""

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewriter.synthesis.card import Card, Sample, Table

SHOWN = 500  # characters of a sample
_SPECIAL = re.compile(r"([\\`*_\[\]<>|&#!~$])")


def markdown(card: "Card") -> str:
    """The card as Markdown. Texts from data are escaped: they bring no links and no HTML."""
    lines = [f"# {card.title}", ""]
    for note in card.notes:
        lines += [_plain(note), ""]
    for table in card.tables:
        lines += [*_table(table), ""]
    lines += [*_samples("Samples kept", card.kept), *_samples("Samples dropped", card.dropped)]
    return "\n".join(lines).rstrip()


def html(card: "Card") -> str | None:
    """The card as a page, everything escaped; None where jinja2 is not installed."""
    if find_spec("jinja2") is None:
        return None
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rewriter.synthesis"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    samples = (("Samples kept", card.kept), ("Samples dropped", card.dropped))
    return environment.get_template("card.html").render(card=card, samples=samples, shown=SHOWN)


def _table(table: "Table") -> Iterator[str]:
    yield f"## {table.title}"
    yield ""
    if table.note:
        yield from (table.note, "")
    yield _row(table.head)
    yield _row(["---"] * len(table.head), escaped=False)
    yield from (_row(row) for row in table.rows)


def _row(cells: Sequence[str], escaped: bool = True) -> str:
    return f"| {' | '.join(_plain(cell) if escaped else cell for cell in cells)} |"


def _samples(title: str, samples: "Sequence[Sample]") -> Iterator[str]:
    yield f"## {title}"
    yield ""
    for one in samples:
        reason = f" ({_plain(one.reason)})" if one.reason else ""
        text = one.text if len(one.text) <= SHOWN else f"{one.text[:SHOWN]}…"
        yield f"- {_plain(text)} — from {_plain(one.document)}{reason}"
    yield from ([] if samples else ["none"])
    yield ""


def _plain(text: str) -> str:
    """One line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
