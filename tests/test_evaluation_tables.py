"""Result → tables, for a terminal and in Markdown."""

import pytest

from rewriter.evaluation import EvaluationError
from rewriter.tables import WIDTH, markdown, table

RESULT = {
    "lexical": {
        "raw": {
            "ndcg@3": {"mean": 0.463, "low": 0.395, "high": 0.532, "n": 120},
            "mrr@10": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 120},
            "fallbacks": 0,
            "excluded": 2,
        },
        "step-60": {
            "ndcg@3": {"mean": 1.0, "low": 0.9, "high": 1.0, "n": 120},
            "mrr@10": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 120},
            "vs_raw": {"diff": 0.21, "low": -0.0001, "high": 1.0, "win": 45, "tie": 60, "loss": 15},
            "p_vs_raw": 0.01,
            "fallbacks": 3,
            "excluded": 2,
        },
    }
}
LABELS = {"step-60": "trained rewriter (step 60, best)"}


def words(line: str) -> str:
    return " ".join(line.split())


def test_the_table() -> None:
    lines = table(RESULT, "lexical", labels=LABELS).split("\n")
    assert lines[0] == "lexical, 120 held-out queries"
    assert words(lines[1]) == "NDCG@3 [95% CI] MRR@10 Recall@10 vs raw [95% CI] win/tie/loss"
    assert words(lines[2]) == "raw query 0.463 [.395, .532] 0.500 – –"
    figures = "1.000 [.900, 1.000] 0.500 – +0.210 [+.000, +1.000] 45/60/15"
    assert words(lines[3]) == f"trained rewriter (step 60, best) {figures}"
    assert lines[4] == (
        "No rewrite, so the raw query was sent: trained rewriter (step 60, best) 3."
    )
    assert lines[5] == "Queries left out, having no relevant document: 2."
    # Columns stand below their headings: numbers with intervals start there, others end there.
    for heading, figure in (("NDCG@3", "1.000 ["), ("vs raw", "+0.210")):
        assert lines[1].index(heading) == lines[3].index(figure)
    for heading, figure in (("MRR@10", "0.500"), ("win/tie/loss", "45/60/15")):
        ends = lines[1].index(heading) + len(heading)
        assert ends == lines[3].index(figure) + len(figure)


def test_the_table_fits_the_width() -> None:
    long = table(RESULT, "lexical", labels={"step-60": "x" * 200}, split="validation")
    assert max(map(len, long.split("\n")[:4])) == WIDTH
    assert "…" in long
    assert "120 validation queries" in long


def test_the_markdown_table() -> None:
    lines = markdown(RESULT, "lexical", labels={"step-60": "a|b"}).split("\n")
    assert lines[0] == (
        "| lexical, 120 held-out queries | NDCG@3 [95% CI] | MRR@10 | Recall@10 "
        "| vs raw [95% CI] | win/tie/loss |"
    )
    assert lines[1] == "| --- | --: | --: | --: | --: | --: |"
    assert lines[2] == "| raw query | 0.463 [.395, .532] | 0.500 | – | – |  |"
    assert lines[3] == (
        r"| a\|b | 1.000 [.900, 1.000] | 0.500 | – | +0.210 [+.000, +1.000] | 45/60/15 |"
    )
    assert lines[4:] == [
        "",
        "No rewrite, so the raw query was sent: a|b 3.",
        "Queries left out, having no relevant document: 2.",
    ]


def test_a_backend_that_is_not_there_is_named() -> None:
    for form in (table, markdown):
        with pytest.raises(EvaluationError, match="'http'; there are: lexical"):
            form(RESULT, "http")
