"""What the timing scripts share: interleaved rounds, the machine, and what it can do at most."""

from __future__ import annotations

import datetime
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from headatlas import __version__

__all__ = ["about", "ceiling", "interleaved", "median_ratio", "sustained_ceiling", "where_time_goes"]


def synchronise() -> None:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()


def interleaved(variants: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every variant in every round; the order rotates, so that a busy moment hits all alike."""
    for work in variants.values():
        work()
    found: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            synchronise()
            began = time.perf_counter()
            variants[name]()
            synchronise()
            found[name].append(time.perf_counter() - began)
    return found


def median_ratio(one: list[float], other: list[float]) -> tuple[float, float, float]:
    """Of the same rounds: lower quartile, median, upper quartile."""
    low, middle, high = statistics.quantiles([a / b for a, b in zip(one, other, strict=True)], n=4)
    return low, middle, high


def ceiling(dtype: torch.dtype = torch.bfloat16) -> float:
    """Operations per second of a large matrix product, the most that this machine gives."""
    size, device = (8192, "cuda") if torch.cuda.is_available() else (2048, "cpu")
    one = torch.randn(size, size, device=device).to(dtype)
    times = interleaved({"product": lambda: one @ one}, 9)["product"]
    return 2 * size**3 / statistics.median(times)


def sustained_ceiling(seconds: float = 0.5) -> float:
    """The same, for as long as that without a pause."""
    one = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    count = max(1, round(seconds * ceiling() / (2 * 8192**3)))

    def many() -> None:
        for _ in range(count):
            one @ one

    return count * 2 * 8192**3 / statistics.median(interleaved({"products": many}, 5)["products"])


#: what the time of a pass goes into, by the names of operations (CPU) and kernels (GPU)
KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "gemm", "nvjet", "cutlass"),
    "attention": ("flash", "fmha", "attention"),
    "loss": ("log_softmax", "nll", "softmax_online"),
}


def where_time_goes(work: Callable[[], Any]) -> dict[str, float]:
    """kind -> seconds of one call; on a GPU those that it was busy."""
    gpu = torch.cuda.is_available()
    activity = torch.profiler.ProfilerActivity.CUDA if gpu else torch.profiler.ProfilerActivity.CPU
    synchronise()
    with torch.profiler.profile(activities=[activity]) as seen:
        work()
        synchronise()
    found = dict.fromkeys([*KINDS, "all else"], 0.0)
    for one in seen.key_averages():
        seconds = (one.self_device_time_total if gpu else one.self_cpu_time_total) / 1e6
        names = one.key.lower()
        kind = next(
            (kind for kind, marks in KINDS.items() if any(mark in names for mark in marks)), "all else"
        )
        found[kind] += seconds
    return found


def about() -> dict[str, str]:
    return {
        "date": datetime.date.today().isoformat(),
        "headatlas": __version__,
        "torch": torch.__version__,
        "machine": _machine(),
    }


def _machine() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":")[1].strip()
            for line in info.read_text(encoding="utf-8").splitlines()
            if "model name" in line
        ]
        cpu = names[0] if names else cpu
    return f"{cpu}, {torch.get_num_threads()} threads"
