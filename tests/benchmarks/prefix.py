"""What reading shared prefixes once saves in a GRPO step, sampling and scoring with its gradient.

    python -m tests.benchmarks.prefix             configs/demo.yaml: its model, prompts and sizes
    python -m tests.benchmarks.prefix --small     a model of some thousand weights

One process and one model with a new adapter; plain and shared passes alternate over the same
prompts. Threads are what OMP_NUM_THREADS says.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rewriter.config import Config, load
from tests.benchmarks.figures import Figure, show

ROUNDS, SMALL_ROUNDS = 5, 2


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a tiny model, no goal is judged")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = _tiny(Path(folder)) if options.small else load("configs/demo.yaml")
        figures = _measure(config, SMALL_ROUNDS if options.small else ROUNDS)
    show(figures, options.small)


def _measure(config: Config, rounds: int) -> dict[str, Figure]:
    import torch

    from rewriter.shared_prefix import share_prefixes

    model, inputs, tokens = _prepare(config)
    decoder = model.get_base_model().get_decoder()
    plain = decoder.forward
    if not share_prefixes(model):
        raise SystemExit(f"{config.model.name}: its prefixes cannot be shared")
    forwards = {"plain": plain, "shared": decoder.forward}
    seconds: dict[str, list[float]] = {side: [] for side in forwards}
    norms: dict[str, float] = {}
    for number in range(rounds + 1):  # the first round warms up
        for side, forward in forwards.items():
            decoder.forward = forward
            torch.manual_seed(number)
            took, norms[side] = _timed(lambda: _step(model, inputs, tokens))
            if number:
                seconds[side].append(took)
    ratios = [a / b for a, b in zip(seconds["plain"], seconds["shared"], strict=True)]
    print(
        f"{len(inputs['input_ids'])} rows, prompts of {inputs['input_ids'].shape[1]} tokens, "
        f"{tokens} tokens written, {torch.get_num_threads()} threads"
    )
    for side, values in seconds.items():
        print(f"{side:7} {median(values):8.3f} s a step, {min(values):.3f} to {max(values):.3f}")
    print(f"gradient norms of the last step: {norms['plain']:.4f} and {norms['shared']:.4f}")
    return {"plain_over_shared": Figure(median(ratios), 1.5, unit="times the speed")}


def _prepare(config: Config) -> tuple[Any, dict[str, Any], int]:
    from peft import get_peft_model

    from rewriter.policy import load_model
    from rewriter.trainer_options import grpo_config, lora_config
    from rewriter.training_data import load_data

    options = grpo_config(config)
    base, tokenizer = load_model(config.model.name, None, config.model.dtype)
    model = get_peft_model(base, lora_config(config))
    prompts = options.per_device_train_batch_size // options.num_generations
    conversations = [row["prompt"] for row in load_data(config).rows[:prompts]]
    inputs = tokenizer.apply_chat_template(
        [one for one in conversations for _ in range(options.num_generations)],
        add_generation_prompt=True,
        padding=True,
        return_tensors="pt",
        return_dict=True,
    )
    return model, dict(inputs), options.max_completion_length


def _step(model: Any, inputs: dict[str, Any], tokens: int) -> float:
    """Sample, score what was sampled, and take the gradient; returns its norm."""
    import torch

    model.zero_grad()
    with torch.no_grad():
        ids = model.generate(**inputs, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=True)
    mask = torch.cat([inputs["attention_mask"], torch.ones_like(ids[:, -tokens:])], dim=1)
    base = model.get_base_model()
    decoder, head = base.get_decoder(), base.get_output_embeddings()
    states = decoder(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    logits = head(states[:, -tokens - 1 : -1].contiguous()).float()
    scores = torch.log_softmax(logits, dim=-1).gather(-1, ids[:, -tokens:, None])
    scores.mean().backward()
    gradients = [one.grad.norm() for one in model.parameters() if one.grad is not None]
    return float(torch.stack(gradients).norm())


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    start = perf_counter()
    value = work()
    return perf_counter() - start, value


def _tiny(folder: Path) -> Config:
    import yaml

    from tests.tiny import settings

    file = folder / "tiny.yaml"
    file.write_text(yaml.safe_dump(settings(folder)), encoding="utf-8")
    return load(file)


if __name__ == "__main__":
    main()
