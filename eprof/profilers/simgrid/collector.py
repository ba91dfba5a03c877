"""SimGrid: an MPI program on a cluster that is simulated on this machine, with the energy of its nodes and links.

The program runs once, at the first clock of the cluster's table. SimGrid records what each process computes and sends,
independent of time; that trace is replayed at the other clocks.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from eprof.base.errors import UsageError
from eprof.base.text import phrase
from eprof.collect.collector import CLUSTER, Collector, Nodes, Place, Request, Speed, Step, Tool, Verdict
from eprof.collect.machine import ask, executable
from eprof.collect.process import Ended

TRACE = "logs/trace.txt"
_TRACE = "-trace-ti"
_INSTALL = "apt install libsimgrid-dev"
_SPLIT_BY_A_SHELL = re.compile(r"[\s*?\[\]]")
_LONGEST_END = 100
_TROUBLE = re.compile(r"\[(?:[^\s\[]+/)?(?:CRITICAL|ERROR)\] (.*)")


class SimGrid(Collector):
    """SimGrid, the simulated cluster."""

    name = "simgrid"
    rank = 90
    simulated = True
    counts_all = True
    processor = CLUSTER
    quicker = "fewer processes or iterations: all of them run on this machine"

    def find(self, program: str = "") -> Tool:
        """Look for SimGrid's `smpirun`."""
        path = executable(("smpirun",), ("/usr/bin", "/usr/local/bin", "/opt/simgrid/bin"))
        if path is None:
            why = "SimGrid is not installed; `eprof scale --program` models clusters without it"
            return Tool(self.name, False, why, remedy=_INSTALL)
        version = re.search(r"SimGrid version (\S+)", ask([path, "-version"]))
        why = "MPI programs of smpicc on a simulated cluster (--cluster NAME -n PROCESSES)"
        return Tool(self.name, True, why, path, version and version[1])

    def order(self, request: Request) -> tuple[str, ...]:
        """The order of SimGrid's simulations: one for each clock."""
        return tuple(_speed_name(speed) for speed in _nodes(request).speeds)

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """SimGrid's step: the program itself at the first clock, a replay of its trace at others. Raises UsageError."""
        from eprof.clusters import cluster  # late: all other programs need not wait for it

        nodes = _nodes(request)
        speed = next(speed for speed in nodes.speeds if _speed_name(speed) == what)
        log = place.log(what, ".log")
        files = {
            "hosts.txt": cluster.simgrid_hosts(nodes),
            f"platform-{what}.xml": cluster.simgrid_platform(nodes, speed),
        }
        # Energies go to files; what else SimGrid says stands in standard error, if it is a warning.
        energies = {"host_energy": log}
        if nodes.link_w:
            energies["link_energy"] = cluster.links_log(log)
        base = [
            *(str(tool.path), "-np", str(nodes.processes)),
            *("-platform", str(place.directory / f"platform-{what}.xml")),
            *("-hostfile", str(place.directory / "hosts.txt")),
            *(f"--cfg={setting}" for setting in cluster.simgrid_settings(nodes)),
            "--log=root.thres:warning",
        ]
        for category, file in energies.items():
            base += [f"--log={category}.thres:info", f"--log={category}.app:file:{file}"]
        trace = str(place.directory / TRACE)
        if speed != nodes.speeds[0]:
            command = [*base, "-replay", trace]
            why = "the trace of what each process computes and sends, replayed"
        else:
            computing, how = "simulate-computation:no", "by the flops that it states"
            if nodes.computes:
                computing, how = f"host-speed:{speed.work_per_s}f", "timed here"
            command = [*base, f"--cfg=smpi/{computing}", _TRACE, "-trace-file", trace, *request.program]
            why = f"the program, {how}, and its trace"
        for word in command:  # smpirun is a script of the shell
            if _SPLIT_BY_A_SHELL.search(word) or not word:
                raise UsageError(
                    f"`{word}`: smpirun passes on no words with spaces or wildcards; rename or leave it out."
                )
        return Step(what, tuple(command), f"{why} at {speed.core_mhz:g} MHz", logs=(log.name,), files=files)

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """Whether SimGrid's simulation came to its end, and left a trace that can be replayed."""
        from eprof.clusters import cluster

        if not logs or cluster.simulated_energy(logs[0]) is None:
            trouble = _TROUBLE.search(errors)
            reason = phrase(": {:.300}", trouble and trouble[1])
            return Verdict((f"The simulation at {step.what} did not come to its end{reason}.",), failed=True, kernels=0)
        traces = (logs[0].parent / f"{Path(TRACE).name}_files").glob("*_rank-*.txt")
        if _TRACE in step.command and not whole(list(traces), int(step.command[2])):
            message = "A process did not come to its end, or its trace is cut off: no energy, and nothing to replay."
            return Verdict((message,), failed=True, kernels=0)
        return Verdict()


def _nodes(request: Request) -> Nodes:
    if request.nodes is None:
        raise UsageError("--profiler simgrid needs a cluster and a number of processes: --cluster gigabit-demo -n 16.")
    return request.nodes


def _speed_name(speed: Speed) -> str:
    return f"{speed.core_mhz:g}mhz"


def whole(files: Sequence[Path], processes: int) -> bool:
    """Whether SimGrid's trace has a file for each process, which ends as a process does."""
    if len(files) != processes:
        return False
    for path in files:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _LONGEST_END, 0))
            ending = file.read()
        # Behind the number of the process.
        if not ending.endswith(b"\n") or ending.split(b"\n")[-2].split()[1:] != [b"finalize"]:
            return False
    return True


COLLECTOR = SimGrid()
