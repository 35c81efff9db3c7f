"""Finding: collections, and the backends that search them."""

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
    "settings_class",
]

# Has to be in place before anything imports transformers; it costs nothing until then.
torchvision_guard.install()

# Backend name → (module, retriever class, settings class). Modules are imported when asked for, so
# that naming a backend in a configuration imports none of the packages behind the others.
RETRIEVERS: dict[str, tuple[str, str, str]] = {
    "lexical": ("retrievers.lexical", "LexicalRetriever", "LexicalSettings"),
}


def settings_class(name: str) -> type[BaseModel]:
    """The pydantic class of a backend's settings.

    Raises:
        ValueError: no backend of this name; the message lists those there are.
    """
    module, _, settings = _entry(name)
    found: type[BaseModel] = getattr(import_module(module), settings)
    return found


def build_retriever(
    name: str, settings: Any, collection: Documents, index_dir: Path | None = None
) -> Retriever:
    """A backend over a collection; its index is opened in `index_dir`, or built there if missing.

    Args:
        name: a key of `RETRIEVERS`.
        settings: an instance of the backend's settings class.
        collection: what to search.
        index_dir: folder of the index; None keeps it in memory.

    Raises:
        ValueError: no such backend, or the index there was built from something else.
    """
    module, retriever, _ = _entry(name)
    built: Retriever = getattr(import_module(module), retriever)(collection, settings, index_dir)
    return built


def _entry(name: str) -> tuple[str, str, str]:
    if name not in RETRIEVERS:
        raise ValueError(f"no backend {name!r}; there are: {', '.join(sorted(RETRIEVERS))}")
    return RETRIEVERS[name]
