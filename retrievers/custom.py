"""A search engine written in Python by the user: any class with `search(queries, k)`."""

from collections.abc import Mapping
from importlib import import_module
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any

from pydantic import Field

from retrievers.answers import PROBE_HITS, Answers, EngineSettings, as_pair, probe_texts
from retrievers.base import Documents, Hit, PermanentSearchError, Retriever, SearchError
from retrievers.index import fingerprint


class CustomSettings(EngineSettings):
    """Which class it is.

    Attributes:
        path: "package.module:Class", or a function that returns the engine.
        arguments: what it is called with. A parameter named `collection` that is not among them is
            given the collection: `ids`, and `texts()` for (title, text) in the same order.
    """

    path: str = Field(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*$")
    arguments: dict[str, Any] = Field(default_factory=dict)


class CustomEngineError(ValueError):
    """The class that the config names cannot be used; the message says what it has to be like."""


class CustomRetriever(Retriever):
    """Searches with the user's own engine, and leaves its order as it is.

    The engine's `search(queries, k)` gets a list of distinct texts and returns as many lists in
    their order, best hit first. A hit is an id, (id, score), {"id": …, "score": …}, or an object
    with `id` and `score`. Calls come one at a time.

    Args:
        collection: whose documents the engine finds.
        settings: which class.
        index_dir: not used.
        cache_size: answers to keep.

    Attributes:
        engine: the user's object.
        answers: counts of hits, and of those that are no document of the collection.

    Raises:
        CustomEngineError: it cannot be imported or called, or what it returns for two probe
            queries is not what it should be.

    A search raises what the engine raises: `SearchError` and everything else that may pass is
    tried again by a reward, `PermanentSearchError` and errors of the code (TypeError, ValueError,
    LookupError, …) are not.
    """

    backend = "custom"
    keeps_index = False

    def __init__(
        self,
        collection: Documents,
        settings: CustomSettings,
        index_dir: Path | None = None,
        *,
        cache_size: int = 4096,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.settings = settings
        self.fingerprint = fingerprint(
            {
                "documents": collection.fingerprint,
                "settings": settings.model_dump(mode="json", exclude={"probe"}),
            }
        )
        self.answers = Answers(self.backend, collection, settings.unknown == "drop")
        self.engine = _engine(settings, collection)
        if settings.probe:
            self._try(probe_texts(collection))

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        answer = self.engine.search(list(queries), max(k, self.settings.depth))
        found = [self._ranking(hits) for hits in self._lists(answer, len(queries))]
        self.answers.report()
        return found

    def _lists(self, answer: Any, wanted: int) -> list[Any]:
        lists = None if isinstance(answer, str | Mapping) else _listed(answer)
        if lists is not None and len(lists) == wanted:
            return lists
        form = type(answer).__name__ if lists is None else f"{len(lists)} lists"
        raise PermanentSearchError(
            f"{self.settings.path}.search returned {form} for {wanted} queries; it has to return "
            "one list a query, in their order"
        )

    def _ranking(self, hits: Any) -> list[Hit]:
        listed = None if isinstance(hits, str | Mapping) else _listed(hits)
        if listed is None:
            raise PermanentSearchError(
                f"{self.settings.path}.search returned {hits!r:.80} for one query; it has to be a "
                "list of hits"
            )
        return self.answers.read(map(as_pair, listed))

    def _try(self, queries: list[str]) -> None:
        try:
            self._search(queries, PROBE_HITS)
        except SearchError as error:
            raise CustomEngineError(
                f"{self.settings.path}, tried with {queries}: {error}"
            ) from error
        except Exception as error:
            raise CustomEngineError(
                f"{self.settings.path}.search({queries}, {PROBE_HITS}) raised {error!r}; it has to "
                "take a list of texts and a number, and return one list of hits a text"
            ) from error


def _listed(value: Any) -> list[Any] | None:
    try:
        return list(value)
    except TypeError:
        return None


def _engine(settings: CustomSettings, collection: Documents) -> Any:
    make = _imported(settings.path)
    arguments = dict(settings.arguments)
    try:
        if "collection" in signature(make).parameters:
            arguments.setdefault("collection", collection)
    except ValueError:
        pass  # classes written in C need not say what they take
    try:
        engine = make(**arguments)
    except Exception as error:
        given = ", ".join(arguments) or "no arguments"
        raise CustomEngineError(
            f"{settings.path}, called with {given}, raised {error!r}"
        ) from error
    return _checked(engine, settings.path)


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise CustomEngineError(
            f"path {path!r} cannot be imported ({error}); install its package, or start with "
            "PYTHONPATH set to the folder that holds it"
        ) from error
    if not callable(found):
        raise CustomEngineError(f"path {path!r} is {found!r:.80}, which cannot be called")
    return found


def _checked(engine: Any, path: str) -> Any:
    search = getattr(engine, "search", None)
    if not callable(search):
        raise CustomEngineError(
            f"{path} gives {type(engine).__name__}, which has no method `search(queries, k)`"
        )
    if iscoroutinefunction(search):
        raise CustomEngineError(f"{path}.search is asynchronous; give a plain `def`")
    return engine
