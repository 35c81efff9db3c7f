"""One rewriter for several backends: the prompt says which of them reads the rewrite."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewriter import Rewriter, cli
from rewriter.config import Config
from rewriter.prompt import Example, PromptError, PromptSettings
from rewriter.records import read_records
from rewriter.run_directory import RunDirectory
from rewriter.training_data import load_data
from tests import tiny

PROMPT = PromptSettings(
    system="Write for {backend}.",
    template="{backend}: {query}",
    backends={"lexical": "keyword search"},
    examples=(
        Example(query="a", rewrite="b"),
        Example(query="c", rewrite="d", backend="semantic"),
    ),
)


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_what_the_model_reads() -> None:
    assert PROMPT.messages("q {backend}", "lexical") == [
        {"role": "system", "content": "Write for keyword search."},
        {"role": "user", "content": "keyword search: a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "keyword search: q {backend}"},  # a query is plain text
    ]
    semantic = [message["content"] for message in PROMPT.batch(["q"], "semantic")[0]]
    assert semantic == [
        "Write for semantic.",
        "semantic: a",
        "b",
        "semantic: c",
        "d",
        "semantic: q",
    ]


def test_a_prompt_that_names_none_needs_none() -> None:
    plain = PromptSettings(system="Write {backends}.")
    assert not plain.by_backend
    assert plain.messages("q") == plain.messages("q", "lexical")
    for one in (
        PromptSettings(system="{backend}"),
        PromptSettings(system=None, template="{backend} {query}"),
        PromptSettings(examples=(Example(query="a", rewrite="b", backend="x"),)),
    ):
        assert one.by_backend
        with pytest.raises(PromptError, match="which backend reads the rewrite"):
            one.messages("q")


# "beta" and "gamma" are words that the tiny policy knows.
SECTIONS: dict[str, Any] = {
    "prompt": {"system": "{backend}", "backends": {"lexical": "beta", "custom": "gamma"}},
    "reward": {"backends": ["lexical", "custom"], "kind": "ndcg"},
    "retrievers": {"custom": {"path": "tests.own_engines:Engine"}},
    "trainer": {"max_steps": 6, "learning_rate": 0.05},
    "evaluation": {"every": 3, "systems": ["raw", "untrained"]},
}


def _settings(folder: Path) -> dict[str, Any]:
    values = tiny.settings(folder, **{k: v for k, v in SECTIONS.items() if k != "retrievers"})
    return values | {"retrievers": SECTIONS["retrievers"]}


def test_rows_are_queries_times_backends(tmp_path: Path) -> None:
    data = load_data(Config.model_validate(_settings(tmp_path)))
    assert len(data.rows) == 12
    assert [(row["query_id"], row["backends"]) for row in data.rows[:3]] == [
        ("q0", ["lexical"]),
        ("q0", ["custom"]),
        ("q1", ["lexical"]),
    ]
    assert [row["prompt"][0]["content"] for row in data.rows[:2]] == ["beta", "gamma"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    from rewriter.training import train

    config = Config.model_validate(_settings(tmp_path_factory.mktemp("by_backend")))
    train(config)
    return RunDirectory(config.output)


def test_each_prompt_is_rewarded_by_its_backend_alone(run: RunDirectory) -> None:
    rows = tiny.lines(run.completions(0))
    seen = set()
    for row in rows:
        rewarded = {name for name, value in row["rewards"].items() if value is not None}
        rewarded -= {"format"}
        assert len(rewarded) == 1
        (name,) = rewarded
        seen.add(name)
        assert set(row["hits"]) <= {name.partition("_")[0]}
    assert seen == {"lexical_ndcg@3", "custom_ndcg@3"}


def test_each_backend_is_evaluated_with_its_own_prompt(run: RunDirectory) -> None:
    evaluations = tiny.lines(run.evaluations)
    assert [row["n"] for row in evaluations] == [4, 4, 4]  # 2 queries × 2 backends
    rewriter = Rewriter.from_pretrained(run.best)
    with pytest.raises(PromptError):
        rewriter.rewrite(["alpha"])
    for record in read_records(run.records):
        if record.system == "trained":
            (made,) = rewriter.rewrites([record.query], record.backend)
            assert (record.rewrite, record.failure) == (made.text, made.failure)


def test_rlqr_eval_does_the_same(run: RunDirectory, tmp_path: Path) -> None:
    path = run.path / "config.yaml"
    words = ["--checkpoint", str(run.path), "--systems", "untrained"]
    cli.main(["eval", "--config", str(path), *words, "--output", str(tmp_path / "out")])
    written = {
        (record.backend, record.query_id, record.system): record.rewrite
        for record in read_records(tmp_path / "out" / "records.jsonl")
    }
    for record in read_records(run.records):
        system = {"trained": run.path.name}.get(record.system, record.system)
        assert written[record.backend, record.query_id, system] == record.rewrite
    assert len(list((tmp_path / "out" / "cache").iterdir())) == 4  # 2 systems × 2 backends
