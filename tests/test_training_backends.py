"""A training against four real backends at once, and its rewriter evaluated on them."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from rewriter import cli
from tests import tiny
from tests.tiny_encoder import save_encoder

BACKENDS = {"lexical": 0.4, "semantic": 0.3, "multimodal": 0.2, "hybrid": 0.1}


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The page reader that comes with the package, and a tiny encoder."""
    folder = tmp_path_factory.mktemp("backends")
    return {
        "retrievers": {"semantic": {"model": str(save_encoder(folder / "encoder"))}},
        "reward": {"backends": BACKENDS, "kind": "rank"},
        "trainer": {"max_steps": 1},
        "evaluation": {"systems": ["raw", "untrained"]},
        "index_dir": str(folder / "indexes"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sections: dict[str, Any]) -> Path:
    place = tmp_path_factory.mktemp("training")
    tiny.train_tiny(place, **sections)
    return place


def test_every_backend_has_a_reward_of_its_own(folder: Path) -> None:
    run = folder / "run"
    (step,) = (row for row in tiny.lines(run / "metrics.jsonl") if "loss" in row)
    parts = {name: step[f"rewards/{name}_rank@100/mean"] for name in BACKENDS}
    assert all(0 <= value <= 1 for value in parts.values())
    total = sum(weight * parts[name] for name, weight in BACKENDS.items())
    assert math.isclose(step["reward"], total, abs_tol=1e-5)
    result = tiny.read(run / "result.json")
    assert list(result) == list(BACKENDS)  # each alone, and no mean over them
    assert all(list(one) == ["raw", "untrained", "trained"] for one in result.values())


def test_what_is_known_of_the_indexes_stands_in_the_run(folder: Path) -> None:
    facts = tiny.read(folder / "run" / "run.json")["backends"]
    assert facts["lexical"] == {"size": 20, "blank": 0}
    assert facts["semantic"]["truncated"] == 0
    assert facts["multimodal"]["pages"] == 20
    assert facts["hybrid"]["fused"] == "documents"
    assert list(facts["hybrid"]["parts"]) == ["lexical", "semantic"]


def test_an_evaluation_on_all_of_them_comes_to_the_same(
    folder: Path, sections: dict[str, Any]
) -> None:
    config = folder / "all.yaml"
    config.write_text(yaml.safe_dump(tiny.settings(folder, **sections)), encoding="utf-8")
    words = ["--checkpoint", str(folder / "run"), "--output", str(folder / "result")]
    cli.main(["eval", "--config", str(config), *words])
    here, there = (tiny.read(folder / name / "result.json") for name in ("result", "run"))
    for backend in BACKENDS:
        for one, other in (("raw", "raw"), ("untrained", "untrained"), ("run", "trained")):
            assert here[backend][one]["ndcg@3"] == there[backend][other]["ndcg@3"]
