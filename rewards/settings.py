"""What a rewrite is rewarded for: the `reward` section of the config."""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import iscoroutinefunction
from re import fullmatch
from typing import Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_serializer,
    field_validator,
    model_validator,
)

Kind: TypeAlias = Literal["hit", "ndcg", "mrr", "recall", "rank"]
RewardFunction: TypeAlias = Callable[..., list[float | None]]

DEFAULTS = ("kind", "k", "gain")  # said once at the top for all backends that do not say otherwise


class RewardFunctionError(ValueError):
    """The reward function that the config names cannot be used."""


class BackendReward(BaseModel):
    """How one backend's search is rewarded; named apart from the metric that is reported.

    Attributes:
        kind: "hit" (1 if a relevant document is within the first k, else 0), "ndcg", "mrr",
            "recall", or "rank": 1 / log2(rank + 1) of the best-ranked relevant document, looked
            for down to `RewardSettings.depth_rank`, for backends that seldom hit.
        k: ranks looked at; "rank" does not use it.
        gain: subtract what the raw query earns on the same backend.
        weight: factor of this reward in the sum.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind = "ndcg"
    k: int = Field(default=3, ge=1)
    gain: bool = False
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)

    @field_validator("weight", mode="before")
    @classmethod
    def _number(cls, weight: Any) -> Any:
        # `lexical: true` is meant as "on"; read as 1, `lexical: false` would be weight 0.
        if isinstance(weight, bool):
            raise ValueError("a boolean is no weight; give a number such as 1.0")
        return weight


class RewardSettings(BaseModel):
    """The reward as a whole: weighted searches, format terms and a function of one's own.

    Attributes:
        backends: by name. "lexical", ["lexical", "semantic"], {"lexical": 0.7, "semantic": 0.3}
            (weights) and {"lexical": {"k": 10}} are all read; the default is "lexical".
        kind, k, gain: for backends that do not say otherwise.
        failure_penalty: subtracted from a completion that cannot be parsed.
        length_weight: factor of the penalty for text outside the rewrite (lambda 2 in arXiv
            2507.23242), in groups whose searches differ.
        function: "package.module:function", a TRL reward function to add, with weight 1. Besides
            TRL's arguments it gets `rewrites`, the parsed rewrites (None where parsing failed).
        retries: further tries of a failing search.
        backoff_s: seconds before the first of them, doubled each time.
        max_failures: completions in a row, a backend, whose search may fail before the run stops.
        depth_rank: ranks that kind "rank" looks at.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backends: dict[str, BackendReward] = Field(default_factory=dict)  # filled by `_spread`
    kind: Kind = "ndcg"
    k: int = Field(default=3, ge=1)
    gain: bool = False
    failure_penalty: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    length_weight: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    function: str | None = None
    retries: int = Field(default=3, ge=0)
    backoff_s: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    max_failures: int = Field(default=20, ge=1)
    depth_rank: int = Field(default=100, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _spread(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        backends = given.get("backends", "lexical")
        defaults = {name: given[name] for name in DEFAULTS if name in given}
        return {**given, "backends": _mapping(backends, defaults)}

    @field_validator("backends")
    @classmethod
    def _named(cls, backends: dict[str, BackendReward]) -> dict[str, BackendReward]:
        if not backends:
            raise ValueError('no backend is named; give one or more, such as "lexical"')
        for name in backends:
            if not fullmatch(r"[A-Za-z0-9_-]+", name):
                raise ValueError(f"backend {name!r}: use letters, digits, _ and - only")
        return backends

    @field_validator("function")
    @classmethod
    def _path(cls, function: str | None) -> str | None:
        if function is not None and not fullmatch(r"[\w.]+:\w+", function):
            raise ValueError(f'function is {function!r}; give it as "package.module:function"')
        return function

    @model_validator(mode="after")
    def _can_teach(self) -> "RewardSettings":
        if self.function is None and not any(one.weight for one in self.backends.values()):
            raise ValueError(
                "every backend has weight 0, so that nothing can be learned; raise one"
            )
        return self

    @field_serializer("backends")
    def _apart(self, backends: dict[str, BackendReward]) -> dict[str, dict[str, Any]]:
        """What a backend has from `kind`, `k` and `gain` stays theirs.

        Written out for each backend, a saved configuration would no longer heed `--reward.kind`.
        """
        common = {name: getattr(self, name) for name in DEFAULTS}
        own = {name: one.model_dump().items() for name, one in backends.items()}
        return {
            name: {key: value for key, value in said if (key, value) not in common.items()}
            for name, said in own.items()
        }

    def depth(self, backend: str) -> int:
        """Number of hits to ask of a backend."""
        chosen = self.backends[backend]
        return self.depth_rank if chosen.kind == "rank" else chosen.k

    def label(self, backend: str) -> str:
        """Name a backend's reward is logged under: "lexical_ndcg@3", "lexical_gain_ndcg@3"."""
        chosen = self.backends[backend]
        gain = "gain_" if chosen.gain else ""
        return f"{backend}_{gain}{chosen.kind}@{self.depth(backend)}"

    def load_function(self) -> RewardFunction | None:
        """Import `function`; call it before a model is loaded, so that a slip costs nothing.

        Returns:
            The function, or None where none is named.

        Raises:
            RewardFunctionError: it cannot be imported, is no function, or is asynchronous.
        """
        if self.function is None:
            return None
        module, _, name = self.function.partition(":")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise RewardFunctionError(
                f"reward function {self.function!r} cannot be imported ({error}); install its "
                "package, or start with PYTHONPATH set to the folder that holds it"
            ) from error
        return _checked(function, self.function)


def _checked(function: Any, path: str) -> RewardFunction:
    if not callable(function):
        raise RewardFunctionError(
            f"reward function {path!r} is {type(function).__name__}, which cannot be called"
        )
    if iscoroutinefunction(function) or iscoroutinefunction(function.__call__):
        raise RewardFunctionError(f"reward function {path!r} is asynchronous; give a plain `def`")
    return function  # type: ignore[no-any-return]


def _mapping(given: Any, defaults: Mapping[str, Any]) -> Any:
    names = [given] if isinstance(given, str) else given
    if isinstance(names, list | tuple):
        if len(set(map(str, names))) < len(names):
            raise ValueError(f"backends {list(names)} names one twice; name each once")
        names = dict.fromkeys(names)
    if not isinstance(names, Mapping):
        return given  # pydantic says what is wrong with it
    return {name: _backend(one, defaults) for name, one in names.items()}


def _backend(given: Any, defaults: Mapping[str, Any]) -> Any:
    if isinstance(given, BackendReward):  # already complete: only what was said outweighs defaults
        given = given.model_dump(include=given.model_fields_set)
    if given is None:
        return dict(defaults)
    if isinstance(given, int | float):
        return {**defaults, "weight": given}
    return {**defaults, **given} if isinstance(given, Mapping) else given
