"""A limit on how many calls begin a minute."""

import time
from threading import Lock


class Pace:
    """Lets callers through at even intervals; threads may share one.

    Args:
        per_minute: calls at most; None: no limit.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._interval = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = Lock()

    def wait(self) -> None:
        """Return when the next call may begin."""
        if not self._interval:
            return
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._interval
        time.sleep(turn - now)
