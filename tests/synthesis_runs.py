"""Queries for ten documents, written by a server whose answers are known."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewriter.config import Config
from rewriter.synthesis.pipeline import Outcome, run
from tests.generation_server import GenerationServer, generating, tagged

TOPICS = ["bicycle", "harbour", "orchard", "furnace", "violin"]
TOPICS += ["glacier", "lantern", "compass", "pottery", "railway"]


def text_of(topic: str, number: int) -> str:
    return (
        f"Clean the {topic} twice a year, store the {topic} indoors and note every repair in the "
        f"log book number {number}."
    )


def answer(body: dict[str, Any]) -> str:
    """Six good answers; one that is blank, one without tags, one that copies, one that names."""
    content = body["messages"][-1]["content"]
    topic = next(topic for topic in TOPICS if topic in content)
    if topic == "glacier":
        return tagged("", "", "")
    if topic == "violin":
        return "I would rather not."
    if topic == "compass":
        return tagged("Mine is old.", "Clean the compass twice a year, store the compass indoors?")
    if topic == "lantern":
        return tagged("I light the cellar.", "What does lantern care ask of me?")
    return tagged(f"I look after a {topic} at home.", "How often should it be cleaned?")


@pytest.fixture
def server() -> Iterator[GenerationServer]:
    with generating(answer) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection: a document for each topic, and a person's question about the first one."""
    folder = tmp_path / "docs"
    (folder / "qrels").mkdir(parents=True)
    rows = [
        {"_id": f"d{n}", "title": f"{topic} care", "text": text_of(topic, n)}
        for n, topic in enumerate(TOPICS)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text('{"_id": "h1", "text": "when to clean a bike"}\n')
    (folder / "qrels" / "people.tsv").write_text("query-id\tcorpus-id\tscore\nh1\td0\t1\n")
    return folder


def settings(folder: Path, server: GenerationServer, **more: Any) -> dict[str, Any]:
    return {
        "collection": {"loader": "beir", "options": {"folder": str(folder)}},
        "model": {"name": "none"},
        "reward": {"backends": "lexical", "backoff_s": 0},
        "synthesis": {
            "generator": {
                "kind": "openai",
                "options": {"url": server.url, "model": "m", "retries": 0, "concurrency": 2},
            },
            "filters": {
                "length": {},
                "script": {"allowed": ["latin"]},
                "names": {},
                "copied": {"most": 0.3},
                "near_duplicates": {},
                "round_trip": {"within": 3},
            },
            "splits": {"train": 0.6, "validation": 0.2, "test": 0.2},
            "max_failures": 2,
            **more,
        },
    }


def synthesise(
    folder: Path, server: GenerationServer, output: Path, limit: int | None = None, **more: Any
) -> Outcome:
    config = Config.model_validate(settings(folder, server, **more))
    return run(config, output, limit)


def files(output: Path) -> dict[str, bytes]:
    """What does not depend on the order in which answers came."""
    names = {"corpus.jsonl", "queries.jsonl", "card.md", "card.html", "dropped.jsonl"}
    paths = [path for path in output.rglob("*") if path.name in names or path.suffix == ".tsv"]
    return {str(path.relative_to(output)): path.read_bytes() for path in paths}
