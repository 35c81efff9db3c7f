"""A vision model with random weights that answers conversations about images."""

from pathlib import Path
from typing import Any

from tests.tiny_pages import PATCH, QWEN, QWEN_PADS, TEXT, qwen_vision, tokenizer_of

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }} {% for part in m.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant {% endif %}"
)


def save_vision_model(folder: Path, template: str | None = TEMPLATE) -> Path:
    """Save a model of the kind of Qwen2-VL and its processor. template: of the chat."""
    import torch
    import transformers

    tokenizer = tokenizer_of((*QWEN, *QWEN_PADS), "<|endoftext|>", eos_token="<|im_end|>")
    token = tokenizer.convert_tokens_to_ids
    rope = {"rope_type": "default", "rope_theta": 1000.0, "mrope_section": [1, 1, 2]}
    config = transformers.Qwen2VLConfig(
        text_config=TEXT | {"vocab_size": len(tokenizer), "head_dim": 8, "rope_parameters": rope},
        vision_config=qwen_vision(embed_dim=32, hidden_size=32, mlp_ratio=2),
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )
    patches: dict[str, Any] = {"patch_size": PATCH, "temporal_patch_size": 2, "merge_size": 2}
    size = {"shortest_edge": (2 * PATCH) ** 2, "longest_edge": 64 * (2 * PATCH) ** 2}
    processor = transformers.Qwen2VLProcessor(
        transformers.Qwen2VLImageProcessor(size=size, **patches),
        tokenizer,
        transformers.Qwen2VLVideoProcessor(**patches),
        chat_template=template,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.Qwen2VLForConditionalGeneration(config)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
