"""The reader: colpali-engine's ColQwen2 from a small config, its tokenizer and processor.

Nothing is pretrained. Three starting values are not those of transformers: the vision tower's
weights keep the size of what passes through (transformers' are made for wider models); its heads
look at patches a set step away; and a token's embedding is a sum of random vectors, one for each
character n-gram, so that words spelled alike begin alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from launch.page_reader.pages import PATCH

if TYPE_CHECKING:
    from colpali_engine.models import ColQwen2, ColQwen2Processor
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedTokenizerFast

SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|image_pad|>", "<|video_pad|>", "<|unknown|>"),
)
ALPHABET = list("abcdefghijklmnopqrstuvwxyz0123456789")
LOOK_AT = (0, -1, 1, -2, 2, -3, 3, -4, 4)  # columns away, one head each, in turn over the layers
SHARPNESS = 3.0  # of that look; 0 would be none


@dataclass(frozen=True)
class Size:
    """Of the model: numbers of tokens, layers, heads, and widths."""

    vocabulary: int = 4096
    vision_width: int = 192
    vision_layers: int = 3
    vision_heads: int = 6
    text_width: int = 128
    text_inner: int = 384
    text_layers: int = 1
    text_heads: int = 4
    max_patches: int = 1024


def build_tokenizer(texts: Iterable[str], size: Size) -> "PreTrainedTokenizerFast":
    """A BPE of lower-case letters and digits; all else separates words and leaves no token."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE(unk_token="<|unknown|>"))
    bpe.normalizer = normalizers.Lowercase()
    bpe.pre_tokenizer = pre_tokenizers.Split(Regex("[a-z0-9]+"), "removed", invert=True)
    trainer = trainers.BpeTrainer(
        vocab_size=size.vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=ALPHABET,
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        unk_token="<|unknown|>",
        extra_special_tokens=list(SPECIAL[1:-1]),
        padding_side="left",
    )


def build_processor(tokenizer: "PreTrainedTokenizerFast", size: Size) -> "ColQwen2Processor":
    from colpali_engine.models import ColQwen2Processor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

    patches: dict[str, Any] = {"patch_size": PATCH, "temporal_patch_size": 1, "merge_size": 1}
    images = Qwen2VLImageProcessor(
        size={"shortest_edge": PATCH**2, "longest_edge": size.max_patches * PATCH**2},
        image_mean=[1.0] * 3,  # white is 0, so that blank patches are silent
        image_std=[0.35] * 3,
        **patches,
    )
    return ColQwen2Processor(images, tokenizer, Qwen2VLVideoProcessor(**patches))


def build_model(tokenizer: "PreTrainedTokenizerFast", size: Size) -> "ColQwen2":
    """The model with its starting values. Seed torch before."""
    from colpali_engine.models import ColQwen2
    from transformers.models.qwen2_vl import Qwen2VLConfig

    token = tokenizer.convert_tokens_to_ids
    model = ColQwen2(
        Qwen2VLConfig(
            text_config=_text_config(size, len(tokenizer)),
            vision_config=_vision_config(size),
            image_token_id=token("<|image_pad|>"),
            video_token_id=token("<|video_pad|>"),
            vision_start_token_id=token("<|vision_start|>"),
            vision_end_token_id=token("<|vision_end|>"),
        )
    )
    _spell(model, tokenizer)
    _look_around(model)
    return model


def _text_config(size: Size, vocabulary: int) -> dict[str, Any]:
    quarter = size.text_width // size.text_heads // 8
    return {
        "vocab_size": vocabulary,
        "hidden_size": size.text_width,
        "intermediate_size": size.text_inner,
        "num_hidden_layers": size.text_layers,
        "num_attention_heads": size.text_heads,
        "num_key_value_heads": size.text_heads,
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1000.0,
            "mrope_section": [quarter, quarter, 2 * quarter],
        },
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,  # given one, scores of padded batches are NaN
    }


def _vision_config(size: Size) -> dict[str, Any]:
    return {
        "depth": size.vision_layers,
        "embed_dim": size.vision_width,
        "num_heads": size.vision_heads,
        "hidden_size": size.text_width,
        "patch_size": PATCH,
        "temporal_patch_size": 1,
        "spatial_merge_size": 1,
        "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0},
    }


def _look_around(model: "ColQwen2") -> None:
    """Weights that keep sizes; biases that make each head attend to patches a set step away.

    With rotary positions, a key bias (a, 0) and a query bias (a cos td, a sin td) in each pair of
    dimensions give a score of a² cos t(distance − d), largest at distance d.
    """
    import torch

    visual = model.visual
    for part in visual.modules():
        if isinstance(part, torch.nn.Linear):
            torch.nn.init.normal_(part.weight, std=part.in_features**-0.5)
    rates = visual.rotary_pos_emb.inv_freq
    places = iter(LOOK_AT * len(visual.blocks))
    for block in visual.blocks:
        attention = block.attn
        bias = torch.zeros(3, attention.num_heads, attention.head_dim)
        for head in range(attention.num_heads):
            angles = torch.cat([0 * rates, rates * next(places)])  # none up or down
            bias[0, head] = SHARPNESS * torch.cat([angles.cos(), angles.sin()])
            bias[1, head, : len(angles)] = SHARPNESS
        attention.qkv.bias.data.copy_(bias.flatten())


def _spell(model: "ColQwen2", tokenizer: "PreTrainedTokenizerFast") -> None:
    import torch

    table = model.language_model.embed_tokens.weight.data
    vectors: dict[str, torch.Tensor] = {}
    for token, index in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        if token not in SPECIAL:
            parts = [vectors.setdefault(g, torch.randn(table.shape[1])) for g in ngrams(token)]
            total = torch.stack(parts).sum(0)
            table[index] = total / total.square().mean().sqrt()
        else:
            table[index] = torch.randn(table.shape[1])
    torch.nn.init.orthogonal_(model.custom_text_proj.weight)


def quicken(model: "ColQwen2") -> None:
    """For training on a CPU: the same values, sooner.

    Patches are embedded by a matrix product, not by Conv3d (a quarter of the time); attention is in
    float32, whose backward pass takes a quarter of bfloat16's time there.
    """
    from torch.nn.functional import linear
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    embed = model.visual.patch_embed
    embed.forward = lambda x: linear(x, embed.proj.weight.flatten(1))
    ALL_ATTENTION_FUNCTIONS.register("page_reader", _attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("page_reader", ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    for part in (model.visual, model.language_model):
        part.config._attn_implementation = "page_reader"


def _attention(
    module: "Module", query: "Tensor", key: "Tensor", value: "Tensor", *args: Any, **kwargs: Any
) -> tuple["Tensor", None]:
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    with torch.autocast("cpu", enabled=False):
        full = (tensor.float() for tensor in (query, key, value))
        seen: Tensor = sdpa_attention_forward(module, *full, *args, **kwargs)[0]
    return seen, None


def ngrams(token: str) -> Sequence[str]:
    """One, two and three characters in a row, and the first and last two by their place."""
    runs = [token[i : i + n] for n in (1, 2, 3) for i in range(len(token) - n + 1)]
    return [*runs, f"^{token[:2]}", f"{token[-2:]}$", f"={token}"]
