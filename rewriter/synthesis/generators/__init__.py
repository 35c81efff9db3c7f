"""Generators by name. A new one is one module and one line in `GENERATORS`."""

from importlib import import_module
from typing import Any

from rewriter.synthesis.generators.base import GenerationError, Generator, Reply, Request

__all__ = ["GENERATORS", "GenerationError", "Generator", "Reply", "Request", "build_generator"]

# Name → (module, generator class, settings class).
GENERATORS: dict[str, tuple[str, str, str]] = {
    "headings": (
        "rewriter.synthesis.generators.headings",
        "HeadingsGenerator",
        "HeadingsSettings",
    ),
    "transformers": (
        "rewriter.synthesis.generators.transformers",
        "TransformersGenerator",
        "TransformersSettings",
    ),
    "vision": ("rewriter.synthesis.generators.vision", "VisionGenerator", "VisionSettings"),
    "vllm": ("rewriter.synthesis.generators.vllm", "VllmGenerator", "VllmSettings"),
    "openai": ("rewriter.synthesis.generators.openai", "OpenAIGenerator", "OpenAISettings"),
}


def build_generator(kind: str, settings: Any) -> Generator:
    """A generator; a local model is loaded here.

    Args:
        kind: a key of `GENERATORS`.
        settings: an instance of its settings class.
    """
    module, generator, _ = GENERATORS[kind]
    built: Generator = getattr(import_module(module), generator)(settings)
    return built
