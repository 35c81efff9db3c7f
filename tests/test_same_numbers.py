"""Other tools give our numbers: ir_measures, pytrec_eval and ranx on the files, mteb itself."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import nDCG

from retrievers.as_mteb import MtebSearch
from retrievers.base import Hit, Retriever
from retrievers.identity import CollectionError
from retrievers.queries import Query
from rewriter.evaluation import evaluate, summarise
from rewriter.evaluation.mteb_form import write_mteb
from rewriter.records import Record, Rewrite
from rewriter.trec import write_trec

close = pytest.approx

DOCUMENTS = [f"d{number}" for number in range(40)]
MEASURES = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "recall@5", "mrr@10")


class Shuffled(Retriever):
    """Finds random documents, with many equal scores; nothing for a few queries."""

    backend = "lexical"
    fingerprint = "shuffled"

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [self._one(random.Random(query), k) for query in queries]

    def _one(self, draw: random.Random, k: int) -> list[Hit]:
        found = draw.sample(DOCUMENTS, draw.choice([0, 5, 20, 40]))[:k]
        scores = sorted((float(draw.randint(0, 3)) for _ in found), reverse=True)
        return [Hit(document, score) for document, score in zip(found, scores, strict=True)]


QUERIES = [Query(f"q{number}", f"text {number}") for number in range(50)]
QRELS = {
    query.id: {
        document: float(draw.randint(0, 3))
        for draw in [random.Random(query.id)]
        for document in draw.sample(DOCUMENTS, 8)
    }
    for query in QUERIES
}


def judged() -> list[Record]:
    made = {query.id: Rewrite(None) for query in QUERIES}
    backends = {"lexical": Shuffled()}
    return evaluate("raw", made, QUERIES, QRELS, backends, measures=MEASURES, depth=40)


@pytest.fixture(scope="module")
def means() -> dict[str, float]:
    summary = summarise(judged(), samples=10)["lexical"]["raw"]
    assert any(not record.hits for record in judged())
    return {key: summary[key]["mean"] for key in MEASURES}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_trec(judged(), QRELS, folder)
    return folder


def trec(folder: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgements and run, as a tool reads them from the files."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels.trec").read_text().splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(grade)
    for line in (folder / "runs" / "lexical.raw.trec").read_text().splitlines():
        query, _, document, _, score, _ = line.split()
        run.setdefault(query, {})[document] = float(score)
    return qrels, run


def test_ir_measures(means: dict[str, float], files: Path) -> None:
    tool: Any = ir_measures
    qrels = list(tool.read_trec_qrels(str(files / "qrels.trec")))
    run = list(tool.read_trec_run(str(files / "runs" / "lexical.raw.trec")))
    for k in (1, 3, 5, 10):
        assert tool.calc_aggregate([nDCG @ k], qrels, run)[nDCG @ k] == close(means[f"ndcg@{k}"])


def test_pytrec_eval(means: dict[str, float], files: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = trec(files)
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.3,10", "recall.5"}).evaluate(run)
    for key, theirs in (
        ("ndcg@3", "ndcg_cut_3"),
        ("ndcg@10", "ndcg_cut_10"),
        ("recall@5", "recall_5"),
    ):
        # It has no line for a query without hits, which counts 0.
        assert sum(row[theirs] for row in found.values()) / len(qrels) == close(means[key])


@pytest.mark.slow
def test_ranx(means: dict[str, float], files: Path) -> None:
    ranx = pytest.importorskip("ranx")
    qrels, run = trec(files)
    # ranx refuses queries that the run lacks: an empty list is what they have.
    found = ranx.Run({query: run.get(query, {"none": 0.0}) for query in qrels})
    values = ranx.evaluate(ranx.Qrels(qrels), found, ["ndcg@3", "ndcg@10", "mrr@10", "recall@5"])
    for key, value in values.items():
        assert value == close(means[key])


def mteb_task(rows: Sequence[Query]) -> Any:
    """The collection as a task of mteb's."""
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class Task(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="Shuffled",
            dataset={"path": "none/none", "revision": "1"},
            description="Random rankings.",
            type="Retrieval",
            category="t2t",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

    task = Task()
    corpus = [{"id": document, "title": "", "text": document} for document in DOCUMENTS]
    relevant = {q: {d: int(g) for d, g in row.items()} for q, row in QRELS.items()}
    task.dataset = {
        "default": {
            "test": {
                "corpus": Dataset.from_list(corpus),
                "queries": Dataset.from_list([{"id": q.id, "text": q.text} for q in rows]),
                "relevant_docs": relevant,
                "top_ranked": None,
            }
        }
    }
    task.data_loaded = True
    return task


@pytest.mark.slow
def test_mteb_runs_its_evaluator_on_our_backend(means: dict[str, float]) -> None:
    pytest.importorskip("mteb")
    task = mteb_task(QUERIES)
    model = MtebSearch(Shuffled(), DOCUMENTS)
    scores = task.evaluate(model, "test", encode_kwargs={})["default"]
    for k in (1, 3, 5, 10):
        assert scores[f"ndcg_at_{k}"] == close(means[f"ndcg@{k}"], abs=1e-5)  # mteb rounds
    assert scores["recall_at_5"] == close(means["recall@5"], abs=1e-5)
    assert scores["mrr_at_10"] == close(means["mrr@10"], abs=1e-5)
    assert model.mteb_model_meta.name == "rlqr/lexical"


@pytest.mark.slow
def test_mteb_reads_our_results(means: dict[str, float], tmp_path: Path) -> None:
    mteb_results = pytest.importorskip("mteb.results")
    result = summarise(judged(), samples=10)
    facts = {"collection": "Shuffled", "documents": "f00", "split": "test", "primary": "ndcg@10"}
    (path,) = write_mteb(result, facts, tmp_path)
    found = mteb_results.TaskResult.from_disk(path)
    assert found.task_name == "Shuffled"
    (scores,) = found.scores["test"]
    assert scores["main_score"] == means["ndcg@10"]
    assert scores["ndcg_at_3"] == means["ndcg@3"]


def test_another_corpus_is_refused() -> None:
    model = MtebSearch(Shuffled(), DOCUMENTS)
    model.index([{"id": document} for document in DOCUMENTS])
    with pytest.raises(
        CollectionError, match="mteb's corpus has 39 documents, the backend 40; 'd39'"
    ):
        model.index([{"id": document} for document in DOCUMENTS[:-1]])


def test_every_query_has_an_answer_with_scores_by_rank() -> None:
    class Two(Shuffled):
        def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
            return [[Hit("b", 1.0), Hit("a", 1.0)] if query == "x" else [] for query in queries]

    rows = [{"id": "q1", "text": "x"}, {"id": "q2", "text": "y"}]
    assert MtebSearch(Two(), ["a", "b"]).search(rows, top_k=5) == {
        "q1": {"b": -1.0, "a": -2.0},
        "q2": {},
    }
