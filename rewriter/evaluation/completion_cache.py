"""Completions on disk: no rewrite is generated twice, not by a second run, not after a kill.

A file holds what one model wrote with one prompt and one way of decoding; its name is the hash of
those. What is kept is the model's own text: the parser reads it anew every time.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from retrievers.index import fingerprint
from rewriter.evaluation.judging import EvaluationError
from rewriter.generation import Completion

_MADE_BY = "made_by"


class CompletionCache:
    """Query text → completion.

    Args:
        folder: where the files are.
        made_by: all that a completion depends on but the query: JSON values.

    Raises:
        EvaluationError: a line of its file is damaged; names file:line.
    """

    def __init__(self, folder: Path, made_by: Mapping[str, Any]) -> None:
        self.path = folder / f"{fingerprint(made_by)[:32]}.jsonl"
        self._made_by = made_by
        self._known: dict[str, Completion] = {}
        if self.path.is_file():
            self._read()

    def get(self, query: str) -> Completion | None:
        """What was written for a query, if anything was."""
        return self._known.get(query)

    def add(self, written: Mapping[str, Completion]) -> None:
        """Keep completions; they are on the disk when this returns."""
        self._known.update(written)
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows: list[dict[str, Any]] = [{_MADE_BY: self._made_by}] if new else []
        rows += [{"query": query} | asdict(one) for query, one in written.items()]
        text = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
        with self.path.open("a", encoding="ascii", newline="\n") as file:
            file.write(text)
            file.flush()

    def _read(self) -> None:
        """Read all whole lines; a line that a kill cut off is cut away."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                row = json.loads(line)
                if _MADE_BY not in row:
                    query = row.pop("query")
                    self._known[query] = Completion(**(row | {"tokens": tuple(row["tokens"])}))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise EvaluationError(
                    f"{self.path}:{number}: {line[:60]!r} is no completion ({error!r}); remove the "
                    "line, and its query is rewritten again"
                ) from error
