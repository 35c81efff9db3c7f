"""Data sets in the layout of the Hugging Face hub: a local copy, or `hub:OWNER/NAME`.

Which files belong to a configuration and a split says the card (README.md) where it does, else
their names: CONFIG/SPLIT-00000-of-00003.parquet, CONFIG/SPLIT.jsonl, or the same in data/ or at the
top. Layout: https://huggingface.co/docs/hub/datasets-manual-configuration
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrievers.identity import CollectionError, MissingFileError
from retrievers.loaders.rows import TABLES, table_kind

HUB = "hub:"
_SHARD = re.compile(r"(.*)-([0-9]{5})-of-([0-9]{5})")


def dataset_folder(source: str | Path, revision: str | None = None) -> Path:
    """The folder that holds a data set.

    Args:
        source: a folder, or `hub:OWNER/NAME`, which is fetched unless the hub's cache has it.
        revision: branch, tag or commit on the hub; None: its main branch.

    Raises:
        MissingFileError: no such folder, or the hub did not give it.
    """
    if not str(source).startswith(HUB):
        folder = Path(source).expanduser()
        if not folder.is_dir():
            raise MissingFileError(
                f"{folder} is no folder; give that of a local copy, or {HUB}OWNER/NAME for one on "
                "the Hugging Face hub"
            )
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    name = str(source).removeprefix(HUB)
    try:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision))
    except (OSError, HFValidationError) as error:  # its own errors and those of the network
        raise MissingFileError(f"the hub did not give the data set {name!r}: {error}") from error


def short_name(source: str | Path) -> str:
    """The last part of a folder's or a hub data set's name."""
    text = str(source)
    return text.rpartition("/")[2] if text.startswith(HUB) else Path(text).resolve().name


def data_files(folder: Path, config: str | None, split: str) -> list[Path]:
    """Files of one configuration and split, in order of their names.

    Args:
        folder: the data set's.
        config: of the data set; None: of one that has a single configuration without a name.
        split: for example "test".

    Raises:
        MissingFileError: there is none, or a shard is missing.
    """
    found = list(_declared(folder, config, split) or _named(folder, config, split))
    if not found:
        wanted = f"{config}/{split}-*.parquet" if config else f"data/{split}-*.parquet"
        raise MissingFileError(
            f"{folder}: no file of split {split!r}"
            f"{f' of configuration {config!r}' if config else ''}; wanted {wanted} (or .jsonl), or "
            "an entry under `configs` in README.md"
        )
    _check_shards(found)
    return found


def _declared(folder: Path, config: str | None, split: str) -> list[Path]:
    patterns = [
        pattern
        for entry in _card(folder).get("configs") or []
        if config is None or entry.get("config_name") == config
        for pattern in _patterns(entry.get("data_files"), split)
    ]
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if _is_data(path)})


def _card(folder: Path) -> dict[str, Any]:
    import yaml

    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    parts = re.split(r"^---\s*$", text, maxsplit=2, flags=re.MULTILINE)
    if len(parts) != 3 or parts[0].strip():
        return {}
    try:
        head = yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        raise CollectionError(f"{card}: its head is no YAML: {error}") from error
    return head if isinstance(head, dict) else {}


def _patterns(declared: Any, split: str) -> Iterator[str]:
    for one in declared if isinstance(declared, list) else []:
        if isinstance(one, dict) and one.get("split") == split:
            paths = one.get("path")
            yield from [paths] if isinstance(paths, str) else paths or []


def _named(folder: Path, config: str | None, split: str) -> list[Path]:
    name = re.compile(rf"{re.escape(split)}(-[0-9]{{5}}-of-[0-9]{{5}})?")
    places = [folder / config] if config else [folder / "data", folder]
    for place in places:
        files = sorted(place.iterdir()) if place.is_dir() else []
        if found := [path for path in files if _is_data(path) and name.fullmatch(_stem(path))]:
            return found
    return []


def _is_data(path: Path) -> bool:
    return path.is_file() and table_kind(path) in TABLES


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(f".{table_kind(path)}")


def _check_shards(files: list[Path]) -> None:
    """A missing shard would only look like a smaller data set."""
    shards = defaultdict(set)
    for path in files:
        if match := _SHARD.fullmatch(_stem(path)):
            shards[path.parent / match[1], int(match[3])].add(int(match[2]))
    for (stem, total), numbers in shards.items():
        if missing := sorted(set(range(total)) - numbers):
            raise MissingFileError(
                f"{stem}: {len(missing)} of {total} shards are missing, for example number "
                f"{missing[0]:05}; fetch the data set again"
            )
