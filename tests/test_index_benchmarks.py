"""The benchmarks of indexes: small runs end with their figures; what they build on is right."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import corpora
from tests.benchmarks.growth import growth
from tests.benchmarks.memory import resident
from tests.test_architecture import ROOT


def test_growth_is_the_exponent() -> None:
    assert growth({10: 3.0, 100: 30.0, 1000: 300.0}) == pytest.approx(1.0)
    assert growth({10: 2.0, 1000: 20.0}) == pytest.approx(0.5)  # tenfold at a hundredfold
    assert growth({10: 7.0, 100: 7.0}) == pytest.approx(0.0, abs=1e-12)


def test_small_collections_begin_large_ones(tmp_path: Path) -> None:
    for size in (3, 5):
        corpora.write_documents(tmp_path / f"{size}.arrow", size)
    small, large = (corpora.documents(tmp_path / f"{size}.arrow") for size in (3, 5))
    assert list(large.ids)[:3] == list(small.ids) == ["document-0", "document-1", "document-2"]
    assert list(large.texts())[:3] == list(small.texts())
    assert {len(text.split()) for _, text in large.texts()} == {60}
    words = [set(text.split()) for _, text in small.texts()]
    for query in corpora.queries(3, 5):
        assert len(set(query.split())) == 4
        assert any(set(query.split()) <= held for held in words)


def test_resident_memory_counts_what_is_used() -> None:
    before = resident("own")
    held = np.ones(8 * 2**20)  # 64 MiB
    assert resident("own") - before > 60 * 2**20
    del held
    assert resident("peak") >= resident("now")
    assert resident("own") - before < 60 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "figures"),
    [
        (
            "opening",
            ["lexical_opening", "lexical_memory", "semantic_opening", "semantic_memory"],
        ),
        (
            "growth",
            [
                "lexical_bm25s_growth",
                "lexical_rank_bm25_growth",
                "semantic_exact_growth",
                "semantic_hnsw_growth",
            ],
        ),
        (
            "semantic",
            [
                *(f"{dtype}_over_bare" for dtype in ("float16", "bfloat16", "float32")),
                "score_difference",
                "memory_beside_vectors",
            ],
        ),
        (
            "maxsim",
            [
                "even_over_bare",
                "difference",
                "uneven_throughput",
                "memory",
                "memory_growth",
                "two_stages",
            ],
        ),
    ],
)
def test_a_small_run(name: str, figures: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.benchmarks.{name}", "--small"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == figures
    assert all(one["met"] is None and np.isfinite(one["value"]) for one in found.values())
