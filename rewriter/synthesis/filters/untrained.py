"""Samples of the untrained rewriter, kept on disk so that a run that goes on repeats none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from retrievers.index import fingerprint

if TYPE_CHECKING:
    from rewriter.generation import Completion
    from rewriter.synthesis.filters.base import Context
    from rewriter.synthesis.filters.learnable import LearnableSettings

CHUNK = 8  # batches that are generated before they are put on disk


class Untrained:
    """The configuration's base model, loaded when it is first needed.

    Args:
        context: its configuration and cache.
        settings: how it is sampled.
    """

    def __init__(self, context: "Context", settings: "LearnableSettings") -> None:
        from rewriter.generation import Decoding
        from rewriter.trainer_values import completion_tokens, template_kwargs

        self._config = context.config
        self._folder = context.cache
        self._decoding = Decoding(
            max_new_tokens=settings.max_new_tokens or completion_tokens(self._config),
            batch_size=settings.batch_size,
            temperature=settings.temperature,
            chat_template_kwargs=template_kwargs(self._config),
        )
        self._loaded: tuple[Any, Any] | None = None

    def complete(self, queries: Sequence[str], number: int) -> "list[Completion]":
        """(Q,) one completion of each query. number: of the sample; another one is another draw.

        Raises:
            ModelError: the model cannot be had.
        """
        from rewriter.evaluation.completion_cache import CompletionCache

        made_by = self._made_by(number)
        cache = CompletionCache(self._folder, made_by)
        todo = sorted({text for text in queries if cache.get(text) is None})
        size = CHUNK * self._decoding.batch_size
        for start in range(0, len(todo), size):
            texts = todo[start : start + size]
            cache.add(dict(zip(texts, self._generate(texts, made_by), strict=True)))
        found = (cache.get(text) for text in queries)
        return [one for one in found if one is not None]

    def _made_by(self, number: int) -> dict[str, Any]:
        model, decoding = self._config.model, self._decoding
        return {
            "model": model.model_dump(mode="json"),
            "prompt": self._config.prompt.model_dump(mode="json"),
            "tokens": decoding.max_new_tokens,
            "temperature": decoding.temperature,
            "template": dict(decoding.chat_template_kwargs or {}),
            "sample": number,
        }

    def _generate(self, texts: Sequence[str], made_by: dict[str, Any]) -> "list[Completion]":
        import torch

        from rewriter.generation import generate
        from rewriter.policy import load_model
        from rewriter.trainer_values import model_init

        if self._loaded is None:
            settings = self._config.model
            init = {**model_init(self._config), "trust_remote_code": settings.trust_remote_code}
            self._loaded = load_model(settings.name, settings.revision, settings.dtype, **init)
        conversations = self._config.prompt.batch(texts)
        with torch.random.fork_rng():
            torch.manual_seed(int(fingerprint({**made_by, "texts": list(texts)})[:8], 16))
            return generate(*self._loaded, conversations, self._decoding)
