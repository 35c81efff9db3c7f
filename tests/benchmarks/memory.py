"""Memory of this process, as Linux counts it.

`resource.getrusage` will not do: what a process's parent had used at its start counts there too.
"""

from pathlib import Path
from typing import Literal

GIB = 2**30
FIELDS = {"now": "VmRSS", "peak": "VmHWM", "own": "RssAnon"}


def resident(what: Literal["now", "peak", "own"] = "now") -> int:
    """Bytes in memory: now, at most so far, or now without pages of mapped files."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values[FIELDS[what]].removesuffix("kB")) * 1024
