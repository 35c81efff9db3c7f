"""Shared by all tests."""

import os

# Two processes with two spinning threads each are many times slower on two cores than with one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import retrievers  # noqa: F401 - puts the torchvision guard in place before transformers
