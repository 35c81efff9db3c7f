"""What is passed over is counted by reason, and the first ones of each are named."""

import logging
from collections import Counter

logger = logging.getLogger(__name__)

NAMED = 3  # of a reason


def leave_out(left_out: Counter[str], reason: str, error: object) -> None:
    """Count one. error: says which it is, and what is wrong with it."""
    left_out[reason] += 1
    if left_out[reason] <= NAMED:
        more = "; others are counted only" if left_out[reason] == NAMED else ""
        logger.warning("left out, %s: %s%s", reason, error, more)
