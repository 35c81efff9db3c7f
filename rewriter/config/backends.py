"""Open the backends that the configuration names."""

from collections.abc import Iterable
from pathlib import Path

from retrievers import Documents, Retriever, build_retrievers, index_folder
from rewriter.config.sections import Config


def open_retrievers(
    config: Config, collection: Documents, names: Iterable[str] | None = None
) -> dict[str, Retriever]:
    """Backends over a collection, their indexes opened, or built where they are missing.

    Args:
        config: their settings, and `index_dir`.
        collection: what to search.
        names: of the backends; None for those that the reward names.
    """
    wanted = config.reward.backends if names is None else names
    indexes = Path(config.index_dir) if config.index_dir else None
    return build_retrievers(wanted, config.retriever_settings, collection, indexes)


def folder_of(config: Config, name: str) -> Path | None:
    """Where `open_retrievers` has a backend's index; None: in memory."""
    return index_folder(Path(config.index_dir), name) if config.index_dir else None
