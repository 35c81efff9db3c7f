"""Documents in, queries out: the collection that is written, and what it reads."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from retrievers.collection import Collection, Document, Query
from retrievers.loaders import load as load_collection
from rewriter.synthesis.output import _judged
from rewriter.synthesis.pipeline import SynthesisError
from tests import synthesis_runs
from tests.generation_server import GenerationServer, generating, tagged
from tests.synthesis_runs import TOPICS, answer, files, synthesise

server, folder = synthesis_runs.server, synthesis_runs.folder  # fixtures


# -- what comes out -------------------------------------------------------------------------------


def test_a_collection_comes_out(server: GenerationServer, folder: Path, tmp_path: Path) -> None:
    outcome = synthesise(folder, server, tmp_path / "out")
    assert Counter((one.filter, one.reason) for one in outcome.dropped) == {
        ("answer", "too little"): 1,
        ("answer", "unparsed: no_answer_tag"): 1,
        ("names", "names the document"): 1,
        ("copied", "copied wording"): 1,
    }
    made = load_collection("beir", folder=tmp_path / "out")
    assert len(made) == 10
    assert {split: len(made.queries(split)) for split in made.splits} == {
        "train": 4,
        "validation": 1,
        "test": 1,
    }
    asked = {query.text for split in made.splits for query in made.queries(split)}
    wanted = ["bicycle", "harbour", "orchard", "furnace", "pottery", "railway"]
    assert asked == {
        f"I look after a {topic} at home. How often should it be cleaned?" for topic in wanted
    }


def test_each_query_says_where_it_is_from(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    synthesise(folder, server, tmp_path / "out", seed=7)
    made = load_collection("beir", folder=tmp_path / "out")
    facts = json.loads((tmp_path / "out" / "synthesis.json").read_text())
    for split in made.splits:
        for query in made.queries(split):
            assert query.origin == "synthetic"
            assert made.qrels(split)[query.id] == {query.source: 1.0}
            known = dict(query.metadata)
            assert known.pop("scenario").startswith("I look after a ")
            assert known == {
                "generator": "openai",
                "model": "m",
                "prompt": facts["prompt"],
                "seed": 7,
                "number": 0,
                "filters": [
                    "length",
                    "script",
                    "names",
                    "copied",
                    "near_duplicates",
                    "round_trip",
                ],
                "question": "How often should it be cleaned?",
            }


def test_equal_seeds_write_equal_files(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        synthesise(folder, server, tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "other")
    assert len(files(tmp_path / "one")) == 8


def test_another_seed_asks_anew(server: GenerationServer, folder: Path, tmp_path: Path) -> None:
    for seed in (1, 2, 1):
        synthesise(folder, server, tmp_path / "out", seed=seed)
    assert Counter(body["seed"] for body in server.bodies) == {1: 10, 2: 10}


def test_several_queries_of_a_document_are_in_one_split(folder: Path, tmp_path: Path) -> None:
    def numbered(body: dict[str, Any]) -> str:
        content = body["messages"][-1]["content"]
        topic = next(topic for topic in TOPICS if topic in content)
        words = ["winter storage", "summer races"][body["seed"]]
        return tagged(f"A {topic} of mine.", f"Anything to know about {words} and {topic} rust?")

    with generating(numbered) as server:
        outcome = synthesise(
            folder, server, tmp_path / "out", per_document=2, filters={}, documents=8
        )
    assert len(outcome.kept) == 16
    assert len({draft.id for draft in outcome.kept}) == 16
    of = {draft.id: draft.document for draft in outcome.kept}
    splits = [{of[query] for query in ids} for ids in outcome.splits.values()]
    assert sum(map(len, splits)) == 8 == len(set().union(*splits))


def test_a_larger_limit_reads_the_same_documents_and_more(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(SynthesisError, match="too few for the splits"):
        synthesise(folder, server, tmp_path / "out", limit=2)
    assert "too few queries" in (tmp_path / "out" / "card.md").read_text()
    few = server.asked()
    assert len(few) == 2
    synthesise(folder, server, tmp_path / "out", limit=9)
    assert len(server.asked()) == 9 == len(set(server.asked()))  # those two were not asked again


def test_people_s_questions_are_kept_and_their_documents_left_alone(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    splits = {"train": 0.6, "validation": 0.4}
    outcome = synthesise(folder, server, tmp_path / "out", keep=["people"], splits=splits)
    assert outcome.passed == {"judged in a split that is kept": 1}
    assert not any("bicycle" in text for text in server.asked())
    made = load_collection("beir", folder=tmp_path / "out")
    (human,) = made.queries("people")
    assert (human.id, human.origin, made.qrels("people")) == ("h1", "human", {"h1": {"d0": 1.0}})
    assert made.warnings == []


def test_a_kept_split_leaves_out_queries_without_judgement() -> None:
    documents = [Document("d0", "", "a"), Document("d1", "", "b")]
    qrels = {"people": {"source": {"h1": {"d0": 1.0}, "h2": {}}, "graded": {"h2": {"d1": 2.0}}}}
    source = Collection.from_documents("c", documents, [Query("h1", "a"), Query("h2", "b")], qrels)
    assert _judged(source, "people") == {"source": {"h1": {"d0": 1.0}}, "graded": {}}


def test_a_run_that_keeps_too_little_leaves_no_older_collection(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    synthesise(folder, server, tmp_path / "out")
    with pytest.raises(SynthesisError, match="0 queries are kept"):
        synthesise(folder, server, tmp_path / "out", filters={"length": {"least": 500}})
    held = {path.name for path in (tmp_path / "out").iterdir()}
    assert held == {"journal.jsonl", "card.md", "card.html", "dropped.jsonl", "config.yaml"}
    assert len(server.bodies) == 10


def test_headings_need_no_model(folder: Path, tmp_path: Path) -> None:
    with generating(answer) as server:
        outcome = synthesise(
            folder, server, tmp_path / "out", generator={"kind": "headings"}, filters={}
        )
        assert server.bodies == []
    assert sorted(draft.text for draft in outcome.kept) == sorted(f"{t} care" for t in TOPICS)
    assert "favours keyword search" in (tmp_path / "out" / "card.md").read_text()


def test_the_source_can_be_opened_with_the_queries(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    synthesise(folder, server, tmp_path / "out")
    made = load_collection("synthetic", folder=tmp_path / "out")
    plain = load_collection("beir", folder=tmp_path / "out")
    assert made.fingerprint == plain.fingerprint
    assert [made.queries(split) for split in made.splits] == [
        plain.queries(split) for split in plain.splits
    ]
    corpus = folder / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("twice", "thrice"))
    with pytest.raises(ValueError, match="written from other documents"):
        load_collection("synthetic", folder=tmp_path / "out")


def test_a_long_document_is_shortened_in_the_prompt(folder: Path, tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(4000))
    row = {"_id": "long", "title": "Long", "text": words[:30_000]}
    (folder / "corpus.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "qrels" / "people.tsv").unlink()
    with generating(lambda body: "no") as server, pytest.raises(SynthesisError):
        synthesise(folder, server, tmp_path / "out", document_chars=1000)
    (content,) = server.asked()
    before, after = content.split("<document>\nLong\n")
    assert after.startswith("word0 word1 ")
    assert after.endswith("…\n</document>")
    assert len(after) <= 1000 + len("\n</document>")
    assert "<question>" in before


# -- page images ----------------------------------------------------------------------------------


def test_pages_are_shown_as_images(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    seen: list[str] = []

    def look(body: dict[str, Any]) -> str:
        image, text = body["messages"][-1]["content"]
        seen.append(image["image_url"]["url"])
        assert "page" in text["text"]
        return tagged(f"I hold page {len(seen)} of a manual.", "What is it that I clean here?")

    with generating(look) as server:
        outcome = synthesise(
            folder, server, tmp_path / "out", reads="pages", filters={}, documents=8
        )
    assert len(set(seen)) == 8
    assert all(url.startswith("data:image/png;base64,iVBORw0KGgo") for url in seen)
    assert {draft.page for draft in outcome.kept} == {1}


def test_one_page_of_many_is_drawn_by_seed() -> None:
    from PIL import Image

    from retrievers.pages import Page
    from rewriter.synthesis.readings import _chosen
    from rewriter.synthesis.settings import SynthesisSettings

    pages = [Page(n, None if n == 2 else Image.new("RGB", (2, 2))) for n in range(1, 7)]
    drawn = Counter(
        page.number
        for number in range(200)
        for page in _chosen(f"d{number}", iter(pages), SynthesisSettings())
        if page is not None
    )
    assert set(drawn) == {1, 3, 4, 5, 6}
    assert min(drawn.values()) > 20  # 40 each on average
    again = _chosen("d1", iter(pages), SynthesisSettings())
    assert again == _chosen("d1", iter(pages), SynthesisSettings())
    assert _chosen("d1", iter([pages[1]]), SynthesisSettings()) == [None]
