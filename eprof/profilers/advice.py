"""Which profiler can do something on the GPUs at hand: advice never names one that they cannot run."""

from collections.abc import Iterable
from pathlib import Path

from eprof import profilers
from eprof.base.signs import Signs

TIMES, STREAMS, NVTX, LAUNCHES, COUNTS = "times", "streams", "nvtx", "launches", "counts"
# GPUs of AMD have no compute capability to choose by.
TIMES_ON_AMD = "rocprofv3 --kernel-trace --output-format csv -- PROGRAM"
COUNTS_ON_AMD = "rocprof-compute profile -n NAME -- PROGRAM"
COUNTS_ON_RADEON = "rocprofv3 --kernel-trace --pmc FETCH_SIZE WRITE_SIZE --output-format csv -- PROGRAM"

_PARTS, _WHOLE = ("pmc_perf_", "timestamps"), "pmc_perf.csv"


def counts_beside(path: str) -> str:
    """The path of pmc_perf.csv, all counts of Omniperf or rocprof-compute, beside a log with part of them; "": none."""
    whole = Path(path).with_name(_WHOLE)
    return str(whole) if Path(path).name.startswith(_PARTS) and whole.is_file() else ""


def commands(purpose: str, capabilities: Iterable[str | None]) -> str:
    """The profilers' commands for a purpose that GPUs of these compute capabilities can run, joined by "or".

    Where a capability is not known, or no profiler can do it on all of them, each command says for which GPUs it is.
    """
    known = {_number(capability) for capability in capabilities} or {None}
    oldest_first = sorted(profilers.signs().values(), key=lambda signs: signs.capabilities)
    able = [signs for signs in oldest_first if purpose in signs.commands]
    usable = [signs for signs in able if all(_fits(signs, number) for number in known)]
    if usable:
        return " or ".join(signs.commands[purpose] for signs in usable)
    partly_usable = [signs for signs in able if any(number is None or _fits(signs, number) for number in known)]
    return " or ".join(f"{signs.commands[purpose]} ({signs.generations})" for signs in partly_usable or able)


def trace(profiler: str) -> str:
    """The command to advise for a trace with devices: this profiler's own, or one for the newest GPU that it knows."""
    signs = profilers.signs_of(profiler)
    newest = signs.capabilities[1]
    return signs.commands.get(TIMES) or commands(TIMES, [str(newest)])


def _number(capability: str | None) -> float | None:
    try:
        return float(capability) if capability is not None else None
    except ValueError:
        return None


def _fits(signs: Signs, capability: float | None) -> bool:
    first, last = signs.capabilities
    return capability is not None and first <= capability <= last
