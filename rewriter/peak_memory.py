"""The most memory that this process has used."""

import resource
import sys
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """Begin anew where the system can (Linux); elsewhere `peak` is that of the whole process."""
    try:
        CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return  # no Linux, or one that does not let us


def peak() -> int:
    """Bytes of memory in use at most, since `forget_peak` or since the start of the process.

    On Linux this is not `resource.getrusage`: there a process inherits its parent's peak.
    """
    if STATUS.is_file():
        for line in STATUS.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "VmHWM":
                return int(value.removesuffix("kB")) * 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
