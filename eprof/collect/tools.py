"""Asking the vendor's small tools: versions, and which GPU there is."""

import functools
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eprof.collect.machine import has_nvidia_device

NO_GPU = "this machine has no NVIDIA GPU"
GIVE_GPU = "on a cluster run it in a job with a GPU, start a container with --gpus all, or use --profiler oclgrind"
_PATIENCE_S = 60.0


class Compiled(NamedTuple):
    """A compiled source: the file to load, and with what it was made."""

    image: Path
    how: str


def executable(names: Sequence[str], places: Sequence[str]) -> str | None:
    """The path of a tool by one of its names, in PATH or in the folders where it usually is."""
    usual = os.pathsep.join(places)
    for name in names:
        path = shutil.which(name) or shutil.which(name, path=usual)
        if path is not None:
            return path
    return None


def ask(command: Sequence[str]) -> str:
    """What a vendor's tool prints on a short command; "" if it cannot run."""
    import subprocess

    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def revision() -> str | None:
    """The git commit of the working directory, with "-dirty" where files differ from it; None where there is none."""
    here = Path.cwd()
    if not any((folder / ".git").exists() for folder in (here, *here.parents)):
        return None
    line = _first_line(["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"])
    return line if re.fullmatch(r"[0-9a-f]{40,64}(-dirty)?", line) else None


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU, by its device files or by what nvidia-smi says."""
    return has_nvidia_device() or gpu()[0] is not None


@functools.cache
def gpu() -> tuple[str | None, str | None]:
    """Name and compute capability of the first GPU, as the tool nvidia-smi says; None where it gives none."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None, None
    line = _first_line([smi, "--query-gpu=name,compute_cap", "--format=csv,noheader"])
    both = re.fullmatch(r"([^,]*?) *, *(\d+\.\d+)", line)
    if both is not None:
        return both[1], both[2]
    # Drivers before 2021 do not know `compute_cap`.
    name = _first_line([smi, "--query-gpu=name", "--format=csv,noheader"])
    if not name or re.search("failed|No devices|rror", name):
        return None, None
    return name, None


@functools.cache
def clocks() -> tuple[float, float, float, float] | None:
    """Core and memory clock now, and the highest of both, MHz, as the tool nvidia-smi says; None if it gives none."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    query = "--query-gpu=clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    line = _first_line([smi, query, "--format=csv,noheader,nounits"])
    try:
        core, memory, most, most_memory = map(float, line.split(","))
    except ValueError:
        return None
    return core, memory, most, most_memory


def _first_line(command: Sequence[str]) -> str:
    return next(iter(ask(command).strip().splitlines()), "").strip()
