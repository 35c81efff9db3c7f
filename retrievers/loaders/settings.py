"""What the settings of all loaders share."""

from pydantic import BaseModel, ConfigDict


class LoaderSettings(BaseModel):
    """A loader's options: unknown ones are refused.

    Attributes:
        name: the collection's, for reports; None: the folder's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    name: str | None = None
