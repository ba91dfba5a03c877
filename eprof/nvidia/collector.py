"""How `eprof run` finds and starts NVIDIA's profilers (`GpuCollector`); nsys, whose times go with ncu's counters."""

import functools
import glob
import re
from pathlib import Path

from eprof.collect.collector import Collector, Place, Request, Step, Then, Tool, Verdict
from eprof.collect.machine import GIVE_GPU, NO_GPU, ask, executable, gpu, has_gpu
from eprof.collect.process import Ended
from eprof.readers.messages import beginnings

NAME = "nsys"
_INSTALL = "sudo apt install nsight-systems (Debian, Ubuntu), or install the CUDA toolkit of the driver's version"
_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-systems/*/bin")
# Before it a trace is a `.qdrep`, and its tables have other names.
_FIRST = (2021, 4)
_REPORT, _OLD_REPORT = "cuda_gpu_kern_sum", "gpukernsum"
_GRAPHS = "--cuda-graph-trace"
_HEADER = r'(?m)^"?Time ?\(%\)"?,.*\bInstances\b.*$'
_ROW = r'(?m)^"?[\d.]+"?,"?[\d.]+"?,"?(\d+)"?,'
_NO_IMPORTER = r"importer binary and its dependencies were not found|Unable to retrieve the importer version"
_WHOLE = "install all of Nsight Systems, not its target part alone: sudo apt install nsight-systems"


@functools.cache
def find() -> Tool:
    """The `Tool` nsys as found in PATH or the usual places; usable: it is new enough, whether there is a GPU or not."""
    places = [place for pattern in _PLACES for place in sorted(glob.glob(pattern), reverse=True)]
    path = executable([NAME], places)
    if path is None:
        return Tool(NAME, False, "nsys is not installed", remedy=_INSTALL)
    version_numbers = re.search(r"version (\d+)\.(\d+)\S*", ask([path, "--version"]))
    if version_numbers is None:
        return Tool(NAME, False, f"{path} does not tell its version", path, remedy=_INSTALL)
    version = version_numbers[0].removeprefix("version ")
    if (int(version_numbers[1]), int(version_numbers[2])) < _FIRST:
        return Tool(NAME, False, f"nsys {version} is older than 2021.4", path, version, _INSTALL)
    return Tool(NAME, True, "times kernels as they run, without replay", path, version)


def why_not(request: Request) -> str | None:
    """Why kernels cannot be timed by nsys, as half a sentence; None if they can."""
    tool = find()
    if not tool.usable:
        return f"{tool.why} ({tool.remedy})"
    if request.launch_skip or request.launch_count is not None or request.nvtx:
        return "nsys would time all launches, not those chosen by --launch-skip, --launch-count or --nvtx"
    return None


def lost(request: Request) -> str:
    """What is lost where nsys times nothing, as half a sentence."""
    if request.time_only:
        return "so kernels have no times"
    return "so the times of kernels are ncu's own, of replayed, cold kernels, and estimated"


@functools.cache
def _abilities(path: str) -> tuple[str, bool]:
    """(The name of this nsys's report of kernels, whether it looks into CUDA graphs). path: of nsys."""
    reports = ask([path, "stats", "--help-reports"])
    report = _OLD_REPORT if _OLD_REPORT in reports and _REPORT not in reports else _REPORT
    return report, _GRAPHS in ask([path, "profile", "--help"])


def step(what: str, request: Request, place: Place) -> Step:
    """The `Step` that traces a program's CUDA work with nsys, and then makes a CSV table of its kernels."""
    path = str(find().path)
    report, tells_graphs = _abilities(path)
    log, trace = place.log(what, ".csv"), place.log(what, ".nsys-rep")
    # Kernels of a graph one by one, as ncu counts them.
    graphs = [f"{_GRAPHS}=node"] * tells_graphs
    return Step(
        what,
        (
            path, "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none", *graphs,
            "-o", str(trace.with_suffix("")).replace("%", "%%"), *request.program,
        ),
        "the time of every kernel launch, traced without any counters: replay would falsify it",
        logs=(log.name,),
        then=Then(
            (path, "stats", "--report", report, "--format", "csv", str(trace)),
            trace,
            log,
            (trace.with_suffix(".sqlite"),),
            lost(request),
        ),
    )  # fmt: skip


def launches(path: Path) -> int:
    """The number of kernel launches in a table of nsys; 0 where it has none."""
    (text,) = beginnings([path])
    _, *tables = re.split(_HEADER, text, maxsplit=1)
    return sum(int(calls) for table in tables for calls in re.findall(_ROW, table))


def judge(then: Then, ended: Ended, errors: str = "") -> Verdict:
    """The verdict on a trace with nsys; a missing trace or table only warns, as ncu's times are used then.

    then: what made the table of the trace. errors: what nsys said.
    """
    # 0 may be its own; any other code is the program's, if it left a trace.
    tells = bool(ended.code)
    if not then.source.is_file():
        raw = then.source.with_suffix(".qdstrm")
        if raw.is_file() and re.search(_NO_IMPORTER, errors):
            text = f"nsys cannot read its own trace logs/{raw.name} back, for its importer misses libraries ({_WHOLE})"
            return Verdict((f"{text}, {then.lost}.",), tells_status=tells)
        end = f"exit code {ended.code}" if ended.signal is None else f"signal {ended.signal}"
        return Verdict((f"nsys wrote no trace ({end}; what it said is in output/), {then.lost}.",), tells_status=False)
    if not then.log.is_file():
        return Verdict(
            (f"nsys could not make a table of its trace {then.source.name}, {then.lost}.",), tells_status=tells
        )
    seen = launches(then.log)
    warning = f"nsys saw no kernel (what it said is in logs/{then.log.name}), {then.lost}."
    return Verdict(() if seen else (warning,), kernels=seen, tells_status=tells, goes_on=True)


class GpuCollector(Collector):
    """A profiler of NVIDIA GPUs that is one command: nvprof or ncu.

    commands: its names. places: folders where it may be, beside PATH. version: a pattern for what `--version` prints.
    install: how to get it. good_for: what it does on GPUs that it `fits`; unfit, instead: why it cannot profile others,
    and what to use there.
    """

    commands: tuple[str, ...]
    places: tuple[str, ...]
    version: str
    install: str
    good_for: str
    unfit: str
    instead: str

    def find(self, program: str = "") -> Tool:
        """Look for the command of nvprof or ncu and a GPU that it counts on; `Tool.why` says if one is missing."""
        path = executable(self.commands, self.places)
        if path is None:
            return Tool(self.name, False, f"{self.name} is not installed", remedy=self.install)
        version = re.search(self.version, ask([path, "--version"]))
        tool = Tool(self.name, False, NO_GPU, path, version and version[1], GIVE_GPU)
        if not has_gpu():
            return tool
        device, capability = gpu()
        tool = tool._replace(device=device, capability=capability)
        if not self.fits(capability):
            why = self.unfit.format(device=device, capability=capability)
            return tool._replace(why=why, remedy=self.instead)
        return tool._replace(usable=True, why=self.good_for, remedy=None)
