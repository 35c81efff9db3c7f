"""Figures, each measured by `python -m tests.benchmarks.NAME [--small]`."""

import os

# One thread unless the caller says otherwise, or figures would depend on the number of cores and
# on what else is running. This file is read before a benchmark imports numpy or torch.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
