"""What profilers say when something went wrong, told by the constant parts of their messages (counters.md 4.4)."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

PERMISSION_REMEDY = (
    "run as root or with CAP_SYS_ADMIN, or let everyone count: put `options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiler.conf, rebuild the initramfs and "
    "reboot; on a shared machine or in a container it is the host administrator's switch"
)
_NO_DRIVER = (
    "The profiler found no NVIDIA driver (libcuda.so.1): install one, start a container with --gpus all, or use "
    "--profiler oclgrind."
)
_LONGEST_LOG = 8 << 20
_LONGEST_QUOTE = 200
# nvprof, ncu since 2023 or so, and ncu before, of its options.
_ERROR = r"(?m)^(?:=+ ?(?:Error: |ERROR=+ )|(?=unrecognised option|the (?:required )?argument for option))(.*)"


class Known(NamedTuple):
    """A message: the pattern in a log, what it means and what to do.

    fatal: nothing was collected. unstarted: the program was not even run.
    """

    pattern: str
    sentence: str
    fatal: bool = True
    unstarted: bool = False


def _known(pattern: str, sentence: str, fatal: bool = True, unstarted: bool = False) -> Known:
    return Known(pattern, sentence, fatal, unstarted)


KNOWN = (
    _known(
        r"ERR_NVGPUCTRPERM|does not have permission to (profile|access)|NVSOLN1000",
        f"The driver lets only administrators read GPU counters (ERR_NVGPUCTRPERM): {PERMISSION_REMEDY}.",
    ),
    _known(
        r"not supported on devices with compute capability 8\.0 and higher",
        "nvprof does not know this GPU (capability 8.0 or higher): use ncu.",
    ),
    _known(
        r"not supported on devices with compute capability 7\.5 and higher",
        "nvprof can trace this GPU but not count on it (capability 7.5): use ncu.",
    ),
    _known(
        r"Profiling is not supported on device|Unsupported GPU",
        "ncu does not know this GPU: use nvprof for capability below 7.0, or a newer ncu for a newer GPU.",
    ),
    _known(r"unable to locate cuda driver library|Driver could not be loaded", _NO_DRIVER),
    _known(r"failed to connect to the CUDA driver", _NO_DRIVER, unstarted=True),
    _known(
        r"CUDA device error, GPU profiling skipped",
        "CUDA finds no GPU that it can use: see whether nvidia-smi works here; a container needs --gpus all, a job a "
        "GPU of its own, and the driver must not be older than the profiler.",
    ),
    _known(
        r"incompatible CUDA driver version",
        "The profiler and the driver do not fit together: install the profiler of the driver's CUDA version.",
    ),
    _known(
        r"unable to locate OpenACC profiling library",
        "nvprof misses a part of its toolkit (libaccinj64): install it whole, or put its own bin first in PATH.",
    ),
    _known(
        r"a driver resource was unavailable",
        "Another profiler holds the GPU's counters: stop it (for DCGM: dcgmi profile --pause).",
    ),
    _known(
        r"Failed to find metric|[Ii]nvalid metric",
        "ncu does not know a counter that it was asked for: say the GPU's --capability, or install a newer ncu.",
    ),
    _known(
        r"ERR_NVCMPGPU|active SLI group|uses the Windows Subsystem for Linux",
        "The driver refuses to count on this kind of GPU or system.",
    ),
    _known(
        r"COMPUTE_PROFILE|CUDA_PROFILE", "nvprof does not run while COMPUTE_PROFILE or CUDA_PROFILE is set: unset it."
    ),
    _known(
        r"(Metric|Event) \"([^\"]*)\" cannot be found on device",
        "Some counters do not exist on this GPU and are missing.",
        fatal=False,
    ),
    _known(
        r"events or metrics overflowed",
        "Some counters overflowed, so counts are incomplete: count fewer launches at a time.",
        fatal=False,
    ),
    _known(
        r"events or metrics can't be profiled|can't be associated with any kernel",
        "Some counters could not be collected, so counts are incomplete.",
        fatal=False,
    ),
    _known(
        r"invalid timestamps due to insufficient|invalid records in the result",
        "The profiler lost records, so launches are missing from its log.",
        fatal=False,
    ),
)
_NO_KERNELS = (
    r"No kernels were profiled|No CUDA application was profiled|No profile data collected|"
    r"No events/metrics were profiled|No (ranges|graphs) were profiled"
)
_RETURNED = r"(?:Application returned non-zero code|returned an error code) \(?(-?\d+)\)?"
_KILLED = r"(?:Application )?received signal (\d+)"


class Said(NamedTuple):
    """What logs say: sentences, whether the collection failed, that no kernel ran, and the program's own status.

    unstarted: the program was not even run, so a status in the logs is none of its.
    """

    sentences: tuple[str, ...]
    fatal: bool
    no_kernels: bool
    status: int | None
    unstarted: bool = False


def understand(texts: Iterable[str]) -> Said:
    """What the texts of a profiler's logs mean."""
    sentences: list[str] = []
    fatal = no_kernels = unstarted = False
    status: int | None = None
    for text in texts:
        for known in KNOWN:
            if re.search(known.pattern, text):
                sentences.append(known.sentence)
                fatal |= known.fatal
                unstarted |= known.unstarted
        no_kernels |= bool(re.search(_NO_KERNELS, text))
        if found := re.search(_KILLED, text):
            status = 128 + int(found[1])
        elif found := re.search(_RETURNED, text):
            status = int(found[1]) & 0xFF
    return Said(tuple(dict.fromkeys(sentences)), fatal, no_kernels, status, unstarted)


def no_log(profiler: str, code: int | None, errors: str) -> str:
    """A sentence on a profiler that left nothing, in its own words if it had any."""
    said = re.search(_ERROR, errors)
    why = f": {said[1].strip()[:_LONGEST_QUOTE]}" if said else "; what it said is above, or in output/"
    return f"{profiler} wrote no log" + (f" (exit code {code})" if code else "") + why.rstrip(".") + "."


def texts(paths: Sequence[Path]) -> list[str]:
    """The beginnings of log files, where the messages are; tables of gigabytes are not read here."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            found.append(file.read(_LONGEST_LOG).decode("utf-8", "replace"))
    return found
