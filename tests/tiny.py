"""A policy and a collection small enough for tests: a step of training takes 0.05 s.

The policy is a Granite of some twenty thousand weights with a vocabulary of ten words. Its head is
built by hand, so that it behaves like a chat model before any training: it writes words, never a
special token, and ends its turn after three words on average. Granite is a model type for which
AutoTokenizer keeps the tokenizer that was saved; for Qwen2 it puts its own rules around it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
SPECIAL = ["<pad>", "<unk>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
END, ASSISTANT = SPECIAL.index("<|end|>"), SPECIAL.index("<|assistant|>")


def save_policy(folder: Path, *, ends: bool = True, template: str | None = TEMPLATE) -> Path:
    """Save the policy.

    Args:
        folder: where.
        ends: whether it ever ends its turn.
        template: of the chat; None makes it a model that knows no turns.
    """
    tokenizer = _tokenizer()
    tokenizer.chat_template = template
    model = _model()
    _speak(model, ends)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_collection(
    folder: Path, train: int = 6, validation: Sequence[int] = (6, 7), test: Sequence[int] = (8, 9)
) -> Path:
    """A BEIR folder: documents of one word each; query qN is about document N.

    Query qN says the word of document N-1 before its own: BM25 finds both and puts document N-1
    first, so that a raw query is in the second place (NDCG@3 .631).

    Args:
        folder: where.
        train: number of training queries; those above ten are about the same documents again.
        validation, test: numbers of the held-out queries.
    """
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{n}", "title": "", "text": word} for n, word in enumerate(WORDS)]
    documents += [{"_id": f"d{n}", "title": "", "text": f"noise{n}"} for n in range(10, 20)]
    _write(folder / "corpus.jsonl", documents)
    splits = {"train": range(train), "validation": validation, "test": test}
    queries = [
        {
            "_id": f"q{n}",
            "text": f"{WORDS[n - 1]} {WORDS[n]}",
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
    if not (folder / "collection").exists():
        save_collection(folder / "collection")
    values: dict[str, Any] = {
        "output": str(folder / "run"),
        "threads": 1,
        "collection": {"loader": "beir", "options": {"folder": str(folder / "collection")}},
        "model": {"name": str(folder / "policy"), "dtype": "float32"},
        "prompt": {"system": None},
        "reward": {"kind": "ndcg"},
        "evaluation": {"every": 2, "batch_size": 2, "bootstrap_samples": 100},
        "alarms": {},
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
        values[section] = (
            {**values.get(section, {}), **given} if isinstance(given, Mapping) else given
        )
    if "adapter" in values["model"] and "lora" not in sections:
        del values["lora"]  # an adapter brings its own
    return values


def train_tiny(folder: Path, *, resume: bool = False, **sections: Mapping[str, Any] | str) -> Any:
    """Train in this process; returns the run's folder as a RunDirectory."""
    from rewriter.config import Config
    from rewriter.run_directory import RunDirectory
    from rewriter.training import train

    config = Config.model_validate(settings(folder, **sections))
    train(config, resume=resume)
    return RunDirectory(config.output)


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read(path: Path) -> Any:
    """The object of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def steps(run: Any) -> list[dict[str, Any]]:
    """The training's own lines of `metrics.jsonl`, one a step."""
    return [row for row in lines(run.metrics) if "loss" in row]


def launch(command: Sequence[object], **environment: str) -> Any:
    """Run a command of the virtual environment in the checkout, for at most five minutes."""
    import os
    import subprocess
    import sys

    return subprocess.run(
        list(map(str, command)),
        cwd=Path(__file__).parent.parent,
        env=os.environ
        | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens = [*SPECIAL, *(f"▁{word}" for word in WORDS)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<|end|>",
        additional_special_tokens=SPECIAL[3:],
    )


def _model() -> Any:
    import torch
    from transformers import GraniteConfig, GraniteForCausalLM

    torch.manual_seed(0)
    return GraniteForCausalLM(
        GraniteConfig(
            vocab_size=len(SPECIAL) + len(WORDS),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=256,
            eos_token_id=END,
            tie_word_embeddings=False,
        )
    )


def _speak(model: Any, ends: bool) -> None:
    """Give the head biases: the first hidden value is the same for all tokens, about 2.5.

    The second one is high after <|assistant|> only, where the turn must not end at once.
    """
    import torch

    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    with torch.no_grad():
        embedding.normal_(std=0.3)
        embedding[:, 0], embedding[:, 1] = 1.0, 0.0
        embedding[ASSISTANT, 1] = 1.0
        head.normal_(std=0.2)
        head[:, :2] = 0.0
        head[: len(SPECIAL), 0] = -10.0
        if ends:
            head[END, 0], head[END, 1] = 0.6, -10.0


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
