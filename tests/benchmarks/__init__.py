"""Figures, each measured by `python -m tests.benchmarks.NAME [--small]`."""

import os

# One thread unless the caller sets OMP_NUM_THREADS, or figures would depend on the number of cores
# and on what else is running. MKL's own number would win over it inside torch, so they are kept
# equal. This file is read before a benchmark imports numpy or torch.
_threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, _threads)
