"""`SearchReward` in a training script of one's own, without a fork and without a config."""

import runpy
import sys
from pathlib import Path

import pytest
from peft import PeftModel
from transformers import AutoModelForCausalLM

from tests import tiny

SCRIPT = """\
import sys

from retrievers.lexical import LexicalRetriever
from retrievers.loaders import load
from rewards import SearchReward

from datasets import Dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

policy, folder, output = sys.argv[1:]
collection = load("beir", folder=folder)
qrels = collection.qrels("train")
rows = [{"prompt": [{"role": "user", "content": query.text}],
         "query_id": query.id, "query": query.text,
         "relevant": [{"id": d, "grade": g} for d, g in qrels[query.id].items()]}
        for query in collection.queries("train")]
options = GRPOConfig(output, use_cpu=True, bf16=False, max_steps=2, num_generations=4,
                     max_completion_length=8, logging_steps=1, report_to="none")
trainer = GRPOTrainer(policy, SearchReward(LexicalRetriever(collection)), options,
                      Dataset.from_list(rows), peft_config=LoraConfig(target_modules="all-linear"))
trainer.train()
trainer.save_model()
"""


def test_the_reward_in_a_script_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tiny.save_policy(tmp_path / "policy")
    collection = tiny.save_collection(tmp_path / "collection")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert len([line for line in SCRIPT.splitlines() if line]) <= 25
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, (policy, collection, tmp_path / "o"))])
    trainer = runpy.run_path(str(script))["trainer"]
    rewards = [row["rewards/lexical_ndcg@3/mean"] for row in trainer.state.log_history[:2]]
    assert len(rewards) == 2
    assert all(0 <= reward <= 1 for reward in rewards)
    assert any(reward > 0 for reward in rewards)
    base = AutoModelForCausalLM.from_pretrained(policy)
    assert PeftModel.from_pretrained(base, str(tmp_path / "o")).active_adapter == "default"
