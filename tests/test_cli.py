"""The command `rlqr`: arguments, what is written where, one line for a mistake."""

import io
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewriter import cli, policy
from rewriter.prompt import PromptSettings
from rewriter.records import Rewrite
from tests import saved_rewriter
from tests.tiny import save_collection

base, saved = saved_rewriter.base, saved_rewriter.saved  # fixtures


class FakeRewriter:
    """Answers with the last word; fails on a query that ends in "!"."""

    prompt = PromptSettings(mode="append", append_template="{rewrite} | {query}")
    decoding = type("Decoding", (), {"batch_size": 2})
    loaded: list[tuple[str, str | None]] = []  # noqa: RUF012 - shared with the test
    batches: list[int] = []  # noqa: RUF012

    @classmethod
    def from_pretrained(cls, folder: str, *, base: str | None = None) -> "FakeRewriter":
        cls.loaded.append((folder, base))
        return cls()

    def rewrites(self, queries: Sequence[str], backend: str | None = None) -> list[Rewrite]:
        self.batches.append(len(queries))
        return [self._rewrite(query) for query in queries]

    def _rewrite(self, query: str) -> Rewrite:
        if not query.strip():
            return Rewrite(None, "blank")
        return Rewrite(None, "empty") if query.endswith("!") else Rewrite(query.split()[-1])


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    """The command sends log lines to the standard error of now, which pytest closes."""
    loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.fixture
def rewriter(monkeypatch: pytest.MonkeyPatch) -> type[FakeRewriter]:
    monkeypatch.setattr(policy, "Rewriter", FakeRewriter)
    monkeypatch.setattr(FakeRewriter, "loaded", [])
    monkeypatch.setattr(FakeRewriter, "batches", [])
    return FakeRewriter


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda text: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_rewrite_writes_search_texts(rewriter: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["rewrite", "runs/best", "how long\nis a day", "help!", "세금 신고"])
    out, err = capsys.readouterr()
    assert out == "day | how long is a day\nhelp!\n신고 | 세금 신고\n"
    assert err == "1 of 3 queries could not be rewritten and stay as they are\n"
    assert rewriter.loaded == [("runs/best", None)]
    assert rewriter.batches == [2, 1]


def test_rewrite_as_json(rewriter: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["rewrite", "--json", "--base", "models/b", "runs/best", "how long", "help!"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        {"query": "how long", "rewrite": "long", "search_text": "long | how long", "failure": None},
        {"query": "help!", "rewrite": None, "search_text": "help!", "failure": "empty"},
    ]
    assert rewriter.loaded == [("runs/best", "models/b")]


def test_rewrite_reads_standard_input(
    rewriter: Any, standard_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input("하나 둘\n\n  \nthree four\r\n".encode())
    cli.main(["rewrite", "runs/best"])
    # A line for each line, so that two files can be put side by side.
    assert capsys.readouterr() == ("둘 | 하나 둘\n\n\nfour | three four\n", "")


def test_a_blank_query_stays_blank(
    rewriter: Any, standard_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["rewrite", "runs/best", " ", "a b"])
    assert capsys.readouterr() == ("\nb | a b\n", "")
    standard_input(b"\n")
    cli.main(["rewrite", "--json", "runs/best"])
    assert json.loads(capsys.readouterr().out) == {
        "query": "",
        "rewrite": None,
        "search_text": "",
        "failure": "blank",
    }


@pytest.mark.parametrize(
    "words",
    [
        ["DIR", "--json", "a b"],
        ["DIR", "--base", "X", "a b"],
        ["DIR", "--base=X", "a b", "--json"],
        ["--json", "DIR", "a b"],
    ],
    ids=" ".join,
)
def test_options_stand_anywhere(
    words: list[str], rewriter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["rewrite", *words])
    out = capsys.readouterr().out
    assert ("{" in out) == ("--json" in words)
    assert "b | a b" in out
    base = "X" if any(word.startswith("--base") for word in words) else None
    assert rewriter.loaded == [("DIR", base)]


def test_after_two_dashes_everything_is_a_query(
    rewriter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["rewrite", "DIR", "--", "--json", "--base"])
    assert capsys.readouterr().out == "--json | --json\n--base | --base\n"


def test_what_is_missing_is_said_truthfully(
    rewriter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failed(["rewrite"], capsys).endswith("arguments are required: DIR\n")
    assert failed(["rewrite", "DIR", "--base"], capsys).endswith(
        "argument --base: expected one argument\n"
    )
    assert failed(["rewrite", "DIR", "a", "--base", "--json"], capsys).endswith(
        "argument --base: expected one argument\n"
    )
    assert "unrecognized arguments: --jsno" in failed(["rewrite", "DIR", "--jsno", "a"], capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rewrite", "", "a"], "argument DIR: '' is empty; give a path"),
        (["rewrite", "a\0b", "a"], "argument DIR: 'a\\x00b' holds a NUL byte"),
        (["data", "inspect", "--loader", "beir", "--folder", ""], "--folder: '' is empty; give"),
        (["data", "inspect", "--config", "a.yaml", "--folder", ""], "--folder: '' is empty; give"),
        (["data", "inspect", "--loader", "stdlib", "--samples", "-1"], "--samples: '-1' is not a"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in failed(words, capsys)


def test_a_folder_for_a_loader_that_takes_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert failed(["data", "inspect", "--loader", "stdlib", "--folder", "X"], capsys) == (
        "error: loader 'stdlib' takes no folder; leave it out (it takes: questions)\n"
    )


def test_rewrite_of_nothing_writes_nothing(
    rewriter: Any, standard_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(b"")
    cli.main(["rewrite", "runs/best"])
    assert capsys.readouterr() == ("", "")


def failed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_mistakes_are_one_line(
    rewriter: Any, standard_input: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(b"caf\xe9\n")
    assert failed(["rewrite", "runs/best"], capsys).startswith(
        "error: standard input is not UTF-8 ("
    )
    config = tmp_path / "a.yaml"
    config.write_text("model: {name: x}\nreward:\n  kin: hit\n")
    assert failed(["data", "inspect", "--config", str(config)], capsys) == (
        f"error: {config}:3: `reward.kin` is not a setting; did you mean `kind`?\n"
    )
    assert failed(["data", "inspect", "--loader", "beir", "--folder", "none"], capsys) == (
        "error: none is no folder; give that of a local copy, or hub:OWNER/NAME for one on the "
        "Hugging Face hub\n"
    )
    assert failed(["data", "inspect", "--loader", "beir"], capsys).startswith(
        "error: loader 'beir': missing a required argument: 'folder'"
    )


def test_mistake_in_the_folder_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = failed(["rewrite", str(tmp_path), "a"], capsys)
    assert err.startswith(f"error: {tmp_path}: no manifest.json; give ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["rewrit"],
        ["rewrite"],
        ["data"],
        ["data", "inspect"],
        ["data", "inspect", "--loader", "bier"],
        ["data", "inspect", "--loader", "stdlib", "--config", "a.yaml"],
        ["data", "inspect", "--load", "stdlib"],
    ],
    ids=" ".join,
)
def test_unknown_words_end_with_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert failed(words, capsys).startswith("usage: rlqr")


def test_our_own_mistakes_keep_their_traceback(
    rewriter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, queries: Sequence[str], backend: str | None = None) -> list[Rewrite]:
        raise ValueError("a bug")

    monkeypatch.setattr(FakeRewriter, "rewrites", broken)
    with pytest.raises(ValueError, match="a bug"):
        cli.main(["rewrite", "runs/best", "a"])


def test_data_inspect_of_a_folder_and_of_a_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save_collection(tmp_path / "words")
    cli.main(["data", "inspect", "--loader", "beir", "--folder", str(folder), "--samples", "1"])
    by_loader = capsys.readouterr().out
    assert by_loader.startswith("collection words\n")
    assert by_loader.count("  reference: ") == 3  # one sample from each split

    config = tmp_path / "a.yaml"
    options = f"loader: beir, options: {{folder: {folder}}}"
    config.write_text(f"model: {{name: x}}\nreward:\ncollection: {{{options}}}\n")
    cli.main(["data", "inspect", "--config", str(config), "--samples", "1"])
    assert capsys.readouterr().out == by_loader


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, (purpose, _) in cli.COMMANDS.items():
        with pytest.raises(SystemExit) as end:
            cli.main([name, "--help"])
        assert end.value.code == 0
        assert purpose in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out.startswith("rlqr 0")


def test_rewrite_with_a_saved_rewriter(
    saved: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    cli.main(["rewrite", "--json", str(saved), "alpha beta", "gamma"])
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row["query"] for row in rows] == ["alpha beta", "gamma"]
    assert all((row["rewrite"] is None) == (row["failure"] is not None) for row in rows)
    texts = policy.Rewriter.from_pretrained(saved).search_texts(["alpha beta", "gamma"])
    assert [row["search_text"] for row in rows] == texts
