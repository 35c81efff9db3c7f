"""Two documents exchange their texts: every backend is another one, and finds the other."""

import pytest

from retrievers import build_retrievers
from retrievers.base import Retriever
from retrievers.collection import Collection, Document
from retrievers.hybrid import HybridSettings
from retrievers.lexical import LexicalSettings
from retrievers.multimodal import MultimodalSettings
from retrievers.semantic import SemanticSettings
from rewards.metrics import ndcg
from tests.tiny_encoder import save_encoder

# The encoder knows the numbered words, the page reader reads the others.
TEXTS = ["w1 w2 budget paper", "w7 w8 weather harbour", "w20 w21 kitchen engine"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_encoder(tmp_path_factory.mktemp("encoder") / "model"))


def backends(texts: list[str], encoder: str) -> dict[str, Retriever]:
    named = {
        "lexical": LexicalSettings(),
        "semantic": SemanticSettings(model=encoder),
        "multimodal": MultimodalSettings(),
        "hybrid": HybridSettings(),
    }
    documents = [Document(f"d{place}", "", text) for place, text in enumerate(texts)]
    collection = Collection.from_documents("t", documents)
    return build_retrievers(named, named.__getitem__, collection)


def test_the_metrics_change(encoder: str) -> None:
    before, after = (backends(texts, encoder) for texts in (TEXTS, [TEXTS[1], TEXTS[0], TEXTS[2]]))
    for name, retriever in before.items():
        values = []
        for one in (retriever, after[name]):
            (hits,) = one.search([TEXTS[0]], 3)
            values.append(ndcg([hit.id for hit in hits], {"d0": 1.0}, 1))
        assert values == [1.0, 0.0], name
        assert retriever.fingerprint != after[name].fingerprint, name
