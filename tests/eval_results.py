"""Results of `rlqr eval` on the tiny collection."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rewriter import cli
from tests import tiny

close = pytest.approx
RAW = close(0.63093, abs=1e-5)  # every raw query has its document in the second place: 1 / log2(3)


def configured(folder: Path, **sections: Any) -> Path:
    """A configuration of the tiny policy, in a file."""
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(tiny.settings(folder, **sections)), encoding="utf-8")
    return path


def evaluated(folder: Path, *words: str, **sections: Any) -> Path:
    config = configured(folder, **sections)
    cli.main(["eval", "--config", str(config), "--output", str(folder / "result"), *words])
    return folder / "result"
