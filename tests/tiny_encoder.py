"""A sentence-transformers model small enough for tests: a BERT of two layers with random weights.

It knows the words `w0` … `w199` and a few more. Texts of the same words in the same order have the
same vector; beyond that its similarities mean nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

WORDS = [f"w{number}" for number in range(200)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY = [*SPECIAL, "query", "passage", "title", ":", *WORDS]
TOKENS = 32  # that it reads, [CLS] and [SEP] included
DIMENSION = 16


def save_encoder(
    folder: Path,
    *,
    seed: int = 0,
    prompts: Mapping[str, str] | None = None,
    similarity: str | None = None,
    poison: str | None = None,
    size: float = 1.0,
) -> Path:
    """Save the model.

    Args:
        folder: where.
        seed: of the weights.
        prompts: by name, as the model declares them.
        similarity: that the model declares.
        poison: a word that makes every vector of a text with it NaN.
        size: factor of all vectors.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    _save_transformer(folder / "bert", seed, poison, size)
    transformer = Transformer(str(folder / "bert"), max_seq_length=TOKENS)
    pooling = Pooling(DIMENSION, pooling_mode="mean")
    model = SentenceTransformer(
        modules=[transformer, pooling],
        prompts=dict(prompts or {}),
        similarity_fn_name=similarity,  # type: ignore[arg-type]
        device="cpu",
    )
    with torch.no_grad():
        model.save_pretrained(str(folder), create_model_card=False)
    return folder


def _save_transformer(folder: Path, seed: int, poison: str | None, size: float) -> None:
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    model: Any = BertModel(
        BertConfig(
            vocab_size=len(VOCABULARY),
            hidden_size=DIMENSION,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=TOKENS,
            initializer_range=0.5,
        ),
        add_pooling_layer=False,
    )
    with torch.no_grad():
        last = model.encoder.layer[-1].output.LayerNorm
        last.weight.mul_(size)
        if poison is not None:
            model.embeddings.word_embeddings.weight[VOCABULARY.index(poison)] = float("nan")
    model.save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {token: number for number, token in enumerate(VOCABULARY)}
    raw = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, numbers[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=TOKENS,
    )
