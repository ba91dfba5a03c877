"""perf, which reads the processor's counters on Linux: `perf stat` around the program, which it does not slow down.

Events of cores are counted for the program alone. Memory controllers and energy belong to all that runs on a socket: a
second `perf stat -a` around the first one counts them, where the machine lets it.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from eprof.base.text import phrase
from eprof.collect.collector import COUNTERS, CPU, ENERGY, TIME, Collector, Offer, Place, Request, Step, Tool, Verdict
from eprof.collect.machine import ask, executable, first_line, processor_name, text_of
from eprof.collect.process import Ended
from eprof.profilers.perf import BYTES_OF, DURATION, ROW, plain
from eprof.readers.messages import beginnings, shortened

_INSTALL = "sudo apt install linux-perf (Debian), linux-tools-$(uname -r) (Ubuntu) or perf (Fedora, Arch)"
_ALLOW = "sudo sysctl kernel.perf_event_paranoid=1; in a container, --cap-add PERFMON too"
_ENERGY = ("power/energy-pkg/", "power/energy-ram/")
_CPUINFO = Path("/proc/cpuinfo")
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_REFUSED = r"(?i)paranoid|permission|not permitted|no access"


class Perf(Collector):
    """perf, Linux's own profiler."""

    name = "perf"
    rank = 35
    kinds = (TIME, ENERGY, COUNTERS)
    processor = CPU
    costs = "sapphirerapids"
    processes = "/perf$"

    def find(self, program: str = "") -> Tool:
        """The tool perf, tried out: whether it can count here, what it may count, or why not and what to do."""
        path = executable(("perf",), ("/usr/bin", "/usr/local/bin"))
        if path is None:
            return Tool(self.name, False, "perf is not installed", remedy=_INSTALL)
        version = re.search(r"perf version (\S+)", ask([path, "--version"]))
        answer = _trial(path, "-e", "instructions:u")
        tool = Tool(self.name, False, "", path, version and version[1])
        if re.search(r"(?m)^\d+;;instructions", answer):
            from eprof.base.cpus import in_cpuinfo  # late: it takes longer than a machine without counters may wait

            capability = in_cpuinfo(_CPUINFO.read_text())
            good_for = (
                "the processor's own counters, without memory controllers and energy, which only root may read here"
            )
            if _may_count_sockets(path):
                good_for = "the processor's own counters, with memory controllers and energy where it has them"
            return tool._replace(usable=True, why=good_for, device=processor_name(), capability=capability)
        if re.search(_REFUSED, answer):
            now = phrase(" (perf_event_paranoid is {})", text_of(_PARANOID).strip())
            return tool._replace(why=f"perf may not count here{now}", remedy=_ALLOW)
        if "perf not found for kernel" in answer:
            return tool._replace(why="perf is not installed for this kernel", remedy=_INSTALL)
        if "<not supported>" in answer or "<not counted>" in answer:
            return tool._replace(why="perf finds no counters in this processor, as in most virtual machines")
        reason = shortened(first_line(answer) or "no answer")
        return tool._replace(why=f"perf cannot count instructions ({reason})")

    def offered(self, tool: Tool, wanted: Collection[str] = ()) -> Offer | None:
        """The wanted events that perf lists; those of sockets only where this user may count them."""
        listed = _listed(str(tool.path))
        return Offer(tool.device, frozenset(name for name in wanted if name.removesuffix(BYTES_OF) in listed))

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The command of a step: the program alone for time and energy, below `perf stat` for counters."""
        if what == TIME:
            return Step(what, request.program, "the program alone: its output and its exit code")
        if what == ENERGY:
            return Step(what, request.program, "the program alone, while the processor's energy counters are read")
        events = [name.removesuffix(BYTES_OF) for name in counters]
        cores = [event for event in events if not _is_of_socket(event)]
        sockets = [event for event in (*events, *_ENERGY) if _is_of_socket(event) and event in _listed(str(tool.path))]
        command = (*_stat(tool, place.log(what, ".csv"), cores), "--", *request.program)
        if sockets:
            command = (*_stat(tool, place.log(what, "-sockets.csv"), sockets, "-a"), "--", *command)
        return Step(
            what,
            command,
            f"{len(cores)} events of the program, {len(sockets)} of the sockets that it runs on",
            logs=(f"{what}-{place.number}*.csv",),
        )

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """Whether perf counted anything, else a sentence on why not."""
        if step.what != COUNTERS:
            return Verdict()
        lines = [line for text in beginnings(logs) for line in text.splitlines()]
        counted = sum(row is not None and row["value"][0] != "<" for row in map(ROW.search, lines))
        if counted:
            return Verdict(kernels=1)
        reason = first_line(errors) or f"it ended with {ended.status}"
        return Verdict((f"perf counted nothing: {shortened(reason)}.",), failed=True, kernels=0, tells_status=False)


def _stat(tool: Tool, log: Path, events: Sequence[str], *options: str) -> tuple[str, ...]:
    """The command `perf stat` for these events, with ";" between cells, which no locale has in its numbers."""
    return (str(tool.path), "stat", *options, "-x;", "-o", str(log), "-e", ",".join([*events, DURATION]))


def _is_of_socket(event: str) -> bool:
    """Whether perf counts an event in a part that the cores share: a memory controller, the fabric, a power meter."""
    return event.startswith(("unc_", "uncore_", "amd_df/", "amd_umc/", "power/"))


def _trial(path: str, *options: str) -> str:
    return ask([path, "stat", *options, "-x;", "true"])


@cache
def _listed(path: str) -> frozenset[str]:
    events = frozenset(plain(event)[0] for event in ask([path, "list", "--raw-dump"]).split())
    return events if _may_count_sockets(path) else frozenset(event for event in events if not _is_of_socket(event))


@cache
def _may_count_sockets(path: str) -> bool:
    """Whether perf may count all that runs on the machine, and not this user's programs only."""
    return bool(re.search(r"(?m)^\d+.*;cpu-clock;", _trial(path, "-a", "-e", "cpu-clock")))


COLLECTOR = Perf()
