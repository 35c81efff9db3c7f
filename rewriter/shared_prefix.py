"""Reads what the rows of a batch begin with alike once, instead of once a row.

GRPO samples several completions of each prompt, so that a batch holds the same prompt many times
over, and a prompt is several times longer than a rewrite. A causal model's states of a prefix do
not depend on what follows: the distinct prefixes go through the model, their keys and values are
handed to every row, and only the rest is computed row by row. Values and gradients are those of the
plain forward pass up to rounding; the demo's step takes about a third of the time.

Prefixes are found by comparing tokens, so sampling, scoring and evaluation all gain, whoever calls
the model.
"""

import inspect
from typing import Any

from rewriter.prefixes import beginnings_first, split


def share_prefixes(model: Any) -> bool:
    """Have a causal language model read shared prefixes once, from now on.

    Args:
        model: a transformers model, with or without a peft adapter.

    Returns:
        Whether it can be had: the model's decoder must take a key/value cache and attend to all
        that came before (no sliding window, no recurrent state).
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    decoder = base.get_decoder()
    if decoder is None or decoder is base:
        return False
    if isinstance(decoder.forward, SharedForward):
        return True
    cache = _cache_argument(decoder)
    if cache is None or not _attends_to_all(decoder.config):
        return False
    decoder.forward = SharedForward(decoder, decoder.forward, cache)
    return True


class SharedForward:
    """A decoder's `forward` that splits a batch where its rows part ways.

    Args:
        decoder: the model without its head.
        plain: its own `forward`.
        cache_argument: what `forward` calls the cache.
    """

    def __init__(self, decoder: Any, plain: Any, cache_argument: str) -> None:
        self.decoder = decoder
        self.plain = plain
        self.cache_argument = cache_argument
        self.relative = _sees_distances_only(decoder)

    def __call__(self, input_ids: Any = None, attention_mask: Any = None, **more: Any) -> Any:
        """As the decoder's own; (B, T) token ids and mask, last hidden state (B, T, H)."""
        if not self._applies(input_ids, attention_mask, more):
            return self.plain(input_ids=input_ids, attention_mask=attention_mask, **more)
        ids, mask = input_ids, attention_mask
        keep = more.get(self.cache_argument) is not None or bool(more.get("use_cache"))
        positions: Any = more.get("position_ids")
        if positions is None and mask is not None and self.relative and not keep:
            positions = (mask.cumsum(1) - 1).clamp(min=0)  # as if no padding stood there
        order = beginnings_first(ids, mask, positions)
        if order is not None:
            ids, mask = ids.gather(1, order), mask.gather(1, order)
        if not split(ids, mask)[0]:
            return self.plain(input_ids=input_ids, attention_mask=attention_mask, **more)
        cache = more.pop(self.cache_argument, None)
        for name in ("use_cache", "position_ids"):
            more.pop(name, None)
        if cache is None:
            from transformers import DynamicCache

            cache = DynamicCache(config=self.decoder.config)
        if order is not None:
            positions = positions.expand(ids.shape).gather(1, order)
        outputs = self._run(ids, mask, positions, cache, more)
        if order is not None:
            _put_back(outputs, cache, order.argsort(1))
        if not keep:
            outputs[self.cache_argument] = None
        return outputs

    def _run(self, ids: Any, mask: Any, positions: Any, cache: Any, more: dict[str, Any]) -> Any:
        """The distinct prefixes first, and these in turn in the same way; then the rest."""
        import torch

        cut, first, group = split(ids, mask)
        if not cut:
            return self._plain(ids, mask, positions, cache, more)
        head = self._run(
            ids[first, :cut],
            None if mask is None else mask[first, :cut],
            None if positions is None else _rows(positions, first)[:, :cut],
            cache,
            more,
        )
        cache.batch_select_indices(group)
        hidden = head.last_hidden_state[group]
        if cut < ids.shape[1]:
            rest = None if positions is None else positions[:, cut:]
            head = self._plain(ids[:, cut:], mask, rest, cache, more)
            hidden = torch.cat([hidden, head.last_hidden_state], dim=1)
        head.last_hidden_state = hidden
        return head

    def _plain(self, ids: Any, mask: Any, positions: Any, cache: Any, more: dict[str, Any]) -> Any:
        given = {self.cache_argument: cache, "position_ids": positions, "use_cache": True}
        return self.plain(input_ids=ids, attention_mask=mask, **given, **more)

    def _applies(self, ids: Any, mask: Any, more: dict[str, Any]) -> bool:
        """Whether all that is given can be split by rows and columns, as far as it is known."""
        import torch
        from transformers import DynamicCache

        others = dict(more)
        cache = others.pop(self.cache_argument, None)
        positions = others.pop("position_ids", None)
        return (
            ids is not None
            and ids.shape[0] > 1
            and (mask is None or mask.dim() == 2)
            and (positions is None or positions.dim() == 2)
            and (cache is None or (type(cache) is DynamicCache and not cache.get_seq_length()))
            and others.get("return_dict", True) is not False
            and not any(isinstance(value, torch.Tensor) for value in others.values())
            and not any(others.get(f"output_{what}") for what in ("hidden_states", "attentions"))
            and not (self.decoder.training and self._recomputes_or_drops())
        )

    def _recomputes_or_drops(self) -> bool:
        """Gradient checkpointing knows no cache; dropout would fall alike on rows that share."""
        import torch

        if any(
            getattr(module, "gradient_checkpointing", False) for module in self.decoder.modules()
        ):
            return True
        return any(
            isinstance(module, torch.nn.Dropout) and module.p > 0
            for module in self.decoder.modules()
        )


def _put_back(outputs: Any, cache: Any, places: Any) -> None:
    """States, keys and values at the columns where the caller has their tokens. places: (B, T)."""
    states = outputs.last_hidden_state
    outputs.last_hidden_state = states.gather(1, places[:, :, None].expand_as(states))
    for layer in cache.layers:
        index = places[:, None, :, None].expand_as(layer.keys)
        layer.keys = layer.keys.gather(2, index)
        layer.values = layer.values.gather(2, places[:, None, :, None].expand_as(layer.values))


def _rows(positions: Any, rows: Any) -> Any:
    """The positions of some rows; one row of positions may stand for all."""
    return positions[rows] if positions.shape[0] > 1 else positions


def _cache_argument(decoder: Any) -> str | None:
    """What this release of transformers calls the cache."""
    names = inspect.signature(decoder.forward).parameters
    return next((name for name in ("cache", "past_key_values") if name in names), None)


def _sees_distances_only(decoder: Any) -> bool:
    """Whether it is the same where a row begins: rotations that no length of the batch changes."""
    rotation = getattr(getattr(decoder, "rotary_emb", None), "rope_type", None)
    return rotation in ("default", "linear", "llama3", "yarn")


def _attends_to_all(config: Any) -> bool:
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    layers = DynamicCache(config=config).layers
    return all(type(layer) is DynamicLayer for layer in layers)
