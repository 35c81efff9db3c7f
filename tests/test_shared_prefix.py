"""Reading shared prefixes once changes the work, never the values."""

from pathlib import Path
from typing import Any

import pytest
import torch

from rewriter.prefixes import beginnings_first, split
from rewriter.shared_prefix import SharedForward, share_prefixes
from tests.tiny import save_policy

# Two prompts, the second with a place of padding on its left, three completions each, shuffled.
PROMPTS = [[3, 7, 8, 9, 10, 2, 5], [0, 3, 7, 11, 12, 2, 5]]
ENDS = [[6, 7, 2], [8, 9, 10], [6, 8, 2]]
ROWS = [(0, 1), (1, 0), (1, 2), (0, 0), (1, 1), (0, 2)]


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.tensor([PROMPTS[prompt] + ENDS[end] for prompt, end in ROWS])
    mask = torch.ones_like(ids)
    mask[:, 0] = torch.tensor([1 - prompt for prompt, _ in ROWS])
    return ids, mask


def _model(tmp_path: Path, **changes: Any) -> Any:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    folder = save_policy(tmp_path / "policy")
    config = AutoConfig.from_pretrained(folder, **changes)
    model = AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32)
    lora = LoraConfig(target_modules="all-linear", init_lora_weights=False)
    return get_peft_model(model, lora)


def _count_tokens(model: Any, counts: list[int]) -> None:
    layer = model.get_base_model().get_decoder().layers[0]
    layer.register_forward_pre_hook(lambda _, args: counts.append(args[0].shape[:2].numel()))


def _states(model: Any, **more: Any) -> torch.Tensor:
    ids, mask = _batch()
    decoder = model.get_base_model().get_decoder()
    states: torch.Tensor = decoder(input_ids=ids, attention_mask=mask, **more).last_hidden_state
    return states


def _gradients(model: Any) -> dict[str, torch.Tensor]:
    model.zero_grad()
    states = _states(model, use_cache=False)
    (states[:, -3:] * torch.linspace(-1, 1, states[:, -3:].numel()).view(6, 3, -1)).sum().backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def test_a_batch_is_parted_where_its_rows_part() -> None:
    ids, mask = _batch()
    cut, first, group = split(ids, mask)
    assert cut == 7
    assert [PROMPTS[0] == ids[row, :7].tolist() for row in first] == [False, True]
    assert group.tolist() == [1, 0, 0, 1, 0, 1]


def test_padding_is_no_token_that_a_prefix_shares() -> None:
    ids = torch.tensor([[0, 5, 6, 7], [0, 5, 6, 8]])
    assert split(ids, torch.ones_like(ids))[0] == 3
    assert split(ids, torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]))[0] == 0


def test_rows_that_share_little_are_left_alone() -> None:
    """Of 2 × 10 tokens one shared column saves 1, a twentieth."""
    ids = torch.arange(20).view(2, 10)
    ids[1, 0] = 0
    assert split(ids, None)[0] == 0


def test_states_and_gradients_are_those_of_the_plain_pass(tmp_path: Path) -> None:
    model = _model(tmp_path).train()
    states, gradients = _states(model), _gradients(model)
    assert share_prefixes(model)
    counts: list[int] = []
    _count_tokens(model, counts)
    mask = _batch()[1]
    torch.testing.assert_close(_states(model)[mask > 0], states[mask > 0], rtol=1e-5, atol=1e-6)
    # 2 prompts of 7 and 6 ends of 3, where a plain pass has 6 rows of 10.
    assert counts == [14, 18]
    shared = _gradients(model)
    assert shared.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(shared[name], gradient, rtol=1e-4, atol=1e-6, msg=name)
    assert any(gradient.abs().max() > 1e-3 for gradient in gradients.values())


def test_a_prefix_of_all_prompts_is_read_once(tmp_path: Path) -> None:
    model = _model(tmp_path).eval()
    system = [3, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    prompts = [[*system, 6, 6, 6, 6], [*system, 7, 7, 7, 7]]
    ids = torch.tensor([[*prompts[row // 4], row + 6, 2] for row in range(8)])
    with torch.no_grad():
        plain = model.get_base_model().get_decoder()(input_ids=ids).last_hidden_state
        share_prefixes(model)
        counts: list[int] = []
        _count_tokens(model, counts)
        states = model.get_base_model().get_decoder()(input_ids=ids).last_hidden_state
    assert counts == [10, 2 * 4, 8 * 2]
    torch.testing.assert_close(states, plain, rtol=1e-5, atol=1e-6)


def test_equal_beginnings_come_first_whatever_padding_stands_before_them() -> None:
    ids = torch.tensor([[0, 0, 3, 4, 5], [0, 3, 4, 6, 7], [3, 4, 8, 9, 1]])
    mask = (ids > 0).long()
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    order = beginnings_first(ids, mask, positions)
    assert ids.gather(1, order).tolist() == [[3, 4, 0, 0, 5], [3, 4, 0, 6, 7], [3, 4, 8, 9, 1]]
    assert beginnings_first(ids, None, positions) is None
    assert beginnings_first(ids, mask, None) is None
    assert beginnings_first(ids, mask, torch.arange(5)[None]) is None  # the padding counts
    assert beginnings_first(*(one[:, 2:] for one in (ids, mask, positions))) is None  # no padding
    ids[1, 1] = 2
    assert beginnings_first(ids, mask, positions) is None  # nothing in common


def test_a_prefix_of_padded_prompts_is_read_once(tmp_path: Path) -> None:
    """Three prompts of other lengths; their states, caches and continuations are the plain ones."""
    model = _model(tmp_path).eval()
    system = [3, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    ends = [[6, 6], [7, 7, 7], [8, 9, 8, 9, 8]]
    ids = torch.tensor([[0] * (5 - len(end)) + system + end for end in ends])
    mask = (ids > 0).long()
    given = {"input_ids": ids, "attention_mask": mask}
    decoder = model.get_base_model().get_decoder()

    def seen(**more: Any) -> tuple[Any, Any, Any]:
        outputs = decoder(**given, use_cache=True, **more)
        cache = next(outputs[name] for name in ("cache", "past_key_values") if name in outputs)
        layer = cache.layers[-1]
        cached = [one.transpose(1, 2)[mask > 0] for one in (layer.keys, layer.values)]
        return outputs.last_hidden_state[mask > 0], *cached

    positions = (mask.cumsum(1) - 1).clamp(min=0)
    options = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    with torch.no_grad():
        plain = seen(), seen(position_ids=positions)
        written = model.generate(**given, **options)
        share_prefixes(model)
        counts: list[int] = []
        _count_tokens(model, counts)
        shared = seen(), seen(position_ids=positions)
        # Without positions the padding counts in them, and in a cache that is kept.
        assert counts == [3 * 15, 10, 3 * 5]
        states = decoder(**given, use_cache=False).last_hidden_state[mask > 0]
        torch.testing.assert_close(states, plain[0][0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(shared, plain, rtol=1e-5, atol=1e-6)
        assert model.generate(**given, **options).tolist() == written.tolist()
        assert counts[3:] == [10, 3 * 5] * 2 + [3] * 4


def test_padding_that_counts_in_positions_keeps_its_place(tmp_path: Path) -> None:
    """A model that is told absolute positions reads a row that begins later otherwise."""
    model = _model(tmp_path).eval()
    ids = torch.tensor([[0, 0, *range(3, 13), 6], [*range(3, 13), 7, 7, 7]])
    decoder = model.get_base_model().get_decoder()
    decoder.rotary_emb.rope_type = "dynamic"  # whose rotations depend on the longest position
    share_prefixes(model)
    counts: list[int] = []
    _count_tokens(model, counts)
    decoder(input_ids=ids, attention_mask=(ids > 0).long(), use_cache=False)
    assert counts == [2 * 13]


def test_generation_writes_the_same_and_reads_each_prompt_once(tmp_path: Path) -> None:
    model = _model(tmp_path).eval()
    ids, mask = (tensor[:, :7] for tensor in _batch())
    wanted = model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=5, min_new_tokens=5, do_sample=False
    )
    share_prefixes(model)
    counts: list[int] = []
    _count_tokens(model, counts)
    found = model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=5, min_new_tokens=5, do_sample=False
    )
    assert found.tolist() == wanted.tolist()
    assert counts == [2 * 7, 6, 6, 6, 6]


def test_a_cache_is_returned_only_to_who_asks(tmp_path: Path) -> None:
    model = _model(tmp_path).eval()
    share_prefixes(model)
    ids, mask = _batch()
    decoder = model.get_base_model().get_decoder()
    for wanted in (True, False):
        outputs = decoder(input_ids=ids, attention_mask=mask, use_cache=wanted)
        cache = getattr(outputs, decoder.forward.cache_argument)
        assert (cache is not None) == wanted
        if wanted:
            assert cache.layers[0].keys.shape[0] == 6
            assert cache.get_seq_length() == 10


@pytest.mark.parametrize("why", ["dropout", "checkpointing", "hidden states", "one row"])
def test_what_cannot_be_shared_is_passed_on(tmp_path: Path, why: str) -> None:
    model = _model(tmp_path).train()
    share_prefixes(model)
    decoder = model.get_base_model().get_decoder()
    counts: list[int] = []
    _count_tokens(model, counts)
    ids, mask = _batch()
    more: dict[str, Any] = {}
    if why == "dropout":
        decoder.layers[0].drop = torch.nn.Dropout(0.1)
    elif why == "checkpointing":
        model.get_base_model().gradient_checkpointing_enable()
    elif why == "hidden states":
        more["output_hidden_states"] = True
    else:
        ids, mask = ids[:1], mask[:1]
    decoder(input_ids=ids, attention_mask=mask, **more)
    assert counts[0] == ids.numel()


def test_it_is_put_on_once(tmp_path: Path) -> None:
    model = _model(tmp_path)
    assert share_prefixes(model)
    assert share_prefixes(model)
    assert not isinstance(model.get_base_model().get_decoder().forward.plain, SharedForward)


def test_a_model_with_a_window_is_left_alone() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 16}
    config = MistralConfig(
        **sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=4, sliding_window=4
    )
    assert not share_prefixes(MistralForCausalLM(config))
