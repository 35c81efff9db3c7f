"""A policy small enough for tests: a Qwen2 of some ten thousand weights with its own tokenizer."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def save_policy(folder: Path, seed: int = 0) -> Path:
    """Save a random policy with a word-level vocabulary; it ends its turn about every ten words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    special = ["<pad>", "<unk>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<|end|>",
        additional_special_tokens=special[3:],
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(vocabulary),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=256,
            eos_token_id=vocabulary["<|end|>"],
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_collection(folder: Path, train: int = 6) -> Path:
    """A BEIR folder: ten documents of one word each; query qN is about document N."""
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{n}", "title": "", "text": word} for n, word in enumerate(WORDS)]
    _write(folder / "corpus.jsonl", documents)
    splits = {"train": range(train), "validation": range(6, 8), "test": range(8, 10)}
    queries = [
        {
            "_id": f"q{n}",
            "text": f"{WORDS[(n + 1) % 10]} {WORDS[n]}",
            "metadata": {"reference": WORDS[n]},
        }
        for numbers in splits.values()
        for n in numbers
    ]
    _write(folder / "queries.jsonl", queries)
    for split, numbers in splits.items():
        rows = "".join(f"q{n}\td{n}\t1\n" for n in numbers)
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def settings(folder: Path, **sections: Mapping[str, Any] | str) -> dict[str, Any]:
    """A configuration that trains the tiny policy; `sections` are merged into it."""
    if not (folder / "policy").exists():
        save_policy(folder / "policy")
        save_collection(folder / "collection")
    values: dict[str, Any] = {
        "output": str(folder / "run"),
        "collection": {"loader": "beir", "options": {"folder": str(folder / "collection")}},
        "model": {"name": str(folder / "policy"), "dtype": "float32"},
        "prompt": {"system": None},
        "reward": {"kind": "ndcg"},
        "evaluation": {"every": 2, "batch_size": 2, "bootstrap_samples": 100},
        "lora": {"r": 4},
        "trainer": {
            "max_steps": 4,
            "use_cpu": True,
            "num_generations": 4,
            "per_device_train_batch_size": 8,
            "max_completion_length": 8,
            "learning_rate": 0.01,
        },
    }
    for section, given in sections.items():
        values[section] = {**values[section], **given} if isinstance(given, Mapping) else given
    return values


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
