"""On a CPU the projection to the vocabulary costs less, and nothing else changes."""

from types import SimpleNamespace
from typing import Any

import pytest

PROMPT = 12


def _scored(compact: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Log-probabilities, entropies and a gradient of a small model, and the rows projected."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from trl.trainer import utils

    from rewriter.cpu_head import score_completions_only

    monkeypatch.setattr(utils, "_use_triton", lambda device: False)
    rows: list[int] = []
    apply = utils._ChunkedLogProbFunction.apply
    counting = SimpleNamespace(
        apply=lambda hidden, *rest: rows.append(len(hidden)) or apply(hidden, *rest)
    )
    monkeypatch.setattr(utils, "_ChunkedLogProbFunction", counting)
    if compact:
        assert score_completions_only()
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    model = Qwen2ForCausalLM(config)
    utils.add_fused_lm_head(model, temperature=0.9, outputs=("log_probs", "entropy"))
    ids = torch.randint(0, 300, (3, 20))
    labels = ids.clone()
    labels[:, :PROMPT] = -100
    found = model(input_ids=ids, labels=labels, fused_lm_head=True)
    scores, entropy = found.log_probs[:, PROMPT - 20 :], found.entropy[:, PROMPT - 20 :]
    (scores.sum() + entropy.sum()).backward()
    gradient = model.model.layers[0].mlp.up_proj.weight.grad
    return scores.detach(), entropy.detach(), gradient, rows


def test_same_values_from_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    *plain, all_rows = _scored(False, monkeypatch)
    monkeypatch.undo()
    *compact, fewer = _scored(True, monkeypatch)
    # 3 sequences of 20 tokens: 19 predictions each, of which 8 are of the completion.
    assert (all_rows, fewer) == ([3 * 19], [3 * 8])
    for one, other in zip(plain, compact, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_other_trl_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from trl.trainer import utils

    from rewriter.cpu_head import score_completions_only

    monkeypatch.delattr(utils, "_use_triton")
    assert not score_completions_only()
    assert not hasattr(utils, "_use_triton")


def test_the_head_gets_contiguous_states() -> None:
    """`generate` hands it the last place of each prompt, a slice of all states."""
    import torch

    from rewriter.cpu_head import project_contiguous

    class Head(torch.nn.Module):
        def forward(self, states: torch.Tensor) -> torch.Tensor:
            seen.append(states)
            return states

    seen: list[torch.Tensor] = []
    head = Head()
    states = torch.arange(24.0).view(2, 4, 3)[:, -1:, :]
    assert not states.is_contiguous()
    project_contiguous(SimpleNamespace(get_output_embeddings=lambda: head))
    head(states)
    assert seen[0].is_contiguous()
    assert seen[0].tolist() == [[[9, 10, 11]], [[21, 22, 23]]]
