"""Configurations of four lines, and the messages for what is added to them."""

from pathlib import Path

import pytest

from rewriter.config import ConfigError, load

BASE = "model:\n  name: x\nreward:\n  backends: lexical\n"  # four lines: further ones begin at 5


def fault(file: Path, added: str, *overrides: str) -> str:
    """The message for `BASE` with lines added, the folder's name left out."""
    file.write_text(BASE + added)
    with pytest.raises(ConfigError) as caught:
        load(file, overrides)
    return str(caught.value).replace(f"{file.parent}/", "")
