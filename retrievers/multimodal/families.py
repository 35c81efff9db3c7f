"""The families of colpali-engine: which class a model is, and how its image tokens are capped.

A model's own configuration decides: the class that it was saved as, else the kind of model it is
made of. A new family is one line in `FAMILIES`.
"""

from collections.abc import Callable, Mapping
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from retrievers.models import ModelError

if TYPE_CHECKING:
    from PIL.Image import Image


class Family(NamedTuple):
    """A family.

    Attributes:
        processor: name of its processor's class.
        kind: `model_type` in its configuration.
        cap: limits a processor, its first argument, to so many image tokens a page, its second.
        shorten: an image, its third argument, of which that processor makes more all the same, for
            it to keep to that number; None: there is none.
        token_types: whether queries need token types of 0, which its processor leaves out:
            transformers then has each token of PaliGemma attend to all others, as it was trained;
            without, only if no query of the batch is padded.
    """

    processor: str
    kind: str
    cap: Callable[[Any, int], None]
    token_types: bool = False
    shorten: "Callable[[Any, int, Image], Image] | None" = None


def _by_area(processor: Any, tokens: int) -> None:
    """Images are scaled to an area; a token is a square of merged patches.

    The sides of a large image are rounded down to whole tokens, those of a small one up, so that
    it is enlarged to less than half the cap. A strip longer than the cap times its width becomes a
    row of more tokens all the same; for it there is `_as_row`.
    """
    images = processor.image_processor
    side = images.patch_size * images.merge_size
    largest = tokens * side * side
    size = dict(images.size)
    size["longest_edge"] = min(size["longest_edge"], largest)
    enlarged = int(max(0.5, tokens // 2) * side * side) - 1
    size["shortest_edge"] = min(size["shortest_edge"], enlarged)
    images.size = type(images.size)(**size)


def _as_row(processor: Any, tokens: int, image: "Image") -> "Image":
    """A strip longer than so many times its width as a row of so many tokens; others as they are.

    Such a row is what the processor makes of it too, but a longer one.
    """
    images = processor.image_processor
    side = images.patch_size * images.merge_size
    width, height = image.size
    if max(width, height) <= tokens * min(width, height):
        return image
    return image.resize((tokens * side, side) if width > height else (side, tokens * side))


def _by_tiles(processor: Any, tokens: int) -> None:
    """Images are scaled to n tiles along their longest side, and seen once more as a whole."""
    images = processor.image_processor
    each, tile = processor.image_seq_len, images.max_image_size["longest_edge"]
    if tokens < each:
        raise ModelError(
            f"max_image_tokens is {tokens}, and this model spends at least {each} on a page"
        )
    # One tile is the page as a whole alone; n along one side are up to n x n, and the whole page.
    side = max(1, isqrt(tokens // each - 1))
    size = dict(images.size)
    size["longest_edge"] = min(size["longest_edge"], side * tile)
    images.size = type(images.size)(**size)


def _fixed(processor: Any, tokens: int) -> None:
    """All images are scaled to one size."""
    spent = processor.image_seq_length
    if tokens < spent:
        raise ModelError(
            f"max_image_tokens is {tokens}, and this model spends {spent} on every page; leave it "
            "out or choose another model"
        )


FAMILIES: dict[str, Family] = {
    "ColPali": Family("ColPaliProcessor", "paligemma", _fixed, token_types=True),
    "ColQwen2": Family("ColQwen2Processor", "qwen2_vl", _by_area, shorten=_as_row),
    "ColQwen2_5": Family("ColQwen2_5_Processor", "qwen2_5_vl", _by_area, shorten=_as_row),
    "ColQwen3": Family("ColQwen3Processor", "qwen3_vl", _by_area, shorten=_as_row),
    "ColIdefics3": Family("ColIdefics3Processor", "idefics3", _by_tiles),
    "ColModernVBert": Family("ColModernVBertProcessor", "modernvbert", _by_tiles),
}


def family_name(config: Mapping[str, Any], model: str) -> str:
    """The key of `FAMILIES` that a model's configuration names. model: for the message.

    Raises:
        ModelError: it is none of them; the message lists them.
    """
    saved_as = config.get("architectures") or []
    for name in saved_as:
        if name in FAMILIES:
            return str(name)
    kind = config.get("model_type")
    for name, family in FAMILIES.items():
        if family.kind == kind:
            return name
    known = ", ".join(f"{name} ({family.kind})" for name, family in FAMILIES.items())
    raise ModelError(
        f"model {model!r} is {', '.join(saved_as) or 'of no named class'}, model_type {kind!r}; "
        f"page models are the classes of colpali-engine: {known}"
    )
