"""Which loader opens a collection, and with what arguments."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from retrievers.loaders import LOADERS, options_class


class SourceSettings(BaseModel):
    """Where documents come from.

    Attributes:
        loader: a key of `retrievers.loaders.LOADERS`.
        options: the loader's own arguments, for example `folder`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    loader: str = "stdlib"
    options: dict[str, Any] = Field(default={}, validate_default=True)

    @field_validator("loader")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in LOADERS:
            raise ValueError(f"no loader {name!r}; there are: {', '.join(sorted(LOADERS))}")
        return name

    @field_validator("options")
    @classmethod
    def _taken(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """What the loader takes; whether a file is there is asked when it is opened."""
        if "loader" in info.data:
            options_class(info.data["loader"]).model_validate(options)
        return options
