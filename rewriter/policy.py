"""The model that rewrites: the public `Rewriter` over a trained one.

from rewriter import Rewriter
Rewriter.from_pretrained("runs/demo/best").rewrite(["how do I …"])
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewriter.base_model import load_model, load_tokenizer, load_weights
from rewriter.checkpoint import (
    MANIFEST,
    CheckpointError,
    Manifest,
    attach,
    check_tokenizer,
    fingerprint,
    read_manifest,
)
from rewriter.generation import BLANK, Decoding, generate, rewrites
from rewriter.prompt import PromptSettings
from rewriter.records import Rewrite

__all__ = [
    "MANIFEST",
    "CheckpointError",
    "Manifest",
    "Rewriter",
    "attach",
    "fingerprint",
    "load_model",
    "load_tokenizer",
    "load_weights",
    "read_manifest",
]


class Rewriter:
    """Rewrites queries as the training that made it saw them: same prompt, same parser.

    Args:
        model: a causal language model, adapter included.
        tokenizer: its tokenizer.
        prompt: how a query is put to it.
        decoding: how it answers; greedy by default.
    """

    def __init__(
        self, model: Any, tokenizer: Any, prompt: PromptSettings, decoding: Decoding
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.prompt = prompt
        self.decoding = decoding

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, *, base: str | None = None, dtype: str | None = None, **init: Any
    ) -> "Rewriter":
        """Load a trained rewriter.

        Args:
            folder: a run's `best` folder.
            base: where the base model is, if it moved since; checked against the manifest.
            dtype: of the base model's weights; None takes that of the training.
            init: further arguments of the base model's `from_pretrained`, such as
                `trust_remote_code`, or the `quantization_config` of the training.

        Raises:
            CheckpointError: no rewriter there, a damaged file, another base model, or adapter keys
                missing.
            ModelError: the base model cannot be had.
        """
        folder = Path(folder)
        saved = read_manifest(folder)
        name = saved.base.name if base is None else base
        check_tokenizer(folder)
        model = load_weights(
            name, saved.base.revision if base is None else None, dtype or saved.base.dtype, **init
        )
        return cls.over(model, folder, name, trust=bool(init.get("trust_remote_code")))

    @classmethod
    def over(cls, model: Any, folder: Path, name: str, *, trust: bool = False) -> "Rewriter":
        """A trained rewriter over a base model that is loaded already.

        Args:
            model: the base model; gets the adapter.
            folder: a run's `best` folder.
            name: the base model's, for messages.
            trust: run code that comes with the tokenizer.

        Raises:
            CheckpointError: as `from_pretrained`.
        """
        saved = read_manifest(folder)
        check_tokenizer(folder)
        # The folder's own tokenizer: the base's chat template may have changed since.
        tokenizer = load_tokenizer(str(folder), trust=trust)
        found = fingerprint(model)
        if found != saved.base.fingerprint:
            raise CheckpointError(
                f"{folder}: trained on {saved.base.name} (fingerprint "
                f"{saved.base.fingerprint[:12]}), but {name} is another model ({found[:12]}) or is "
                "loaded with another quantisation; give the right one with base="
            )
        return cls(attach(model, folder), tokenizer, saved.prompt, saved.decoding)

    def rewrites(self, queries: Sequence[str], backend: str | None = None) -> list[Rewrite]:
        """(Q,) rewrites; where there is none, it says why: see `Rewrite.failure`.

        backend: what will read them; needed where the prompt names the backend (PromptError).

        Blank queries ("blank") and those longer than the model's context ("too_long") are not put
        to the model.
        """
        if isinstance(queries, str):
            raise TypeError("give a list of queries, not one string")
        asked = {str(place): query for place, query in enumerate(queries) if query.strip()}
        conversations = self.prompt.batch(list(asked.values()), backend)
        written = generate(self.model, self.tokenizer, conversations, self.decoding)
        made = rewrites(written, list(asked), self.prompt)
        return [made.get(str(place), Rewrite(None, BLANK)) for place in range(len(queries))]

    def rewrite(self, queries: Sequence[str], backend: str | None = None) -> list[str]:
        """(Q,) rewrites; the query itself where the model wrote nothing usable."""
        pairs = zip(queries, self.rewrites(queries, backend), strict=True)
        return [query if made.text is None else made.text for query, made in pairs]

    def search_texts(self, queries: Sequence[str], backend: str | None = None) -> list[str]:
        """(Q,) texts to send to the backend: the rewrite in the configured mode."""
        pairs = zip(queries, self.rewrites(queries, backend), strict=True)
        return [
            query if made.text is None else self.prompt.search_text(query, made.text)
            for query, made in pairs
        ]
