"""Asking the vendor's small tools: versions, and which GPU there is."""

import functools
import re
import shutil
from collections.abc import Sequence

from eprof.collect.machine import has_nvidia_device

NO_GPU = "this machine has no NVIDIA GPU"
GIVE_GPU = "on a cluster run it in a job with a GPU, start a container with --gpus all, or use --profiler oclgrind"
_PATIENCE_S = 60.0


def ask(command: Sequence[str]) -> str:
    """What a tool prints when asked for something short; "" if it cannot be asked."""
    import subprocess

    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU, by its device files or by what nvidia-smi says."""
    return has_nvidia_device() or gpu()[0] is not None


@functools.cache
def gpu() -> tuple[str | None, str | None]:
    """Name and compute capability of the first GPU, as nvidia-smi tells; None where it does not."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None, None
    parts = [
        part.strip() for part in _first_line([smi, "--query-gpu=name,compute_cap", "--format=csv,noheader"]).split(",")
    ]
    if len(parts) == 2 and re.fullmatch(r"\d+\.\d+", parts[1]):
        return parts[0], parts[1]
    # Drivers before 2021 do not know `compute_cap`.
    name = _first_line([smi, "--query-gpu=name", "--format=csv,noheader"])
    return (None, None) if not name or "failed" in name or "No devices" in name or "rror" in name else (name, None)


@functools.cache
def clocks() -> tuple[float, float, float, float] | None:
    """Core and memory clock now, and the highest of both, MHz, of the first GPU; None where nvidia-smi tells none."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    asked = "--query-gpu=clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    try:
        core, memory, most, most_memory = map(
            float, _first_line([smi, asked, "--format=csv,noheader,nounits"]).split(",")
        )
    except ValueError:
        return None
    return core, memory, most, most_memory


def _first_line(command: Sequence[str]) -> str:
    return next(iter(ask(command).strip().splitlines()), "").strip()
