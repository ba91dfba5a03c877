"""Which profiler can do something on the GPUs at hand: advice never names one that they cannot run."""

from collections.abc import Iterable, Mapping

TIMES = {
    "nvprof": "nvprof --print-gpu-trace --csv",
    "nsys": "nsys stats --report cuda_gpu_trace --format csv",
}
STREAMS = {
    "nvprof": "nvprof --print-gpu-trace --csv",
    "nsys": "nsys export --type sqlite",
    "ncu": "ncu --csv --page raw",
}
NVTX = {"ncu": "ncu --csv --nvtx"}
# The first compute capability of each, and the last; in words for a GPU that is not known.
_RANGES = {"nvprof": (2.0, 7.2), "nsys": (6.0, float("inf")), "ncu": (7.0, float("inf"))}
_WORDS = {"nvprof": "up to Volta", "nsys": "from Pascal on", "ncu": "from Volta on"}


def commands(ways: Mapping[str, str], capabilities: Iterable[str | None]) -> str:
    """Those of the commands (profiler -> command) that GPUs of these compute capabilities can run, joined by "or".

    Where a capability is not known, or no profiler can do it on all of them, each command says for which GPUs it is.
    """
    known = {_number(capability) for capability in capabilities}
    usable = [profiler for profiler in ways if known and all(_fits(profiler, number) for number in known)]
    if usable:
        return " or ".join(ways[profiler] for profiler in usable)
    some = [profiler for profiler in ways if not known or any(_may_fit(profiler, number) for number in known)]
    return " or ".join(f"{ways[profiler]} ({_WORDS[profiler]})" for profiler in some or ways)


def trace(kind: str) -> str:
    """The command that makes a trace with devices, of the profiler that wrote a table of this kind ("nsys-summary")."""
    return TIMES["nsys" if kind.startswith(("nsys", "ncu")) else "nvprof"]


def _number(capability: str | None) -> float | None:
    try:
        return float(capability) if capability is not None else None
    except ValueError:
        return None


def _fits(profiler: str, capability: float | None) -> bool:
    first, last = _RANGES[profiler]
    return capability is not None and first <= capability <= last


def _may_fit(profiler: str, capability: float | None) -> bool:
    return capability is None or _fits(profiler, capability)
