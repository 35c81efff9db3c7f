"""README.md says what is there: its commands, options and files exist."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rewriter import cli
from rewriter.config import Config, ConfigError, load

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "configs" / "demo.yaml"
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
BLOCKS = [text for language, text in FENCE.findall(README) if language == "bash"]
INLINE = re.findall(r"`([^`\n]+)`", FENCE.sub("", README))


def calls(program: str) -> list[list[str]]:
    """The words after a program's name, for each command in README that calls it."""
    lines = "\n".join([*BLOCKS, *INLINE]).replace("\\\n", " ").splitlines()
    split = [part for line in lines for part in re.split(r"&&|\|", line)]
    words = [shlex.split(part, comments=True) for part in split if program in part]
    return [found[found.index(program) + 1 :] for found in words if program in found]


def mentioned(pattern: str) -> list[str]:
    return sorted(set(re.findall(pattern, README)))


def installations() -> list[list[str]]:
    lines = [line for block in BLOCKS for line in block.splitlines() if "pip install" in line]
    return [[part.strip() for part in line.split("&&")] for line in lines]


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    demo, tests = installations()[:2]
    assert demo[:2] == tests[:2] == ["python3 -m venv .venv", ". .venv/bin/activate"]
    assert demo[-1].startswith("accelerate launch train.py")
    assert tests[-1] == "pytest"


def test_ci_installs_and_tests_as_readme_says() -> None:
    wanted = installations()[1][2:]
    assert wanted[0] == 'pip install -e ".[dev]"'
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace(" --quiet", "")
    ran = [part.strip() for line in script.splitlines() for part in line.split("&&")]
    assert [step for step in ran if step in wanted] == wanted
    assert [step for step in ran if step][-1] == "pytest"


def parsers(parser: ArgumentParser, words: list[str]) -> Iterator[ArgumentParser]:
    """The parser and those of the subcommands that the words name."""
    yield parser
    for action in parser._actions:
        for word, inner in (action.choices if isinstance(action.choices, dict) else {}).items():
            if word in words:
                yield from parsers(inner, words)


@pytest.mark.parametrize("words", calls("rlqr"), ids=" ".join)
def test_rlqr_command_exists(words: list[str]) -> None:
    named = [word for word in words if not word.startswith("-")]
    assert not named or named[0] in cli.COMMANDS
    found = list(parsers(cli.parser(words), words))
    known = {name for parser in found for a in parser._actions for name in a.option_strings}
    assert {word.partition("=")[0] for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("words", calls("train.py"), ids=" ".join)
def test_training_command_is_accepted(words: list[str]) -> None:
    """Configuration files outside of configs/ stand for the reader's own."""
    own = re.compile(r"(?!configs/)[\w./-]+\.yaml|FILE")
    words = [str(DEMO) if own.fullmatch(word) else word for word in words]
    done = subprocess.run(
        [sys.executable, "train.py", *words, "--print_config"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check_fields(Config.model_validate(yaml.safe_load(done.stdout)))


def check_fields(config: Config) -> None:
    from peft import LoraConfig
    from trl import GRPOConfig

    assert config.trainer.keys() <= GRPOConfig.__dataclass_fields__.keys()
    assert config.lora.keys() <= LoraConfig.__dataclass_fields__.keys()


@pytest.mark.parametrize(
    "option", sorted({text.split()[0].partition("=")[0] for text in INLINE if text[:2] == "--"})
)
def test_option_exists(option: str) -> None:
    key = option.removeprefix("--")
    if f'"{option}"' in (ROOT / "train.py").read_text(encoding="utf-8"):
        return
    commands = list(cli.COMMANDS)
    parser = cli.parser([*commands, "inspect"])
    for one in parsers(parser, [*commands, "inspect"]):
        if any(option in action.option_strings for action in one._actions):
            return
    check_fields(load(DEMO, [] if null_is_refused(key) else [f"--{key}=null"]))


def null_is_refused(key: str) -> bool:
    """Whether a key of the configuration exists but is never null; fails if there is none."""
    try:
        load(DEMO, [f"--{key}=null"])
    except ConfigError as error:
        if "is not a setting" in str(error) or "holds no keys" in str(error):
            raise
        return True
    return False


@pytest.mark.parametrize(
    "path",
    mentioned(r"(?<![\w/.-])((?:configs|launch|tests|retrievers|rewards|rewriter)/[\w./-]+)"),
)
def test_file_exists(path: str) -> None:
    assert (ROOT / path.rstrip("./")).exists()


@pytest.mark.parametrize("module", mentioned(r"-m ((?:tests|rewriter|retrievers|rewards)[\w.]*)"))
def test_module_exists(module: str) -> None:
    assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("target", mentioned(r"\]\((?!https?:|#)([^)\s]+)\)"))
def test_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target.partition("#")[0]).exists()


@pytest.mark.parametrize("anchor", mentioned(r"\]\(#([^)\s]+)\)"))
def test_anchor_is_a_heading(anchor: str) -> None:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", README), flags=re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}
