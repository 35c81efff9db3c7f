"""A rewriter that is evaluated with another search than it was trained against."""

import logging
from pathlib import Path
from typing import Any

import pytest

from rewriter.config import Config
from rewriter.evaluation.plan import Entry
from rewriter.evaluation.trained_with import warn_of_other_search
from tests import tiny


def config(folder: Path, **sections: Any) -> Config:
    return Config.model_validate(tiny.settings(folder, **sections))


def trained(folder: Path, **sections: Any) -> list[Entry]:
    """A run's folder as its `config.yaml` and `best` make it, and the raw query."""
    best = folder / "run" / "best"
    best.mkdir(parents=True)
    (best.parent / "config.yaml").write_text(config(folder, **sections).to_yaml())
    raw = Entry("raw", "raw query", "rule")
    return [raw, Entry("run", "run", "checkpoint", best)]


def test_every_setting_that_differs_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = trained(tmp_path, retrievers={"lexical": {"analysis": {"stemmer": "english"}}})
    now = config(tmp_path, retrievers={"lexical": {"k1": 1.2}})
    warn_of_other_search(now, entries, ["lexical"])
    told = [record.getMessage() for record in caplog.records]
    assert [text.partition(", and is")[0] for text in told] == [
        "run was trained with retrievers.lexical.k1: 1.5",
        "run was trained with retrievers.lexical.analysis.stemmer: english",
    ]
    assert "evaluated with 1.2;" in told[0]
    assert "evaluated with None;" in told[1]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_what_a_hybrid_is_made_of_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prompts = {"semantic": {"query_prompt": "query: "}}
    entries = trained(tmp_path, reward={"backends": "hybrid"}, retrievers=prompts)
    warn_of_other_search(config(tmp_path), entries, ["hybrid"])
    assert [record.getMessage()[:60] for record in caplog.records] == [
        "run was trained with retrievers.semantic.query_prompt: query: "[:60]
    ]


def test_nothing_is_told_of_the_same_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor of a backend that the training did not search, of settings that only one side knows, or
    of a folder without a run around it."""
    entries = trained(tmp_path)
    saved = tmp_path / "run" / "config.yaml"
    saved.write_text(saved.read_text().replace("    k1: 1.5\n", "    old_name: 7\n"))
    other = config(tmp_path, retrievers={"semantic": {"query_prompt": "query: "}})
    warn_of_other_search(other, entries, ["lexical", "semantic"])
    saved.write_text("retrievers: [\n")
    warn_of_other_search(other, entries, ["lexical"])
    saved.unlink()
    warn_of_other_search(other, entries, ["lexical"])
    assert not caplog.records
