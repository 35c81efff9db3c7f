"""Which device and number format a run uses, decided from what the machine can compute in."""

from typing import Any


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


def _cpu_computes_bf16() -> bool:
    import torch

    # Both are private names; a torch without them is treated as a CPU without bfloat16.
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, probe, bool)()) for probe in probes)
