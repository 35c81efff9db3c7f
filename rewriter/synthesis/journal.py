"""Every answer of a generator, on disk as soon as it is there: none is asked for twice."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rewriter.synthesis.generators import GenerationError, Reply

_KEPT = {one.name for one in fields(Reply)} - {"failure", "permanent"}


class Journal:
    """Key of a request → its answer, in a JSONL file that is only ever added to.

    Calls that failed are not in it: they are made again.

    Args:
        path: the file; made when the first answer comes.

    Raises:
        GenerationError: a line is no answer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Reply] = {}
        if path.is_file():
            self._read()

    def __len__(self) -> int:
        """Number of answers."""
        return len(self._known)

    def get(self, key: str) -> Reply | None:
        """The answer to a request, if it has one."""
        return self._known.get(key)

    def add(self, replies: Iterable[Reply], facts: dict[str, dict[str, Any]]) -> None:
        """Keep answers; they are on the disk when this returns.

        Args:
            replies: those without a text are passed over.
            facts: key → what else the line says, for readers: document, prompt, seed.
        """
        answered = [reply for reply in replies if reply.text is not None]
        lines = [json.dumps(facts.get(one.key, {}) | _row(one)) for one in answered]
        if not lines:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="ascii", newline="\n") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        self._known |= {one.key: one for one in answered}

    def _read(self) -> None:
        """Read all whole lines; one that a kill cut off is cut away."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                row = json.loads(line)
                reply = Reply(**{key: row[key] for key in _KEPT})
            except (ValueError, KeyError, TypeError) as error:
                raise GenerationError(
                    f"{self.path}:{number}: no answer of a generator ({error!r}); remove the line"
                ) from error
            self._known[reply.key] = reply


def _row(reply: Reply) -> dict[str, Any]:
    return {key: value for key, value in asdict(reply).items() if key in _KEPT}
