"""How commands speak: log lines for people, one line for a mistake of the user's."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _AboveBars(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes without tearing a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        bars = sys.modules.get("tqdm")
        if bars is None:
            super().emit(record)
        else:
            bars.tqdm.write(self.format(record), file=self.stream)


def configure_logging() -> None:
    """Messages of rlqr to stderr, plain; of other packages, from warnings on.

    On several ranks only the first speaks, warnings excepted.
    """
    import os

    handler = _AboveBars(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = logging.INFO if os.environ.get("RANK", "0") == "0" else logging.WARNING
    for name in ("retrievers", "rewards", "rewriter"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


@contextmanager
def fail_in_one_line() -> Iterator[None]:
    """End with exit code 2 and the message alone for a mistake in input or configuration."""
    try:
        yield
    except Exception as error:
        if not _ours(error):
            raise
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None


def _ours(error: BaseException) -> bool:
    """Whether the error is one of this project's classes: those messages say what to do."""
    return type(error).__module__.partition(".")[0] in {"retrievers", "rewards", "rewriter"}
