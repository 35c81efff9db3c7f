"""What the projection to the vocabulary costs on a CPU, brought down without changing a value.

TRL's fused LM head projects to the vocabulary only those positions whose label counts, but only
where Triton runs: elsewhere every position of the prompt is projected too, and thrown away, because
a changing number of rows would make a graph compiler recompile. Nothing is compiled on a CPU, and
prompts are several times longer than rewrites: a third of a step went into that.

The choice hangs on one function in `trl.trainer.utils`. A TRL without it is left as it is.

`generate` projects the last place of each prompt, a slice that is not contiguous, and for bf16
weights torch 2.13 then takes a path some two hundred times slower (1.6 s instead of 7 ms for 16
rows and 49,152 tokens): as long as the rest of a batch's prefill.
"""

import logging
from typing import Any

logger = logging.getLogger(__name__)


def score_completions_only() -> bool:
    """Have TRL's fused LM head leave out the prompt's positions; the values stay the same.

    Returns:
        Whether TRL could be told.
    """
    from trl.trainer import utils

    if not hasattr(utils, "_use_triton"):
        logger.info("this TRL scores prompts too on a CPU: steps take longer, results are equal")
        return False
    # In that module the name is asked for nothing but which positions to score; the kernels look
    # theirs up elsewhere.
    utils._use_triton = lambda device: True
    return True


def project_contiguous(model: Any) -> None:
    """Hand the projection to the vocabulary contiguous states; on a GPU this changes nothing.

    Args:
        model: a causal language model, with or without an adapter.
    """
    head = model.get_output_embeddings()
    head.register_forward_pre_hook(_contiguous)


def _contiguous(_: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
    return (states[0].contiguous(), *states[1:])
