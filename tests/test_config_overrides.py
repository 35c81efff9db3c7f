"""The configuration: what a command line changes, and its faults."""

from pathlib import Path
from typing import Any

import pytest

from rewriter.config import load
from tests.config_files import fault


def reward_of(file: Path, backends: str, *overrides: str) -> dict[str, Any]:
    file.write_text(f"model:\n  name: x\nreward:\n  backends: {backends}\n")
    backends = load(file, overrides).reward.backends
    return {name: one.model_dump() for name, one in backends.items()}


def test_reward_backends_are_opened_by_dotted_overrides(file: Path) -> None:
    full = {"kind": "ndcg", "k": 5, "gain": False, "weight": 1.0}
    override = ("--reward.backends.lexical.k", "5")
    assert reward_of(file, "lexical", *override) == {"lexical": full}
    assert reward_of(file, "[lexical]", *override) == {"lexical": full}
    assert reward_of(file, "null", *override) == {"lexical": full}
    assert reward_of(file, "{lexical: 0.5}", *override) == {"lexical": full | {"weight": 0.5}}
    assert reward_of(file, "{lexical: {k: 9}}", "--reward.backends", "lexical", *override) == {
        "lexical": full
    }


def test_a_saved_configuration_still_heeds_what_is_said_for_all_backends(
    file: Path, tmp_path: Path
) -> None:
    """With `kind` written out for each of them, `--reward.kind` would change nothing."""
    reward_of(file, "{lexical: {k: 9}, semantic: {weight: 0.5}}")
    saved = tmp_path / "saved.yaml"
    saved.write_text(load(file, ["--reward.kind", "rank"]).to_yaml())
    assert load(saved) == load(file, ["--reward.kind", "rank"])
    again = load(saved, ["--reward.kind", "hit", "--reward.k", "7"]).reward.backends
    assert [(one.kind, one.k, one.weight) for one in again.values()] == [
        ("hit", 9, 1.0),
        ("hit", 7, 0.5),
    ]


def test_short_form_of_a_backend_that_does_not_exist(file: Path) -> None:
    assert fault(file, "", "--reward.backends", "semantik").startswith(
        "command line: `reward.backends`: no backend 'semantik'; there are: "
    )


def test_later_override_counts(file: Path) -> None:
    assert load(file, ["--threads=1", "--threads=2"]).threads == 2
    whole = ["--alarms.length", "5", "--alarms", "{window: 3}"]
    assert load(file, whole).alarms.model_dump(exclude_unset=True) == {"window": 3}


def test_override_of_a_part_names_both_places(file: Path) -> None:
    message = fault(
        file, "retrievers:\n  lexical: {k1: 2}\n", "--retrievers.lexical.variant", "bm25l"
    )
    assert message.startswith("my.yaml:6 with --retrievers.lexical.variant: `retrievers.lexical`: ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["seed"], "command line: 'seed': expected an override such as"),
        (["--"], "command line: '--': expected an override"),
        (["--a..b", "1"], "command line: '--a..b': expected an override"),
        (["--output"], "command line: --output has no value; write --output VALUE"),
        (["--trainer.bf16", "--output", "a"], "command line: --trainer.bf16 has no value"),
        (["--model.name.x", "a"], "command line: --model.name.x: `model.name` is 'x', which holds"),
        (["--alarms.lenght", "3"], "command line: `alarms.lenght` is not a setting; did you mean"),
        (["--trainr.seed", "2"], "command line: `trainr` is not a setting; did you mean `trainer`"),
        (["--output", ""], "command line: `output`: is empty; give a folder"),
        (["--index_dir", ""], "command line: `index_dir`: is empty; give a folder"),
        (["--model.name", "package:"], "command line: `model.name`: names no model; give a hub id"),
        (["--model.name", ""], "command line: `model.name`: names no model; give a hub id"),
        (["--alarms", "{length: 1, length: 2}"], "command line:1: `length` is given twice"),
    ],
)
def test_fault_of_an_override(file: Path, words: list[str], message: str) -> None:
    assert fault(file, "", *words).startswith(message)
