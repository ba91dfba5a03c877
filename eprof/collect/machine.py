"""Asking this machine: its GPU, driver and processor, tools and their answers (`answer`), compilers, git's revision."""

import errno
import functools
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError

# ----------------------------------------------------------------------------------------------------------------------
# What this machine has, found by looking at files alone.

ROOT = Path("/")
_CONTROL = "dev/nvidiactl"
_BOARDS = (_CONTROL, "dev/nvidia0")
_OTHERS = ("dev/nvhost-gpu", "dev/nvgpu", "dev/dxg")
_PARAMETERS = "proc/driver/nvidia/params"
_VERSION = "proc/driver/nvidia/version"
_CUDA_LIBRARIES = ("libcuda.so.1", "libcuda.so")
CORES = "sys/devices/system/cpu"


def has_nvidia_device(root: Path = ROOT) -> bool:
    """Whether there is a device file of an NVIDIA GPU, of a Jetson, or of Windows' GPU behind WSL."""
    if any((root / name).exists() for name in _OTHERS):
        return True
    if not any((root / name).exists() for name in _BOARDS):
        return False
    # NVIDIA's libraries make the file for root, whether a driver stands behind it or not.
    try:
        os.close(os.open(root / _CONTROL, os.O_RDWR | os.O_NONBLOCK))
    except OSError as err:
        return err.errno not in (errno.ENXIO, errno.ENODEV)
    return True


def text_of(path: Path) -> str:
    """The text of a small file of the machine, as in /proc and /sys; "" where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def driver_version(root: Path = ROOT) -> str | None:
    """The NVIDIA kernel driver's version line; None where none is loaded (or on a Jetson, which has no such file)."""
    lines = text_of(root / _VERSION).splitlines()
    return next((line.removeprefix("NVRM version:").strip() for line in lines), None)


def counters_restricted(root: Path = ROOT) -> bool | None:
    """Whether only administrators may read GPU counters; None where the driver does not say."""
    for line in text_of(root / _PARAMETERS).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "RmProfilingAdminOnly":
            return value.strip() != "0"
    return None


def processor_name(root: Path = ROOT) -> str:
    """The processor's name in /proc/cpuinfo, or else the machine's architecture."""
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", text_of(root / "proc/cpuinfo"), re.MULTILINE)
    return " ".join(found[1].split()) if found else platform.machine()


def bytes_of(text: str) -> int:
    """The bytes of a cache's size as Linux writes it: "32K" -> 32768; 0 where it is no size."""
    size = re.match(r"(\d+)([KMG]?)", text)
    return int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]] if size else 0


def cuda_driver() -> Any:
    """The library of the CUDA driver, loaded by ctypes and not initialised. Raises CollectError: there is none."""
    import ctypes

    for library in _CUDA_LIBRARIES:
        with suppress(OSError):
            return ctypes.CDLL(library)
    raise CollectError("The CUDA driver (libcuda.so.1) is not installed here; it comes with NVIDIA's driver.")


NO_GPU = "this machine has no NVIDIA GPU"
GIVE_GPU = "on a cluster run it in a job with a GPU, start a container with --gpus all, or use --profiler oclgrind"
_PATIENCE_S = 60.0
LONGEST_QUOTE = 300  # characters of what a compiler or a program says


def executable(names: Sequence[str], places: Sequence[str]) -> str | None:
    """The path of a tool by the first of `names` that is in PATH or in the folders `places`; None: not found."""
    usual = os.pathsep.join(places)
    for name in names:
        path = shutil.which(name) or shutil.which(name, path=usual)
        if path is not None:
            return path
    return None


class Answer(NamedTuple):
    """Exit code, output and errors of a command; code None: it cannot run, and `errors` says why."""

    code: int | None
    output: str
    errors: str


def answer(
    command: Sequence[str], environment: Mapping[str, str] | None = None, patience_s: float = _PATIENCE_S
) -> Answer:
    """Run a short command to its end, with no input, for `patience_s` s at most; returns its exit code and output."""
    import subprocess

    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience_s,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError) as err:
        return Answer(None, "", str(err))
    return Answer(done.returncode, done.stdout, done.stderr)


def ask(command: Sequence[str]) -> str:
    """Run a short command; returns its output and errors as one text, "" if it cannot run."""
    said = answer(command)
    return "" if said.code is None else said.output + said.errors


def compiled(compiler: str, source: Path, target: Path, *options: str) -> Path:
    """Compile the C file `source` to `target`, which is returned. Raises CollectError with what the compiler says."""
    target.unlink(missing_ok=True)
    said = ask([compiler, "-O2", str(source), "-o", str(target), *options])
    if not target.exists():
        lines = [line for line in said.splitlines() if "error" in line] or said.splitlines()[-1:] or ["nothing"]
        raise CollectError(f"{source.name} cannot be compiled; {compiler} says: {lines[0].strip()[:LONGEST_QUOTE]}.")
    return target


def revision() -> str | None:
    """The git commit of the working directory, with "-dirty" where files differ from it; None where there is none."""
    here = Path.cwd()
    if not any((folder / ".git").exists() for folder in (here, *here.parents)):
        return None
    line = first_line(ask(["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]))
    return line if re.fullmatch(r"[0-9a-f]{40,64}(-dirty)?", line) else None


def has_gpu(root: Path = ROOT) -> bool:
    """Whether this machine has an NVIDIA GPU, by its device files or by what nvidia-smi says."""
    return has_nvidia_device(root) or gpu()[0] is not None


@functools.cache
def gpu() -> tuple[str | None, str | None]:
    """(Name, compute capability) of the first GPU by nvidia-smi; None where that does not tell."""
    line = _smi("name,compute_cap")
    both = re.fullmatch(r"([^,]*?) *, *(\d+\.\d+)", line)
    if both is not None:
        return both[1], both[2]
    # Drivers before 2021 do not know `compute_cap`.
    name = _smi("name")
    if not name or re.search("failed|No devices|rror", name):
        return None, None
    return name, None


@functools.cache
def clocks() -> tuple[float, float, float, float] | None:
    """(Core clock, memory clock, the highest of each) of the first GPU in MHz by nvidia-smi; None: it does not tell."""
    line = _smi("clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem", ",nounits")
    try:
        core, memory, most, most_memory = map(float, line.split(","))
    except ValueError:
        return None
    return core, memory, most, most_memory


def _smi(query: str, form: str = "") -> str:
    """The line that nvidia-smi prints for a query on the first GPU; "" where there is none."""
    smi = shutil.which("nvidia-smi")
    return first_line(ask([smi, f"--query-gpu={query}", f"--format=csv,noheader{form}"])) if smi else ""


def first_line(text: str) -> str:
    """The first line of a tool's output that is not blank, stripped; "" if there is none."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
