"""The number format follows the device."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rewriter import device


@pytest.mark.parametrize(
    ("use_cpu", "cpu_fast", "gpu_fast", "wanted"),
    [
        (True, True, False, torch.bfloat16),
        (True, False, True, torch.float32),
        (False, False, True, torch.bfloat16),
        (False, True, False, torch.float32),  # a GPU before Ampere
    ],
)
def test_auto_is_bf16_where_the_device_computes_in_it(
    monkeypatch: pytest.MonkeyPatch,
    use_cpu: bool,
    cpu_fast: bool,
    gpu_fast: bool,
    wanted: torch.dtype,
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: cpu_fast, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False, raising=False)
    # Emulated bfloat16 does not count.
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: gpu_fast)
    assert device.dtype_for("auto", use_cpu) == wanted


def test_a_torch_without_the_probes_is_a_cpu_without_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    for probe in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, probe, raising=False)
    assert device.dtype_for("auto", True) == torch.float32


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_a_named_format_is_taken(name: str) -> None:
    assert device.dtype_for(name, True) == getattr(torch, name)


@pytest.mark.parametrize(("asked", "there", "cpu"), [(1, 1, True), (0, 1, False), (0, 0, True)])
def test_the_cpu_is_used_on_request_and_for_want_of_another(
    monkeypatch: pytest.MonkeyPatch, asked: int, there: int, cpu: bool
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: bool(there))
    assert device.on_cpu(bool(asked)) == cpu


@pytest.mark.parametrize(
    ("asked", "ranks", "threads"), [(None, "1", 4), (None, "2", 2), (None, "8", 1), (3, "2", 3)]
)
def test_threads_are_a_share_of_the_cores(
    monkeypatch: pytest.MonkeyPatch, asked: int | None, ranks: str, threads: int
) -> None:
    import torch

    from rewriter.training import _set_threads

    chosen: list[int] = []
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    config: Any = SimpleNamespace(threads=asked)
    _set_threads(config)
    assert chosen == [threads]


@pytest.mark.slow
def test_kernels_of_other_shapes_do_not_pile_up() -> None:
    """Each length of a batch has kernels of its own; by default 2 × 1,024 of them are kept."""
    program = """
import torch
from rewriter.device import limit_kernel_caches
from rewriter.peak_memory import peak
{limit}
layer = torch.nn.Linear(1536, 576, bias=False, dtype=torch.bfloat16)
before = peak()
for rows in range(300, 500):
    layer(torch.zeros(rows, 1536, dtype=torch.bfloat16, requires_grad=True)).sum().backward()
print((peak() - before) / 2**20)
"""
    amx = getattr(torch.cpu, "_is_amx_tile_supported", bool)
    if not torch.backends.mkldnn.is_available() or not amx():
        pytest.skip("another library multiplies here, or small kernels do")
    grown = {}
    for limit in ("", "limit_kernel_caches()"):
        command = [sys.executable, "-c", program.format(limit=limit)]
        clean = {key: value for key, value in os.environ.items() if not key.endswith("CAPACITY")}
        told = subprocess.run(command, capture_output=True, text=True, check=True, env=clean)
        grown[limit] = float(told.stdout)
    assert grown["limit_kernel_caches()"] < grown[""] / 2, grown


def test_the_environment_may_name_how_many_kernels_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")  # so that it is put back
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    device.limit_kernel_caches()
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == str(device.KERNELS)
