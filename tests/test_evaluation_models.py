"""The evaluation's models are loaded, and answer, as those of the training."""

from pathlib import Path
from typing import Any

import pytest

from retrievers.queries import Query
from rewriter.config import Config
from rewriter.config.collection import open_collection
from rewriter.evaluation import writing
from rewriter.evaluation.models import Models
from rewriter.evaluation.plan import Entry
from rewriter.generation import Completion
from rewriter.systems import CollectionTerms
from rewriter.trainer_options import grpo_config
from rewriter.yaml_source import ConfigError
from tests import tiny

UNTRAINED = Entry("untrained", "untrained rewriter", "untrained")


def _config(folder: Path, **sections: Any) -> Config:
    return Config.model_validate(tiny.settings(folder, **sections))


@pytest.mark.parametrize(
    "given", [{"attn_implementation": "eager"}, '{"attn_implementation": "eager"}']
)
def test_a_base_model_is_loaded_as_for_the_training(tmp_path: Path, given: Any) -> None:
    config = _config(tmp_path, trainer={"model_init_kwargs": given})
    assert grpo_config(config).model_init_kwargs["attn_implementation"] == "eager"
    with Models(config).rewriter(UNTRAINED) as (rewriter, _):
        assert rewriter.model.config._attn_implementation == "eager"


def test_what_the_trainer_says_outweighs_the_model_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []

    def load(name: str, revision: str | None, dtype: str, **init: Any) -> Any:
        seen.append(init)
        raise KeyboardInterrupt

    monkeypatch.setattr("rewriter.policy.load_model", load)
    model = {"init": {"low": 1, "attn_implementation": "sdpa", "use_safetensors": False}}
    trainer = {"model_init_kwargs": {"attn_implementation": "eager"}}
    with (
        pytest.raises(KeyboardInterrupt),
        Models(_config(tmp_path, model=model, trainer=trainer)).rewriter(UNTRAINED),
    ):
        pass
    assert seen == [
        {
            "trust_remote_code": False,
            "low": 1,
            "attn_implementation": "eager",
            "use_safetensors": True,
        }
    ]


def test_a_limit_that_is_text_is_a_limit(tmp_path: Path) -> None:
    """A YAML may hold "3"; TRL's class reads it as a number, and so does the evaluation."""
    config = _config(tmp_path, trainer={"max_completion_length": "3"})
    with Models(config).rewriter(UNTRAINED) as (rewriter, _):
        assert len(rewriter.rewrites(["alpha beta"])) == 1
        assert rewriter.decoding.max_new_tokens == 3
    with (
        pytest.raises(ConfigError, match="max_completion_length"),
        Models(_config(tmp_path, trainer={"max_completion_length": "three"})).rewriter(UNTRAINED),
    ):
        pass


def test_batches_are_those_of_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 16-bit weights a batch's other rows may decide between two close tokens: so the longest
    first, as everywhere, and equally long ones in the order of the queries."""
    texts = ("eta mu", "alpha", "gamma", "zeta xi", "delta", "beta")
    queries = [Query(f"q{place}", text) for place, text in enumerate(texts)]
    asked: list[str] = []

    def write(model: Any, tokenizer: Any, conversations: Any, decoding: Any) -> list[Completion]:
        asked.extend(conversation[-1]["content"] for conversation in conversations)
        return [Completion("rho", False)] * len(conversations)

    monkeypatch.setattr(writing, "generate", write)
    config = _config(tmp_path, prompt={"template": "{query}"})
    counts = CollectionTerms(open_collection(config))
    writer = writing.Writer(config, queries, ["lexical"], counts, tmp_path / "cache")
    made = writer.write(UNTRAINED).samples["lexical"][0]
    assert asked == ["zeta xi", "eta mu", "alpha", "gamma", "delta", "beta"]
    assert [one.text for one in made.values()] == ["rho"] * 6
