"""Finding: collections, and the backends that search them."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from retrievers import torchvision_guard
from retrievers.base import Documents, Hit, PermanentSearchError, Retriever, SearchError

__all__ = [
    "RETRIEVERS",
    "Documents",
    "Hit",
    "PermanentSearchError",
    "Retriever",
    "SearchError",
    "build_retriever",
    "build_retrievers",
    "index_folder",
    "keeps_index",
    "part_names",
    "settings_class",
]

# Has to be in place before anything imports transformers; it costs nothing until then.
torchvision_guard.install()

# Backend name → (module, retriever class, settings class). Modules are imported when asked for, so
# that naming a backend in a configuration imports none of the packages behind the others.
RETRIEVERS: dict[str, tuple[str, str, str]] = {
    "lexical": ("retrievers.lexical", "LexicalRetriever", "LexicalSettings"),
    "semantic": ("retrievers.semantic", "SemanticRetriever", "SemanticSettings"),
    "multimodal": ("retrievers.multimodal", "MultimodalRetriever", "MultimodalSettings"),
    "hybrid": ("retrievers.hybrid", "HybridRetriever", "HybridSettings"),
    "http": ("retrievers.http", "HttpRetriever", "HttpSettings"),
    "custom": ("retrievers.custom", "CustomRetriever", "CustomSettings"),
}


def settings_class(name: str) -> type[BaseModel]:
    """The pydantic class of a backend's settings.

    Raises:
        ValueError: no backend of this name; the message lists those there are.
    """
    module, _, settings = _entry(name)
    found: type[BaseModel] = getattr(import_module(module), settings)
    return found


def part_names(settings: Any) -> tuple[str, ...]:
    """Names of the backends that a backend with these settings is made of; most have none."""
    return tuple(getattr(settings, "part_names", ()))


def keeps_index(name: str) -> bool:
    """Whether a backend keeps an index in a folder; an engine of your own has it elsewhere."""
    module, retriever, _ = _entry(name)
    return bool(getattr(import_module(module), retriever).keeps_index)


def index_folder(index_dir: Path, name: str) -> Path:
    """Where a backend's index is, below the folder of all indexes."""
    return index_dir / name


def build_retriever(
    name: str,
    settings: Any,
    collection: Documents,
    index_dir: Path | None = None,
    *,
    parts: Mapping[str, Retriever] | None = None,
) -> Retriever:
    """A backend over a collection; its index is opened in `index_dir`, or built there if missing.

    Args:
        name: a key of `RETRIEVERS`.
        settings: an instance of the backend's settings class.
        collection: what to search.
        index_dir: folder of the index; None keeps it in memory.
        parts: the backends it is made of, by name, where it is made of others.

    Raises:
        ValueError: no such backend, a part is missing, or the index there was built from something
            else.
    """
    module, retriever, _ = _entry(name)
    wanted, given = part_names(settings), parts or {}
    missing = [part for part in wanted if part not in given]
    if missing:
        raise ValueError(
            f"backend {name!r} is made of {', '.join(wanted)}, and `parts` lacks "
            f"{', '.join(missing)}; `build_retrievers` builds them too"
        )
    more: dict[str, Any] = {"parts": {part: given[part] for part in wanted}} if wanted else {}
    make = getattr(import_module(module), retriever)
    built: Retriever = make(collection, settings, index_dir, **more)
    return built


def build_retrievers(
    names: Iterable[str],
    settings: Callable[[str], Any],
    collection: Documents,
    index_dir: Path | None = None,
) -> dict[str, Retriever]:
    """Several backends over a collection, and first what they are made of; each is built once.

    Args:
        names: keys of `RETRIEVERS`.
        settings: a backend's name → its settings.
        collection: what to search.
        index_dir: every backend has its index in the folder of its name below; None: in memory.

    Returns:
        The backends named, in that order. One that is also a part of another is the same object.

    Raises:
        ValueError: as `build_retriever`, or a backend is made of itself.
    """
    built: dict[str, Retriever] = {}

    def build(name: str, above: tuple[str, ...] = ()) -> Retriever:
        if name in above:
            raise ValueError(f"a backend is made of itself: {' → '.join((*above, name))}")
        if name not in built:
            own = settings(name)
            parts = {part: build(part, (*above, name)) for part in part_names(own)}
            folder = index_folder(index_dir, name) if index_dir else None
            built[name] = build_retriever(name, own, collection, folder, parts=parts)
        return built[name]

    return {name: build(name) for name in names}


def _entry(name: str) -> tuple[str, str, str]:
    if name not in RETRIEVERS:
        raise ValueError(f"no backend {name!r}; there are: {', '.join(sorted(RETRIEVERS))}")
    return RETRIEVERS[name]
