"""A process that may open few files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def few_open_files(more: int) -> Iterator[None]:
    """Let no more than `more` files be opened beside those that are open now."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(int(name) for name in os.listdir("/dev/fd")) + 1 + more
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):  # there are free numbers below the highest one
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(more):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for handle in taken:
            os.close(handle)
