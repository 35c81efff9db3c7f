"""What is compared: names of systems, folders of checkpoints and files → one list, checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rewriter.checkpoint import MANIFEST, CheckpointError
from rewriter.config import Config
from rewriter.evaluation.judging import EvaluationError
from rewriter.prompt_systems import LABELS
from rewriter.rewrite_file import safe_name
from rewriter.systems import FILE, SYSTEMS, UNTRAINED

RAW = "raw"
BEST = "best"  # the folder of a run that holds its result


@dataclass(frozen=True)
class Entry:
    """One system.

    Attributes:
        name: in records and names of files.
        label: in tables.
        kind: what makes its rewrites.
        place: folder of a checkpoint, file of rewrites.
    """

    name: str
    label: str
    kind: Literal["rule", "prompt", "untrained", "checkpoint", "file"]
    place: Path | None = None


def plan(config: Config, systems: Sequence[str] | None, checkpoints: Sequence[str]) -> list[Entry]:
    """The systems in order, "raw" first, checkpoints last.

    Args:
        config: its `evaluation.systems` are taken where `systems` is None.
        systems: rules, "untrained", names of prompts, `file:PATH`.
        checkpoints: folders of runs, or their `best` folders. Each is named for its run; one
            whose name is taken, be it by a rule or a prompt, gets "-2".

    Raises:
        EvaluationError: no such system; lists those there are.
        CheckpointError: a folder without a trained rewriter.
    """
    given = config.evaluation.systems if systems is None else systems
    entries: dict[str, Entry] = {}
    for system in dict.fromkeys((RAW, *given)):
        entry = _entry(config, system, entries)
        entries[entry.name] = entry
    for folder in checkpoints:
        place = best_of(Path(folder))
        run = place.resolve().parent if place.name == BEST else place.resolve()
        name = safe_name(run.name, {*entries, *_known(config)})
        entries[name] = Entry(name, name, "checkpoint", place)
    return list(entries.values())


def best_of(folder: Path) -> Path:
    """The folder itself where it holds a rewriter, or the `best` one of a run's folder.

    Raises:
        CheckpointError: neither holds one.
    """
    for place in (folder, folder / BEST):
        if (place / MANIFEST).is_file():
            return place
    raise CheckpointError(
        f"{folder}: no trained rewriter there ({MANIFEST}), nor in {folder / BEST}; give the "
        "folder of a finished run"
    )


def _known(config: Config) -> tuple[str, ...]:
    """Names that mean something already: no checkpoint or file may go by one of them."""
    return (*SYSTEMS, UNTRAINED, *config.evaluation.prompts)


def _entry(config: Config, system: str, taken: dict[str, Entry]) -> Entry:
    prompts = config.evaluation.prompts
    if system in SYSTEMS:
        return Entry(system, SYSTEMS[system].label, "rule")
    if system == UNTRAINED:
        return Entry(system, "untrained rewriter", "untrained")
    if system in prompts:
        return Entry(system, LABELS.get(system, system), "prompt")
    if system.startswith(FILE):
        path = Path(system.removeprefix(FILE))
        name = safe_name(path.stem, {*taken, *_known(config)})
        # Of two files of one name each is called by its path: a table must tell them apart.
        labels = {entry.label for entry in taken.values()}
        return Entry(name, str(path) if path.name in labels else path.name, "file", path)
    there = ", ".join((*_known(config), f"{FILE}PATH"))
    raise EvaluationError(f"no system {system!r}; there are: {there}, and --checkpoint DIR")
