"""`eprof doctor`: what this machine can do, check by check, and the command that mends each problem."""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from eprof import costs, profilers
from eprof.base.errors import CollectError
from eprof.base.optional import either
from eprof.base.text import bracketed, listed, phrase, printable, when
from eprof.cli.options import Commands, Parser, command
from eprof.clusters import mpi
from eprof.collect import machine, sensors
from eprof.collect.collector import CLUSTER, CPU, GPU, PROGRAM, Collector, Tool
from eprof.collect.machine import clocks, gpu
from eprof.readers.messages import permission_remedy

_NO_GPU = "no NVIDIA GPU here"
_LOCKABLE = 7.0  # the first capability whose clocks can be locked; those before it take application clocks
# Whether the driver restricts counters -> the check of that.
_MAY_COUNT = {
    None: (None, "the driver does not tell (no RmProfilingAdminOnly in /proc/driver/nvidia/params)"),
    False: (True, "everyone may read GPU counters (RmProfilingAdminOnly: 0)"),
    True: (
        False,
        "only administrators may read GPU counters (RmProfilingAdminOnly: 1), so profilers end with ERR_NVGPUCTRPERM; "
        "it is a switch of the NVIDIA driver module, set by whoever administers the machine",
    ),
}
_SIGNS = {True: "ok   ", False: "NO   ", None: "-    "}


def add(commands: Commands) -> Parser:
    """Add `eprof doctor` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "doctor",
        "Look for profilers, driver, GPU, counter permission, power meter, clocks, the simulated device and a cost "
        "table, and say for each problem what mends it. Exit code 0 if `eprof run` can work here, else 1.",
    )
    parser.add_listing()
    return parser


def doctor(options: argparse.Namespace) -> int:
    """Run `eprof doctor`. Exit code 0 if `eprof run` can work here, else 1."""
    checks = examine(profilers.collectors())
    if options.format == "json":
        print(json.dumps({"schema": "eprof.doctor/1", "checks": [asdict(check) for check in checks]}, indent=1))
    else:
        for check in checks:
            print(printable(f"{_SIGNS[check.ok]} {check.name}: {check.detail}"))
            if check.remedy:
                print(printable(f"      {check.remedy}"))
    return int(not any(check.name == "eprof run" and check.ok for check in checks))


class Check(Struct, frozen=True):
    """A check of the machine. ok: True, False (to be mended), None (not there, or not known). remedy: what mends it."""

    name: str
    ok: bool | None
    detail: str
    remedy: str | None = None


def examine(known: Sequence[Collector], root: Path = machine.ROOT) -> list[Check]:
    """Every check of `eprof doctor`, in the order in which to mend things. root: where /proc, /sys and /dev stand."""
    known = [collector for collector in known if collector.processor != PROGRAM]
    looked = [collector.find() for collector in known]
    has_gpu = machine.has_gpu(root)
    profilers = []
    for collector, tool in zip(known, looked, strict=True):
        profilers.append(_profiler(collector, tool, has_gpu))
        profilers += [_timer(collector, tool, timer) for timer in collector.helpers()]
    return [
        *_driver_and_gpu(root, has_gpu),
        *profilers,
        _open_mpi(),
        _permission(root, has_gpu),
        *_power(root),
        _clocks(root, has_gpu),
        _cost_table(known),
        _eprof_run(known, looked),
    ]


def _profiler(collector: Collector, tool: Tool, has_gpu: bool) -> Check:
    """The check of a profiler: True if usable, False if it is not but would count here, else None."""
    name = f"profiler {tool.name}"
    if collector.simulated:
        what = {CLUSTER: "cluster"}.get(collector.processor, "device")
        name = f"simulated {what} ({tool.name})"
    device, capability = gpu()
    needed = collector.processor == GPU and (collector.simulated or (has_gpu and collector.fits(capability)))
    if tool.usable:
        return Check(name, True, _described(tool))
    unneeded = ""
    if has_gpu and tool.path is None and collector.processor == GPU and not needed:
        unneeded = f", and not needed: it does not count on {device} (capability {capability})"
    remedy = tool.remedy if needed or collector.processor != GPU else None
    return Check(name, False if needed else None, _described(tool) + unneeded, remedy)


def _timer(collector: Collector, tool: Tool, timer: Tool) -> Check:
    """The check of the tool that times kernels for a profiler; None where that profiler is not usable itself."""
    name = f"timer {timer.name}"
    if timer.usable:
        return Check(name, True, _described(timer))
    if not tool.usable:
        return Check(name, None, timer.why)
    detail = f"{timer.why}; without it {collector.name} times kernels that it replays, so times are estimated"
    return Check(name, False, detail, timer.remedy)


def _described(tool: Tool) -> str:
    return tool.why + bracketed(", ".join(filter(None, (tool.version, tool.path))))


def _driver_and_gpu(root: Path, has_gpu: bool) -> Iterator[Check]:
    """The checks of driver, GPU and CUDA library. nvidia-smi works without the last, which containers may not have."""
    version = machine.driver_version(root)
    lacks = "no NVIDIA driver is loaded"
    if has_gpu:
        lacks = "there is a GPU, but /proc/driver/nvidia tells no version (so on a Jetson, and behind WSL)"
    yield Check("driver", version is not None or None, either(version, lacks))
    name, capability = gpu()
    named = phrase(f"{{}} (capability {capability or 'not told; say it with --capability'})", name)
    unnamed = when(has_gpu, "there is one, but nvidia-smi does not name it") or _NO_GPU
    yield Check("GPU", bool(named) or None, named or unnamed)
    if not has_gpu:
        yield Check("CUDA library", None, _NO_GPU)
        return
    with suppress(CollectError):
        machine.cuda_driver()
        yield Check("CUDA library", True, "libcuda.so.1 is there")
        return
    yield Check(
        "CUDA library",
        False,
        "libcuda.so.1 is not found: neither CUDA programs nor profilers work without it",
        "start a container with --gpus all (and NVIDIA_DRIVER_CAPABILITIES=compute,utility, if that variable is set), "
        "else install the whole of NVIDIA's driver (Debian: sudo apt install libcuda1)",
    )


def _open_mpi() -> Check:
    """The check of Open MPI, under which `eprof comm` measures messages; None where it is not installed."""
    found, why = mpi.find()
    if found is None:
        return Check("Open MPI", None, f"{why}; `eprof comm` models messages without it", mpi.INSTALL)
    return Check("Open MPI", True, f"`eprof comm --mpi openmpi` measures messages ({found.version}, {found.launcher})")


def _permission(root: Path, has_gpu: bool) -> Check:
    """The check whether this user may read GPU counters, by the driver's RmProfilingAdminOnly."""
    ok, detail = _MAY_COUNT[machine.counters_restricted(root)]
    if not has_gpu:
        ok, detail = None, _NO_GPU
    elif ok is False and os.geteuid() == 0:
        ok, detail = True, "only administrators may read GPU counters, and this is root"
    return Check("counter permission", ok, detail, permission_remedy() if ok is False else None)


def _power(root: Path) -> Iterator[Check]:
    """The checks of the meter of a GPU's joules, and of sensors of power over time."""
    best, reasons = sensors.find_meter()
    if best is None:
        remedies = [reason.partition("(")[2].rstrip(")") for reason in reasons if "pip install" in reason]
        yield Check("power meter", False if remedies else None, "; ".join(reasons), *remedies[:1])
    else:
        about = best.source.describe()
        yield Check("power meter", True, f"{about['name']}: {about['method']}, covers {about['covers']}")
    names = ", ".join(component.name for component in sensors.components(root))
    lacks = f"no sensor can be read here; {sensors.find_rapl(root)[1]}"
    yield Check("power over time", bool(names) or None, phrase("{}, for `eprof timeline`", names) or lacks)


def _clocks(root: Path, has_gpu: bool) -> Check:
    """The check that tells the GPU's clocks, and the command that locks them; never True, as eprof locks none."""
    if any(sensors.jetson_rails(root)):
        detail = "a Jetson board; clocks are below /sys/kernel/debug, readable by root only"
        return Check("clocks", None, detail, "sudo jetson_clocks")
    if not has_gpu:
        return Check("clocks", None, _NO_GPU)
    now = clocks()
    if now is None:
        return Check("clocks", None, "nvidia-smi does not tell them")
    core, memory, most, most_memory = now
    lock = f"-lgc {most:.0f} && sudo nvidia-smi -lmc {most_memory:.0f}"
    if float(gpu()[1] or _LOCKABLE) < _LOCKABLE:
        lock = f"-ac {memory:.0f},{most:.0f}"
    detail = (
        f"core {core:.0f} MHz of at most {most:.0f}, memory {memory:.0f} of {most_memory:.0f}; eprof leaves "
        "them alone, and runs compare best with locked ones"
    )
    return Check("clocks", None, detail, f"sudo nvidia-smi -pm 1 && sudo nvidia-smi {lock}")


def _cost_table(known: Sequence[Collector]) -> Check:
    """The check whether a cost table is made for this machine's GPU; None without a GPU."""
    device, _ = gpu()
    tables = ", ".join(costs.tables())
    if device is None:
        details = ["no GPU to price", f"there are {tables}"]
        if defaults := [f"{collector.name} takes {collector.costs}" for collector in known if collector.costs]:
            details.insert(1, listed(defaults))
        return Check("cost table", None, "; ".join(details))
    table = costs.for_device(device)
    if table is not None:
        return Check("cost table", True, f"{table.name} is made for {device}")
    return Check(
        "cost table",
        False,
        f"none is made for {device}; there are {tables}",
        "eprof run --costs NAME PROGRAM prices it as that board; a table of your own is one file (docs/costs.md)",
    )


def _eprof_run(known: Sequence[Collector], looked: Sequence[Tool]) -> Check:
    """The check whether `eprof run` can work: which usable profiler it takes for programs of GPUs, and of CPUs."""
    usable = [(collector.processor, tool) for collector, tool in zip(known, looked, strict=True) if tool.usable]
    best = [next((tool for of, tool in usable if of == processor), None) for processor in (GPU, CPU)]
    both = zip(("GPUs", "CPUs"), best, strict=True)
    uses = [f"{tool.name} for programs of {kind}: {tool.why}" for kind, tool in both if tool]
    if uses:
        return Check("eprof run", True, f"uses {'; '.join(uses)}")
    simulated = [tool.remedy for collector, tool in zip(known, looked, strict=True) if collector.simulated]
    return Check("eprof run", False, "no profiler can be used here", *simulated[:1])
