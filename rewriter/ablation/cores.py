"""Whether the workers of one machine compute on the same cores.

Each takes all cores that it may use. Where two do so, the threads of one spin while they wait for a
core that the other one has, and both are many times slower than one after the other.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any


def computed_on(threads: int | None) -> dict[str, Any]:
    """The cores that this process and what it starts may use, and on how many they compute.

    threads: `threads` of the configuration; None: on all of them.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))
    else:
        cores = list(range(os.cpu_count() or 1))
    return {"cores": cores, "threads": threads or len(cores)}


def crowded(own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str | None:
    """What to do where there are more threads than cores for them; None where there are not.

    Args:
        own: of `computed_on`.
        others: the same of other processes of this machine.
    """
    sharing = [one for one in others if not set(own["cores"]).isdisjoint(one["cores"])]
    cores = set(own["cores"]).union(*(one["cores"] for one in sharing))
    threads = own["threads"] + sum(one["threads"] for one in sharing)
    if not sharing or threads <= len(cores):
        return None
    return (
        f"{len(sharing) + 1} workers compute on the same {len(cores)} cores of this machine with "
        f"{threads} threads, and slow each other down many times over; give each cores of its own "
        f"(taskset -c {min(cores)} rlqr ablate …), or fewer threads "
        f"(--threads {max(1, len(cores) // (len(sharing) + 1))})"
    )
