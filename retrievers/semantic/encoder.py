"""The model: texts → vectors, with its own prompts, dimension and normalisation.

Transformer weights are read from safetensors only, unless `model_kwargs` says otherwise.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from retrievers.chunks import readable
from retrievers.index import fingerprint
from retrievers.models import ModelError, resolve
from retrievers.semantic.scoring import Similarity
from retrievers.weights import adapters_text, config_text, tokenizer_state, weights_digest

PACKAGES = ("sentence-transformers", "transformers", "torch")
# sentence-transformers takes the first of these that the model names for a document.
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
UNLIMITED = 10**9  # tokenizers without a length say 10^30
# Where a text's tokens are counted, none may be cut off, added or warned about.
PLAIN = {"truncation": False, "padding": False, "verbose": False}


class EncoderSettings(Protocol):
    """What the encoder reads of the settings; see `SemanticSettings`."""

    model: str
    revision: str | None
    trust_remote_code: bool
    model_kwargs: dict[str, Any]
    device: str | None
    similarity_fn_name: Similarity | None
    truncate_dim: int | None
    query_prompt: str | None
    query_prompt_name: str | None
    document_prompt: str | None
    document_prompt_name: str | None
    batch_size: int


class Encoder:
    """A sentence-transformers model.

    Attributes:
        similarity: how its vectors are compared: the settings', else the model's own.
        query_prompt, document_prompt: what stands before every text; "" for nothing.
        dimension: of a vector.
        native_dimension: of a vector before `truncate_dim` shortens it.
        batch_size: texts encoded at once.
        limit: tokens it reads of a text, prompt and special tokens included; None: all.

    Raises:
        ModelError: it cannot be loaded, has no such prompt, or fewer dimensions than are asked for.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        self.batch_size = settings.batch_size
        self._model = _load(settings)
        self.similarity = cast(Similarity, self._model.similarity_fn_name)
        self.query_prompt = self._prompt(
            settings.query_prompt, settings.query_prompt_name, ("query",)
        )
        self.document_prompt = self._prompt(
            settings.document_prompt, settings.document_prompt_name, DOCUMENT_PROMPTS
        )
        self.limit = _limit(self._model)
        self._content = _content(self._model)
        self.native_dimension = self.queries(["native"]).shape[1]
        if settings.truncate_dim is not None:
            self._cut(settings.truncate_dim)
        self.dimension = settings.truncate_dim or self.native_dimension

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(Q, D) vectors of queries."""
        readable_texts = [readable(text) for text in texts]
        return self._encoded(self._model.encode_query, readable_texts, self.query_prompt)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, D) vectors of documents or pieces of them."""
        return self._encoded(self._model.encode_document, texts, self.document_prompt)

    def too_long(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """(n,) whether the model reads only the beginning of a document's text."""
        if self.limit is None:
            return np.zeros(len(texts), dtype=bool)
        return np.array([count > self.limit for count in self._lengths(texts)], dtype=bool)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """(start, end) in characters of each of a text's tokens."""
        found = self._model.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, **PLAIN
        )
        return [(start, end) for start, end in found["offset_mapping"] if end > start]

    def room(self) -> int | None:
        """Tokens of a document's text that the model reads; None: all."""
        return None if self.limit is None else self.limit - self._lengths([""])[0]

    def check_chunks(self, tokens: int) -> None:
        """Refuse pieces that the model would cut.

        Raises:
            ModelError: they are longer than it reads, or its tokenizer cannot say where tokens are.
        """
        if not getattr(self._model.tokenizer, "is_fast", False):
            raise ModelError(
                "chunk_tokens needs a model with a fast tokenizer of transformers; leave it out"
            )
        room = self.room()
        if room is not None and tokens > room:
            raise ModelError(
                f"chunk_tokens is {tokens}, but the model reads {room} tokens of a document beside "
                "its prompt and special tokens; give at most that many"
            )

    def identity(self) -> dict[str, Any]:
        """JSON values that the vectors of documents depend on, for an index's manifest."""
        return {
            "content": self._content,
            "document_prompt": self.document_prompt,
            "normalised": self.similarity == "cosine",
            "dimension": self.dimension,
            "limit": self.limit,
            # 2.13.0+cpu and 2.13.0+cu130 are one version on two devices.
            "versions": {name: version(name).partition("+")[0] for name in PACKAGES},
        }

    def _encoded(self, encode: Any, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        vectors = encode(
            list(texts),
            prompt=prompt,  # always said, so that no default of the model comes on top
            batch_size=self.batch_size,
            normalize_embeddings=self.similarity == "cosine",
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        prompted = [self.document_prompt + text for text in texts]
        return [len(ids) for ids in self._model.tokenizer(prompted, **PLAIN)["input_ids"]]

    def _prompt(self, given: str | None, name: str | None, own: Sequence[str]) -> str:
        prompts: Mapping[str, str] = self._model.prompts
        if given is not None:
            return given
        if name is None:
            return next((prompts[key] for key in own if key in prompts), "")
        if name not in prompts:
            known = ", ".join(sorted(prompts)) or "none"
            raise ModelError(f"the model has no prompt named {name!r}; there are: {known}")
        return prompts[name]

    def _cut(self, dimension: int) -> None:
        if dimension > self.native_dimension:
            raise ModelError(
                f"truncate_dim is {dimension}, but the model's vectors have "
                f"{self.native_dimension} dimensions"
            )
        self._model.truncate_dim = dimension


def _load(settings: EncoderSettings) -> Any:
    import torch
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    place = resolve(settings.model)
    try:
        # Weights that a checkpoint lacks and nobody uses, often BERT's pooler, are drawn at random:
        # the same ones each time, or the model would seem to be another one. And the random
        # numbers of a training around this are left alone.
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = SentenceTransformer(
                place,
                revision=settings.revision,
                device=settings.device,
                trust_remote_code=settings.trust_remote_code,
                model_kwargs={"use_safetensors": True} | settings.model_kwargs,
                similarity_fn_name=settings.similarity_fn_name,
            )
    except (OSError, ValueError, SafetensorError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"model {settings.model!r} cannot be loaded: {first}") from error
    model.truncate_dim = None  # a shortened vector is for the configuration to ask for
    return model.eval()


def _limit(model: Any) -> int | None:
    limit = model.max_seq_length
    return int(limit) if limit is not None and limit < UNLIMITED else None


def _content(model: Any) -> str:
    """Hash of the weights, the modules around them and the tokenizer, wherever they came from."""
    inner = model.transformers_model
    return fingerprint(
        {
            "weights": weights_digest(model.state_dict()),
            "modules": str(model),
            "config": config_text(inner.config) if inner is not None else "{}",
            "adapters": adapters_text(inner),
            "tokenizer": tokenizer_state(getattr(model[0], "tokenizer", None)),
        }
    )
