"""Page models of colpali-engine's families, small enough for tests, with random weights.

They are built from a small configuration without a hub, saved with their processor, and loaded from
that folder as any other. Equal images have equal vectors; beyond that their scores mean nothing.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

IMAGE_SIDE = 32  # of what the fixed-size families look at
PATCH = 8
TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    # A padding id in these small configurations makes the scores NaN.
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
    # The default spread of 0.02 leaves tokens nearly alike.
    "initializer_range": 0.3,
}
QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>")
QWEN_PADS = ("<|image_pad|>", "<|video_pad|>")
SMOL = ("<|im_start|>", "<|begin_of_text|>", "<end_of_utterance>", "<fake_token_around_image>")
TILES = ("<global-img>", *(f"<row_{i}_col_{j}>" for i in range(1, 7) for j in range(1, 7)))


def save_page_model(folder: Path, family: str, *, seed: int = 0) -> Path:
    """Save a model and its processor. family: a key of `FAMILIES`. seed: of the weights."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model, processor = FAMILIES[family]()
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def tokenizer_of(special: Sequence[str], pad: str, **named: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + len(special) + 40,
        special_tokens=list(special),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    raw.train_from_iterator(["budget of the city", "weather in the mountains"] * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token=pad, extra_special_tokens=list(special), **named
    )


def _colpali() -> tuple[Any, Any]:
    from colpali_engine.models import ColPali, ColPaliProcessor
    from transformers import PaliGemmaConfig, SiglipImageProcessor

    patches = (IMAGE_SIDE // PATCH) ** 2
    tokenizer = tokenizer_of(("<pad>", "<bos>", "<eos>", "<image>"), "<pad>", bos_token="<bos>")
    images = SiglipImageProcessor(size={"height": IMAGE_SIDE, "width": IMAGE_SIDE})
    images.image_seq_length = patches
    config = PaliGemmaConfig(
        text_config=TEXT
        | {"model_type": "gemma", "vocab_size": len(tokenizer) + 1200, "head_dim": 8},
        vision_config=_siglip() | {"model_type": "siglip_vision_model", "projection_dim": 32},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=32,
    )
    return ColPali(config), ColPaliProcessor(images, tokenizer)


def _siglip() -> dict[str, Any]:
    return {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": IMAGE_SIDE,
        "patch_size": PATCH,
    }


def qwen_vision(**more: Any) -> dict[str, Any]:
    return {
        "depth": 1,
        "num_heads": 2,
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "in_channels": 3,
        **more,
    }


def _qwen(model: str, processor: str, config: str, vision: dict[str, Any]) -> tuple[Any, Any]:
    import colpali_engine.models as engine
    import transformers

    tokenizer = tokenizer_of((*QWEN, *QWEN_PADS), "<|endoftext|>", eos_token="<|endoftext|>")
    token = tokenizer.convert_tokens_to_ids
    text = TEXT | {
        "vocab_size": len(tokenizer),
        "head_dim": 8,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1000.0,
            "mrope_section": [1, 1, 2],
        },
    }
    made = getattr(transformers, config)(
        text_config=text,
        vision_config=vision,
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )
    patches: dict[str, Any] = {"patch_size": PATCH, "temporal_patch_size": 2, "merge_size": 2}
    size = {"shortest_edge": (2 * PATCH) ** 2, "longest_edge": 64 * (2 * PATCH) ** 2}
    video = (
        transformers.Qwen3VLVideoProcessor
        if config == "Qwen3VLConfig"
        else transformers.Qwen2VLVideoProcessor
    )
    made_processor = getattr(engine, processor)(
        transformers.Qwen2VLImageProcessor(size=size, **patches), tokenizer, video(**patches)
    )
    return getattr(engine, model)(made), made_processor


def _colqwen2() -> tuple[Any, Any]:
    vision = qwen_vision(embed_dim=32, hidden_size=32, mlp_ratio=2)
    return _qwen("ColQwen2", "ColQwen2Processor", "Qwen2VLConfig", vision)


def _colqwen2_5() -> tuple[Any, Any]:
    vision = qwen_vision(
        hidden_size=32, intermediate_size=48, out_hidden_size=32, window_size=32
    ) | {"fullatt_block_indexes": [0]}
    return _qwen("ColQwen2_5", "ColQwen2_5_Processor", "Qwen2_5_VLConfig", vision)


def _colqwen3() -> tuple[Any, Any]:
    vision = qwen_vision(
        hidden_size=32,
        intermediate_size=48,
        out_hidden_size=32,
        num_position_embeddings=64,
        deepstack_visual_indexes=[0],
    )
    return _qwen("ColQwen3", "ColQwen3Processor", "Qwen3VLConfig", vision)


def _split_images(model: str, processor: str, config: str, text: dict[str, Any]) -> tuple[Any, Any]:
    import colpali_engine.models as engine
    import transformers

    tokenizer = tokenizer_of(("<pad>", *SMOL, "<image>", *TILES), "<pad>")
    images = transformers.Idefics3ImageProcessor(
        size={"longest_edge": 4 * IMAGE_SIDE}, max_image_size={"longest_edge": IMAGE_SIDE}
    )
    factor = {"Idefics3Config": "scale_factor", "ModernVBertConfig": "pixel_shuffle_factor"}
    made = getattr(transformers, config)(
        text_config=text | {"vocab_size": len(tokenizer)},
        vision_config=_siglip(),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        **{factor[config]: 2},
    )
    seen = (IMAGE_SIDE // PATCH) ** 2 // 4  # tokens a tile
    return getattr(engine, model)(made), getattr(engine, processor)(
        images, tokenizer, image_seq_len=seen
    )


def _colidefics3() -> tuple[Any, Any]:
    text = TEXT | {"model_type": "llama", "head_dim": 8}
    return _split_images("ColIdefics3", "ColIdefics3Processor", "Idefics3Config", text)


def _colmodernvbert() -> tuple[Any, Any]:
    named = {"cls_token_id": None, "sep_token_id": None, "model_type": "modernbert"}
    plain = {key: value for key, value in TEXT.items() if key != "num_key_value_heads"}
    text = plain | named
    return _split_images("ColModernVBert", "ColModernVBertProcessor", "ModernVBertConfig", text)


FAMILIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "ColPali": _colpali,
    "ColQwen2": _colqwen2,
    "ColQwen2_5": _colqwen2_5,
    "ColQwen3": _colqwen3,
    "ColIdefics3": _colidefics3,
    "ColModernVBert": _colmodernvbert,
}
