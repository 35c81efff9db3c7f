"""Trackers without a network and without an account; one process beside a busy port."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import tiny

# No proxy to get out by, no account, nothing in the home folder.
SHUT = {
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "WANDB_API_KEY": "",
    "WANDB_MODE": "",
}


def _config(folder: Path, **trainer: Any) -> Path:
    values = tiny.settings(folder, trainer={"max_steps": 1} | trainer, evaluation={"every": 1})
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.slow
def test_one_step_with_wandb_offline(tmp_path: Path) -> None:
    config = _config(tmp_path, report_to="wandb")
    done = tiny.launch(["python", "train.py", "--config", config], HOME=str(tmp_path), **SHUT)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    assert list(run.glob("wandb/offline-run-*/*.wandb"))
    assert len((run / "completions.jsonl").read_text().splitlines()) == 8


def test_one_step_with_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    run = tiny.train_tiny(tmp_path, trainer={"max_steps": 1, "report_to": "tensorboard"})
    assert list(run.path.rglob("events.out.tfevents.*"))
    assert len(tiny.lines(run.completions(0))) == 8


@pytest.mark.slow
def test_one_process_while_the_port_is_in_use(tmp_path: Path) -> None:
    config = _config(tmp_path)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 29500))
            taken.listen()
        except OSError:
            pass  # somebody else's: in use all the same
        done = tiny.launch(["accelerate", "launch", "train.py", "--config", config])
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["lexical"]["trained"]["ndcg@3"]["n"] == 2
