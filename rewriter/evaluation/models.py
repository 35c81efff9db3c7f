"""The models behind the systems: each base model is loaded once, its adapters come and go."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rewriter.checkpoint import read_manifest
from rewriter.config import Config
from rewriter.evaluation.plan import Entry
from rewriter.generation import Decoding
from rewriter.prompt_systems import PromptSystem
from rewriter.trainer_values import completion_tokens, model_init, template_kwargs

_ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")


class _Base(NamedTuple):
    key: tuple[str, str | None, str]
    model: Any
    digest: str


class Models:
    """Makes the `Rewriter` of a system.

    Args:
        config: its model, prompt and decoding.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._loaded: _Base | None = None

    @contextmanager
    def rewriter(self, entry: Entry) -> Iterator[tuple[Any, str]]:
        """The `Rewriter` of a system that asks a model, and the hash of its weights.

        Raises:
            CheckpointError, ModelError: it cannot be loaded.
        """
        if entry.kind == "checkpoint" and entry.place is not None:
            with self._trained(entry.place) as found:
                yield found
            return
        from rewriter.policy import Rewriter, load_tokenizer

        settings = self._config.model
        prompt: Any = self._config.evaluation.prompts.get(entry.name, self._config.prompt)
        decoding = decoding_of(self._config)
        if isinstance(prompt, PromptSystem):
            decoding = replace(decoding, max_new_tokens=prompt.max_new_tokens)
        base = self._base(settings.name, settings.revision, settings.dtype)
        tokenizer = load_tokenizer(
            settings.name, settings.revision, trust=settings.trust_remote_code
        )
        yield Rewriter(base.model, tokenizer, prompt, decoding), base.digest

    @contextmanager
    def _trained(self, folder: Path) -> Iterator[tuple[Any, str]]:
        from rewriter.policy import Rewriter

        saved = read_manifest(folder).base
        base = self._base(saved.name, saved.revision, saved.dtype)
        trust = self._config.model.trust_remote_code
        rewriter = Rewriter.over(base.model, folder, saved.name, trust=trust)
        batch = self._config.evaluation.batch_size
        rewriter.decoding = replace(rewriter.decoding, batch_size=batch)
        try:
            yield rewriter, f"{base.digest}+{_files_digest(folder)}"
        finally:
            rewriter.model.unload()  # the base model as it was, for the next one
            rewriter.model = None

    def _base(self, name: str, revision: str | None, dtype: str) -> _Base:
        from rewriter.policy import load_model

        key = (name, revision, dtype)
        if self._loaded is None or self._loaded.key != key:
            self._loaded = None  # before the next one is loaded: two may not fit
            settings = self._config.model
            init: dict[str, Any] = {"trust_remote_code": settings.trust_remote_code}
            if name == settings.name:
                init |= model_init(self._config)
            model, _ = load_model(name, revision, dtype, **init)
            self._loaded = _Base(key, model, weights_digest(model))
        return self._loaded


def decoding_of(config: Config) -> Decoding:
    """How the base model and the trained one answer: greedy, within the run's token limit.

    Raises:
        ConfigError: the `trainer` section gives that limit, or the template's arguments, wrongly.
    """
    evaluation = config.evaluation
    return Decoding(
        max_new_tokens=evaluation.max_new_tokens or completion_tokens(config),
        batch_size=evaluation.batch_size,
        chat_template_kwargs=template_kwargs(config),
    )


def weights_digest(model: Any) -> str:
    """SHA-256 of every weight and buffer, bit by bit, so of their number format too."""
    import torch

    digest = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        plain = weight.detach().cpu().contiguous().flatten()
        if plain.numel():
            digest.update(memoryview(plain.view(torch.uint8).numpy()))
    return digest.hexdigest()


def _files_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in _ADAPTER_FILES:
        with (folder / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
