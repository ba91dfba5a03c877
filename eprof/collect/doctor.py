"""`eprof doctor`: what this machine can do, check by check, and the command that mends each problem."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eprof.collect import machine
from eprof.collect.collector import Collector, Tool, collectors
from eprof.collect.messages import PERMISSION_REMEDY
from eprof.collect.meters import jetson, meter
from eprof.collect.tools import clocks, gpu

_SIGNS = {True: "ok   ", False: "NO   ", None: "-    "}
_NOT_ASKED = "no NVIDIA GPU here"


@dataclass(frozen=True)
class Check:
    """One thing looked at. ok: True, False (to be mended), None (not there, or not told). remedy: what mends it."""

    name: str
    ok: bool | None
    detail: str
    remedy: str | None = None

    def as_data(self) -> dict[str, Any]:
        """As in `eprof.doctor/1`."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "remedy": self.remedy}

    def line(self) -> str:
        """One line for a terminal."""
        return f"{_SIGNS[self.ok]} {self.name}: {self.detail}"


def examine(root: Path = machine.ROOT) -> list[Check]:
    """Every check, in the order in which a user would mend things. root: where /proc, /sys and /dev stand."""
    known = collectors()
    tools = [one.find() for one in known]
    has_gpu = machine.has_nvidia_device(root) or gpu()[0] is not None
    return [
        _driver(root, has_gpu),
        _device(has_gpu),
        _library(has_gpu),
        *(check for one, tool in zip(known, tools, strict=True) for check in _with_helpers(one, tool, has_gpu)),
        _permission(root, has_gpu),
        _meter(has_gpu),
        _clocks(root, has_gpu),
        _best(tools),
    ]


def can_run(checks: Sequence[Check]) -> bool:
    """Whether `eprof run` has a profiler to work with."""
    return any(one.name == "eprof run" and one.ok for one in checks)


def _profiler(collector: Collector, tool: Tool, has_gpu: bool) -> Check:
    name = f"simulated device ({tool.name})" if collector.simulated else f"profiler {tool.name}"
    where = ", ".join(word for word in (tool.version, tool.path) if word)
    device, capability = gpu()
    needed = collector.simulated or (has_gpu and collector.fits(capability))
    detail = f"{tool.why} ({where})" if where else tool.why
    if has_gpu and not needed and tool.path is None:
        detail += f", and not needed: it does not count on {device} (capability {capability})"
    problem = not tool.usable and needed
    return Check(name, True if tool.usable else False if problem else None, detail, tool.remedy if problem else None)


def _with_helpers(collector: Collector, tool: Tool, has_gpu: bool) -> list[Check]:
    checks = [_profiler(collector, tool, has_gpu)]
    for one in collector.helpers():
        where = ", ".join(word for word in (one.version, one.path) if word)
        detail = f"{one.why} ({where})" if where and one.usable else one.why
        problem = not one.usable and tool.usable
        if problem:
            detail += f"; without it {collector.name} times kernels that it replays, so times are estimated"
        checks.append(
            Check(
                f"timer {one.name}", one.usable or (False if problem else None), detail, one.remedy if problem else None
            )
        )
    return checks


def _driver(root: Path, has_gpu: bool) -> Check:
    version = machine.driver_version(root)
    if version is not None:
        return Check("driver", True, version)
    if has_gpu:
        return Check(
            "driver", None, "there is a GPU, but /proc/driver/nvidia tells no version (so on a Jetson, and behind WSL)"
        )
    return Check("driver", None, "no NVIDIA driver is loaded", None)


def _device(has_gpu: bool) -> Check:
    name, capability = gpu()
    if name is None:
        return Check("GPU", None, "there is one, but nvidia-smi does not name it" if has_gpu else "no NVIDIA GPU here")
    return Check("GPU", True, f"{name} (capability {capability or 'not told; say it with --capability'})")


def _library(has_gpu: bool) -> Check:
    """Nvidia-smi works without it: containers get it only with the capability `compute`."""
    if not has_gpu:
        return Check("CUDA library", None, _NOT_ASKED)
    from eprof.collect.cuda.driver import installed

    if installed():
        return Check("CUDA library", True, "libcuda.so.1 is there")
    return Check(
        "CUDA library",
        False,
        "libcuda.so.1 is not found: neither CUDA programs nor profilers work without it",
        "start a container with --gpus all (and NVIDIA_DRIVER_CAPABILITIES=compute,utility, if that variable is set), "
        "else install the whole of NVIDIA's driver (Debian: sudo apt install libcuda1)",
    )


def _permission(root: Path, has_gpu: bool) -> Check:
    restricted = machine.counters_restricted(root)
    if not has_gpu:
        return Check("counter permission", None, _NOT_ASKED)
    if restricted is None:
        return Check(
            "counter permission",
            None,
            "the driver does not tell (no RmProfilingAdminOnly in /proc/driver/nvidia/params)",
        )
    if not restricted:
        return Check("counter permission", True, "everyone may read GPU counters (RmProfilingAdminOnly: 0)")
    if os.geteuid() == 0:
        return Check("counter permission", True, "only administrators may read GPU counters, and this is root")
    detail = (
        "only administrators may read GPU counters (RmProfilingAdminOnly: 1), so profilers end with ERR_NVGPUCTRPERM; "
        "it is a switch of the NVIDIA driver module, set by whoever administers the machine"
    )
    return Check("counter permission", False, detail, PERMISSION_REMEDY)


def _meter(has_gpu: bool) -> Check:
    found, reasons = meter.find()
    if found is None:
        remedy = next((one.partition("(")[2].rstrip(")") for one in reasons if "pip install" in one), None)
        return Check("power meter", False if remedy else None, "; ".join(reasons), remedy)
    about = found.describe()
    return Check("power meter", True, f"{about['name']}: {about['method']}, covers {about['covers']}")


def _clocks(root: Path, has_gpu: bool) -> Check:
    if any(jetson.rails(root)):
        return Check(
            "clocks",
            None,
            "a Jetson board; clocks are below /sys/kernel/debug, readable by root only",
            "sudo jetson_clocks",
        )
    if not has_gpu:
        return Check("clocks", None, _NOT_ASKED)
    now = clocks()
    if now is None:
        return Check("clocks", None, "nvidia-smi does not tell them")
    core, memory, most, most_memory = now
    old = float(gpu()[1] or 7.0) < 7.0
    lock = f"-ac {memory:.0f},{most:.0f}" if old else f"-lgc {most:.0f} && sudo nvidia-smi -lmc {most_memory:.0f}"
    return Check(
        "clocks",
        None,
        f"core {core:.0f} MHz of at most {most:.0f}, memory {memory:.0f} of {most_memory:.0f}; eprof leaves "
        "them alone, and runs compare best with locked ones",
        f"sudo nvidia-smi -pm 1 && sudo nvidia-smi {lock}",
    )


def _best(tools: Sequence[Tool]) -> Check:
    usable = next((one for one in tools if one.usable), None)
    if usable is None:
        remedy = next((one.remedy for one in tools if one.name == "oclgrind"), None)
        return Check("eprof run", False, "no profiler can be used here", remedy)
    return Check("eprof run", True, f"uses {usable.name}: {usable.why}")
