"""The section `synthesis`: how queries are written from documents."""

from importlib import import_module
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from retrievers.identity import check_safe
from retrievers.pages.page import PageSettings
from retrievers.source import SourceSettings
from rewriter.synthesis.filters import FILTERS
from rewriter.synthesis.generators import GENERATORS
from rewriter.synthesis.prompts import PROMPTS, SynthesisPrompt, prompt_of

DEFAULT_FILTERS = ("length", "script", "names", "near_duplicates")


class GeneratorSettings(BaseModel):
    """Who writes.

    Attributes:
        kind: a key of `rewriter.synthesis.generators.GENERATORS`.
        options: the settings at the top of that generator's module.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str = "headings"
    options: Any = Field(default={}, validate_default=True)

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in GENERATORS:
            raise ValueError(f"no generator {kind!r}; there are: {', '.join(GENERATORS)}")
        return kind

    @field_validator("options")
    @classmethod
    def _checked(cls, options: Any, info: ValidationInfo) -> Any:
        if "kind" not in info.data:
            return options
        module, _, settings = GENERATORS[info.data["kind"]]
        return getattr(import_module(module), settings).model_validate(options)


class SynthesisSettings(BaseModel):
    """From which documents, by whom, and which of the queries are kept.

    Attributes:
        output: the folder that is written: a collection in the layout of BEIR, its data card, and
            the journal of all answers.
        source: where the documents come from; None: the configuration's `collection`.
        reads: "text", or "pages": the image of one page of each document.
        pages: where page images come from, and their size.
        documents: so many are drawn at random; None: all.
        per_document: queries asked of each.
        min_chars: documents with shorter texts are not read (only where "text" is).
        document_chars: of a longer text the generator gets the first so many characters; one that
            runs here shortens further, by its tokenizer, to what its context holds.
        seed: of the draw, of the generator, of the splits.
        generator: who writes.
        prompt: the name of a built-in one, or its keys over the one that `base` names.
        filters: name → settings, see `rewriter.synthesis.filters.FILTERS`, applied in its order.
        splits: split → share of the queries; all queries of a document are in one split.
        near_duplicates: similarity from which documents are kept in one split.
        keep: splits of the source that are kept as they are, such as people's questions to test
            on. Documents judged relevant there are not drawn.
        max_failures: calls in a row that may fail before the run stops.
        samples: queries shown in the data card, kept and dropped.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    output: str = "data/synthetic"
    source: SourceSettings | None = None
    reads: Literal["text", "pages"] = "text"
    pages: PageSettings = PageSettings()
    documents: int | None = Field(default=1000, ge=1)
    per_document: int = Field(default=1, ge=1)
    min_chars: int = Field(default=1, ge=1)
    document_chars: int = Field(default=12_000, ge=100)
    seed: int = Field(default=0, ge=0, lt=2**31)
    generator: GeneratorSettings = GeneratorSettings()
    prompt: SynthesisPrompt = PROMPTS["english"]
    filters: dict[str, Any] = Field(
        default={name: {} for name in DEFAULT_FILTERS}, validate_default=True
    )
    splits: dict[str, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
    near_duplicates: float = Field(default=0.8, gt=0, le=1)
    keep: tuple[str, ...] = ()
    max_failures: int = Field(default=5, ge=1)
    samples: int = Field(default=10, ge=0)

    @field_validator("prompt", mode="before")
    @classmethod
    def _over_built_in(cls, given: Any) -> Any:
        return prompt_of(given)

    @field_validator("output")
    @classmethod
    def _named(cls, output: str) -> str:
        if not output.strip() or "\0" in output:
            raise ValueError("is no path; give a folder, such as data/synthetic")
        return output

    @field_validator("filters")
    @classmethod
    def _filters(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {name: _filter(name, given[name]) for name in sorted(given, key=_order)}

    @field_validator("splits")
    @classmethod
    def _shares(cls, splits: dict[str, float]) -> dict[str, float]:
        if not all(share > 0 for share in splits.values()) or abs(sum(splits.values()) - 1) > 1e-6:
            raise ValueError("wanted shares above 0 that add up to 1")
        for split in splits:
            check_safe(split, "split")
        return splits

    @model_validator(mode="after")
    def _possible(self) -> "SynthesisSettings":
        module, generator, _ = GENERATORS[self.generator.kind]
        if self.reads == "pages" and not getattr(import_module(module), generator).reads_pages:
            raise ValueError(
                f"generator {self.generator.kind} reads no page images; take vision, or "
                "openai or vllm with a vision model, or reads: text"
            )
        if both := sorted(set(self.keep) & set(self.splits)):
            raise ValueError(f"keep and splits both have {', '.join(both)}; rename one of them")
        return self


def _order(name: Any) -> int:
    return list(FILTERS).index(name) if name in FILTERS else len(FILTERS)


def _filter(name: str, given: Any) -> Any:
    if name not in FILTERS:
        raise ValueError(f"no filter {name!r}; there are: {', '.join(FILTERS)}")
    module, _, settings = FILTERS[name]
    try:
        return getattr(import_module(module), settings).model_validate(
            {} if given is None else given
        )
    except ValidationError as error:
        raise _below(name, error) from error


def _below(name: str, error: ValidationError) -> ValidationError:
    """The same faults with the filter's name before them."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError(fault["type"], "{reason}", {"reason": fault["msg"]}),
            loc=(name, *fault["loc"]),
            input=fault["input"],
        )
        for fault in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data("filters", details)
