"""Records → TREC files: outside tools find our values in them."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import ir_measures
import pytest
from ir_measures import RR, R, nDCG

from retrievers.base import Hit
from retrievers.queries import Query
from rewriter.evaluation import evaluate, evaluate_samples, summarise
from rewriter.records import Rewrite
from rewriter.trec import TrecError, write_trec
from tests.known_answers import ANSWERS, MEASURES, QRELS, QUERIES, TRAINED, Fake, records

close = pytest.approx


def outside(folder: Path, run: str) -> dict[str, float]:
    tool: Any = ir_measures  # parts of it are not typed
    qrels = list(tool.read_trec_qrels(str(folder / "qrels.trec")))
    found = list(tool.read_trec_run(str(folder / "runs" / f"{run}.trec")))
    values = tool.calc_aggregate([nDCG @ 3, RR @ 10, R @ 10], qrels, found)
    return {"ndcg@3": values[nDCG @ 3], "mrr@10": values[RR @ 10], "recall@10": values[R @ 10]}


def test_outside_tools_agree_on_the_exported_runs(tmp_path: Path) -> None:
    # Ties throughout (all scores are 1), repeats (q2), no hits (q3), an excluded query (q4).
    found = records()
    paths = write_trec(found, QRELS, tmp_path)
    assert [path.name for path in paths] == [
        "lexical.raw.trec",
        "lexical.trained.trec",
        "semantic.raw.trec",
        "semantic.trained.trec",
        "qrels.trec",
    ]
    for backend, systems in summarise(found, samples=10).items():
        for system, summary in systems.items():
            for key, value in outside(tmp_path, f"{backend}.{system}").items():
                assert value == close(summary[key]["mean"], abs=1e-9), (backend, system, key)


def test_samples_are_exported_apart(tmp_path: Path) -> None:
    made = [TRAINED, TRAINED | {"q1": Rewrite("two")}]
    found = evaluate_samples(
        "trained", made, QUERIES, QRELS, {"lexical": Fake(ANSWERS)}, measures=MEASURES
    )
    paths = write_trec(found, QRELS, tmp_path)
    names = ["lexical.trained.trec", "lexical.trained.sample2.trec", "qrels.trec"]
    assert [path.name for path in paths] == names
    means = [outside(tmp_path, name.removesuffix(".trec"))["ndcg@3"] for name in names[:2]]
    assert sum(means) / 2 == close(
        summarise(found, samples=10)["lexical"]["trained"]["ndcg@3"]["mean"]
    )


def test_the_files_themselves(tmp_path: Path) -> None:
    write_trec(records(), QRELS, tmp_path)
    run = (tmp_path / "runs" / "lexical.trained.trec").read_text().splitlines()
    assert run == [
        "q1 Q0 a 1 -1 trained",
        "q1 Q0 x 2 -2 trained",
        "q2 Q0 c 1 -1 trained",
        "q2 Q0 b 2 -2 trained",
        "q2 Q0 a 3 -3 trained",  # the repeated c counted once
    ]
    assert (tmp_path / "qrels.trec").read_text().splitlines() == [
        "q1 0 a 1",
        "q2 0 b 2",
        "q2 0 c 1",
        "q2 0 a 0",
        "q2 0 d 0",  # judged -1
        "q3 0 c 1",
    ]


def test_ids_with_white_space_are_encoded(tmp_path: Path) -> None:
    ids = ["annual report.pdf", "annual%20report.pdf", "a\u00a0b", "예산 공고"]
    query = Query("my query", "text")

    class Spaces(Fake):
        def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
            return [[Hit(identity, 1.0) for identity in ids] for _ in queries]

    qrels = {"my query": {"annual%20report.pdf": 1.0}}
    found = evaluate(
        "raw",
        {query.id: Rewrite(None)},
        [query],
        qrels,
        {"lexical": Spaces({})},
        measures=MEASURES,
    )
    write_trec(found, qrels, tmp_path)
    rows = (tmp_path / "runs" / "lexical.raw.trec").read_text("utf-8").splitlines()
    assert [len(row.split()) for row in rows] == [6] * 4
    assert [unquote(row.split()[2]) for row in rows] == ids
    assert rows[3].split()[2] == "예산%20공고"
    assert outside(tmp_path, "lexical.raw")["mrr@10"] == 1 / 2


def test_what_trec_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    found = records()
    halves = QRELS | {"q3": {"c": 0.5}}
    with pytest.raises(TrecError, match=r"'q3', document 'c', grade 0\.5"):
        write_trec(found, halves, tmp_path)
    with pytest.raises(TrecError, match="'q1' has metrics, but no relevant"):
        write_trec(found, {}, tmp_path)
    assert not list(tmp_path.iterdir())
