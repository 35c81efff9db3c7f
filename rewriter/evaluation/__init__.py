"""Systems × backends → records → one result.

    records = evaluate("trained", rewrites, queries, qrels, {"lexical": retriever})
    result = summarise(records_of_every_system)
    write_result(result, folder / "result.json")

Means are over queries and apart for each backend: nothing is averaged over backends. A training
uses this at its end; `rlqr eval` (`rewriter.evaluation.run`) for any systems and backends.
"""

from rewriter.evaluation.judging import (
    DEPTH,
    HEADLINE,
    MEASURES,
    EvaluationError,
    evaluate,
    evaluate_samples,
)
from rewriter.evaluation.summary import Result, Summary, summarise, write_result
from rewriter.records import Rewrite

__all__ = ["DEPTH", "HEADLINE", "MEASURES", "EvaluationError", "Result", "Rewrite", "Summary"]
__all__ += ["evaluate", "evaluate_samples", "summarise", "write_result"]
