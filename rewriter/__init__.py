"""Writing: the model that rewrites queries, its training and its evaluation."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewriter.policy import Rewriter

__all__ = ["Rewriter"]


def __getattr__(name: str) -> Any:
    """`Rewriter` is imported when asked for: reading a configuration needs no model package."""
    if name == "Rewriter":
        from rewriter.policy import Rewriter

        return Rewriter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
