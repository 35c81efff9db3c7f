"""How results are reported: what the configuration says, else what the collection declares."""

from collections.abc import Sequence

from retrievers.collection import Collection
from retrievers.conventions import Conventions
from rewards.metrics import Measure, MetricError
from rewriter.config.sections import Config
from rewriter.yaml_source import ConfigError


def conventions(config: Config, collection: Collection) -> Conventions:
    """The conventions of a run.

    Raises:
        ConfigError: the collection declares a measure that there is not.
    """
    own, settings = collection.conventions, config.collection
    primary = own.primary if settings.primary is None else settings.primary
    drop = own.drop_query_id if settings.drop_query_id is None else settings.drop_query_id
    try:
        return Conventions(
            primary=None if primary is None else str(Measure.parse(primary)),
            subset=own.subset if settings.subset is None else settings.subset,
            drop_query_id=drop,
        )
    except MetricError as error:
        raise ConfigError(f"collection {collection.name!r} declares: {error}") from error


def with_primary(measures: Sequence[str], found: Conventions) -> tuple[str, ...]:
    """The measures, and the collection's own where it is not among them."""
    return tuple(dict.fromkeys((*measures, *([found.primary] if found.primary else []))))
