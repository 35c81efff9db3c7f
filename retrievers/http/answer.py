"""An engine's answer in JSON → ids and scores, by JMESPath."""

from collections.abc import Callable
from typing import Any, TypeAlias

from retrievers.base import PermanentSearchError, SearchError, import_extra
from retrievers.http.settings import HttpSettings

Pairs: TypeAlias = list[tuple[Any, Any]]  # (id, score), best first; a score may be None


class AnswerReader:
    """Callable: (an answer, number of queries) → (id, score) pairs of each query.

    Args:
        settings: with the expressions.
        show: any value → a short text for messages.

    Raises:
        MissingExtra: jmespath is not installed.
    """

    def __init__(self, settings: HttpSettings, show: Callable[[Any], str]) -> None:
        compiled = import_extra("jmespath", "http").compile
        self._settings = settings
        self._show = show
        names = ["hits", "id", "score", *(["answers"] if settings.batch else [])]
        names += ["failed"] if settings.failed else []
        self._paths = {name: compiled(getattr(settings, name)) for name in names}

    def __call__(self, answer: Any, count: int) -> list[Pairs]:
        """Pairs of each query.

        Raises:
            SearchError: the engine says that an answer is not complete.
            PermanentSearchError: an expression does not find what it should.
        """
        answers = self._list("answers", answer) if self._settings.batch else [answer]
        if len(answers) != count:
            raise PermanentSearchError(
                f"http: `answers: {self._settings.answers}` found {len(answers)} answers to "
                f"{count} queries in {self._show(answer)}; it has to find one each"
            )
        return [self._pairs(one) for one in answers]

    def _pairs(self, answer: Any) -> Pairs:
        if "failed" in self._paths and (said := self._find("failed", answer)):
            raise SearchError(
                f"http: the answer is not complete, `failed: {self._settings.failed}` is "
                f"{self._show(said)} in {self._show(answer)}"
            )
        return [self._pair(hit) for hit in self._list("hits", answer)]

    def _pair(self, hit: Any) -> tuple[Any, Any]:
        identity = self._find("id", hit)
        if identity is None:
            raise PermanentSearchError(
                f"http: `id: {self._settings.id}` finds nothing in the hit {self._show(hit)}; give "
                "the JMESPath of the id within a hit"
            )
        return identity, self._find("score", hit)

    def _list(self, name: str, value: Any) -> list[Any]:
        found = self._find(name, value)
        if isinstance(found, list):
            return found
        form = "nothing" if found is None else type(found).__name__
        raise PermanentSearchError(
            f"http: `{name}: {getattr(self._settings, name)}` found {form}, not a list, in "
            f"{self._show(value)}; an engine that leaves the list out where there is nothing in it "
            "needs `… || `[]``"
        )

    def _find(self, name: str, value: Any) -> Any:
        try:
            return self._paths[name].search(value)
        except ValueError as error:  # JMESPath's functions refuse values of other types
            raise PermanentSearchError(
                f"http: `{name}: {getattr(self._settings, name)}` cannot be used on "
                f"{self._show(value)}: {error}"
            ) from error
