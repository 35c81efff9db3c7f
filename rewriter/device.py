"""Which device and number format a run uses, decided from what the machine can compute in."""

import os
from typing import Any

KERNELS = 64  # kept at most, of oneDNN's and of torch's


def dtype_for(name: str, use_cpu: bool) -> Any:
    """The torch dtype of frozen weights.

    Args:
        name: "auto", "float32", "bfloat16" or "float16".
        use_cpu: whether the model runs on the CPU.

    Returns:
        A `torch.dtype`. "auto" is bfloat16 where the device multiplies in it natively (GPUs from
        Ampere on, CPUs with AVX512-BF16 or AMX), else float32: emulated bfloat16 is slower than
        float32, and float16 overflows in training.
    """
    import torch

    if name != "auto":
        return getattr(torch, name)
    fast = _cpu_computes_bf16() if use_cpu else torch.cuda.is_bf16_supported(False)
    return torch.bfloat16 if fast else torch.float32


def on_cpu(asked: bool) -> bool:
    """Whether a model runs on the CPU: it was asked for, or there is no accelerator."""
    import torch

    return asked or not torch.accelerator.is_available()


def limit_kernel_caches() -> None:
    """Keep few of the kernels that a CPU compiles for each shape of a product.

    The batches of a training have ever other lengths, so that a kernel seldom comes back: the 1,024
    that oneDNN and torch each keep by default save no time and grow to about 1 GiB. Where the
    environment names a number, that one holds. Counts for a process that has not multiplied
    anything yet.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(KERNELS))


def _cpu_computes_bf16() -> bool:
    import torch

    # Both are private names; a torch without them is treated as a CPU without bfloat16.
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, probe, bool)()) for probe in probes)
