"""Scores only the completion on a CPU, as TRL does on a GPU.

TRL's fused LM head projects to the vocabulary only those positions whose label counts, but only
where Triton runs: elsewhere every position of the prompt is projected too, and thrown away, because
a changing number of rows would make a graph compiler recompile. Nothing is compiled on a CPU, and
prompts are several times longer than rewrites: a third of a step went into that.

The choice hangs on one function in `trl.trainer.utils`. A TRL without it is left as it is.
"""

import logging

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
