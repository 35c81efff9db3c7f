"""Search by meaning with tiny models, over texts of random words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Hit
from retrievers.index import fingerprint
from retrievers.semantic import SemanticRetriever, SemanticSettings
from tests.tiny_encoder import save_encoder

PROMPTS = {"query": "query: ", "document": "passage: ", "other": "title: "}


@dataclass
class Corpus:
    """Documents d0, d1, ... with these texts."""

    all_texts: Sequence[str]
    title: str = ""

    @property
    def ids(self) -> list[str]:
        return [f"d{n}" for n in range(len(self.all_texts))]

    @property
    def fingerprint(self) -> str:
        return fingerprint({"texts": list(self.all_texts), "title": self.title})

    def texts(self) -> Iterator[tuple[str, str]]:
        for text in self.all_texts:
            yield self.title, text


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of tiny models."""
    folder = tmp_path_factory.mktemp("models")
    save_encoder(folder / "plain")
    save_encoder(folder / "twin")
    save_encoder(folder / "other", seed=1)
    save_encoder(folder / "prompted", prompts=PROMPTS)
    save_encoder(folder / "dot", similarity="dot", size=3.0)
    save_encoder(folder / "poisoned", poison="w13")
    save_encoder(folder / "huge", similarity="dot", size=1e6)
    return folder


@pytest.fixture
def model(models: Path) -> str:
    return str(models / "plain")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text as the model reads it, without special tokens."""
    from sentence_transformers import SentenceTransformer

    seen: list[str] = []
    forward = SentenceTransformer.forward

    def record(self: Any, features: dict[str, Any], **given: Any) -> Any:
        seen.extend(self.tokenizer.batch_decode(features["input_ids"], skip_special_tokens=True))
        return forward(self, features, **given)

    monkeypatch.setattr(SentenceTransformer, "forward", record)
    return seen


def texts_read(read: list[str]) -> list[str]:
    seen = [text for text in read if "w" in text]
    read.clear()
    return seen


def build(
    texts: Sequence[str], model: str | Path, index_dir: Path | None = None, **chosen: Any
) -> SemanticRetriever:
    settings = SemanticSettings.model_validate({"model": str(model), "device": "cpu", **chosen})
    return SemanticRetriever(Corpus(texts), settings, index_dir, cache_size=0)


def words(count: int, length: int = 4, seed: int = 0) -> list[str]:
    """Texts of random words."""
    numbers = np.random.default_rng(seed).integers(200, size=(count, length))
    return [" ".join(f"w{number}" for number in row) for row in numbers]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]
