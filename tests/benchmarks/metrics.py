"""Our measures beside pytrec_eval, on one random run, in one process; and whether values agree.

    python -m tests.benchmarks.metrics            10,000 queries of 100 hits, 12 measures
    python -m tests.benchmarks.metrics --small    500 queries

Each side gets what it reads: we lists of ids, pytrec_eval scores by id. Making those is not timed.
The two take turns, and the best of three counts for both. Seconds are of the processor, which what
else runs on the machine does not change.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

from rewards.metrics import Evaluation, evaluate
from tests.benchmarks.figures import Figure, show

HITS = 100
# Ours → theirs.
MEASURES = {
    **{f"ndcg@{k}": f"ndcg_cut_{k}" for k in (1, 3, 5, 10)},
    **{f"recall@{k}": f"recall_{k}" for k in (1, 3, 5, 10)},
    **{f"precision@{k}": f"P_{k}" for k in (1, 5, 10)},
    "mrr": "recip_rank",
}
ASKED = {"ndcg_cut.1,3,5,10", "recall.1,3,5,10", "P.1,5,10", "recip_rank"}
ROUNDS = 3


def _data(queries: int) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    """Rankings and graded judgements; of five judged documents two are found."""
    draw = random.Random(0)
    documents = [f"doc{number}" for number in range(100_000)]
    run = {f"q{number}": draw.sample(documents, HITS) for number in range(queries)}
    qrels = {
        query: {doc: draw.choice([1, 1, 2]) for doc in draw.sample(ranking, 2)}
        | {doc: draw.choice([0, 1, 2]) for doc in draw.sample(documents, 3)}
        for query, ranking in run.items()
    }
    return run, qrels


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def _same(ours: Evaluation, theirs: dict[str, dict[str, float]]) -> bool:
    return all(
        abs(value - theirs[query][name]) < 1e-9
        for key, name in MEASURES.items()
        for query, value in ours.per_query[key].items()
    )


def main() -> None:
    """Measure and show."""
    import pytrec_eval

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="500 queries, no goal is judged")
    small = parser.parse_args().small
    run, qrels = _data(500 if small else 10_000)
    scored = {
        query: {doc: -float(rank) for rank, doc in enumerate(ranking, 1)}
        for query, ranking in run.items()
    }
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        seconds, ours = _timed(lambda: evaluate(run, qrels, list(MEASURES)))
        times["ours"].append(seconds)
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, ASKED)
        seconds, theirs = _timed(lambda: evaluator.evaluate(scored))  # noqa: B023 - called at once
        times["theirs"].append(seconds)
    best = {name: min(some) for name, some in times.items()}
    print(f"{len(run)} queries: ours {best['ours']:.3f} s, pytrec_eval {best['theirs']:.3f} s")
    figures = {
        "pytrec_eval_over_ours": Figure(best["theirs"] / best["ours"], 1, unit="times its seconds"),
        "same_values": Figure(_same(ours, theirs), True, better="equal"),
    }
    show(figures, small)


if __name__ == "__main__":
    main()
