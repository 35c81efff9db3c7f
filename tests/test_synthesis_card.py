"""Documents in, queries out: the data card."""

from pathlib import Path
from typing import Any

from tests import synthesis_runs
from tests.generation_server import GenerationServer, generating, tagged
from tests.synthesis_runs import TOPICS, synthesise

server, folder = synthesis_runs.server, synthesis_runs.folder  # fixtures


def test_the_card_counts(server: GenerationServer, folder: Path, tmp_path: Path) -> None:
    synthesise(folder, server, tmp_path / "out")
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert card.startswith("# Synthetic queries: 6 kept\n")
    for row in (
        "| queries wanted |  |  | 10 |",
        "| answer | too little | 1 | 9 |",
        "| answer | unparsed: no\\_answer\\_tag | 1 | 8 |",
        "| length |  | 0 | 8 |",
        "| names | names the document | 1 | 7 |",
        "| copied | copied wording | 1 | 6 |",
        "| round\\_trip |  | 0 | 6 |",
        "| prompt tokens | 70 |",
        "| answer tokens | 30 |",
        "| train | 4 | 4 |",
        # Each query holds its topic, which no other document does.
        "| lexical | 6 | 100% | 100% | 100% | 100% | 1.000 |",
    ):
        assert f"{row}\n" in card
    page = (tmp_path / "out" / "card.html").read_text(encoding="utf-8")
    assert "<h1>Synthetic queries: 6 kept</h1>" in page
    assert "<td>copied wording</td><td>1</td><td>6</td>" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_texts_from_outside_do_nothing_in_the_card(folder: Path, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> ![x](http://evil) a|b"

    def attack(body: dict[str, Any]) -> str:
        topic = next(t for t in TOPICS if t in body["messages"][-1]["content"])
        return tagged(f"{topic} and nothing else but that one thing of mine", evil)

    with generating(attack) as server:
        synthesise(folder, server, tmp_path / "out", filters={})
    page = (tmp_path / "out" / "card.html").read_text()
    card = (tmp_path / "out" / "card.md").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in card.replace("\\<script\\>", "")
    assert "\\!\\[x\\](http://evil) a\\|b" in card
