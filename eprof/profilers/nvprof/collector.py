"""nvprof, for NVIDIA GPUs from Fermi to Volta (counters) and Turing (traces); it is part of CUDA up to 12."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from eprof.base.kernels import expression
from eprof.collect.collector import ENERGY, TIME, Offer, Place, Request, Step, Tool, Verdict, option
from eprof.collect.machine import ask
from eprof.collect.process import Ended
from eprof.nvidia.collector import GpuCollector
from eprof.readers.messages import Outcome, beginnings, no_log, understand

# Patterns are texts: compiled when first used, and the start of `eprof run` uses none.
_EVENT = (
    r"subp\d|^(l1_(global|local|shared)_|fb|tex\d|elapsed|active|thread_inst|not_predicated|g(ld|st)_(inst_|request$)|"
    r"atom_|gred_|uncached_|global_store_transaction|shared_(load|store)$)"
)
_ROW = r'(?m)^(?!=)(?!.*\[CUDA mem).*\(\d+\)"?,.*'
_REPLAYED = r'(?m)^==\d+== Replaying kernel ".*" \(done\)'
# nvprof's own exit codes: it failed; and it lost that of the program, which ended by itself or by a signal.
_FAILURES = (4, 5, 11, 23, 24)
_OF_THE_PROGRAM = (9, 15)
_NO_KERNEL = "No kernel ran on the GPU, or nvprof lost them all. Does the program use CUDA, and end by itself?"


class Nvprof(GpuCollector):
    """nvprof, NVIDIA's old profiler."""

    name = "nvprof"
    rank = 10
    capabilities = (2.0, 7.5)
    processes = "/nvprof$"
    quicker = "a smaller problem, or fewer kernels (-k NAME)"
    commands = ("nvprof",)
    places = ("/usr/local/cuda/bin", "/opt/cuda/bin")
    version = r"Release version (\S+)"
    install = "sudo apt install nvidia-profiler (Debian, Ubuntu), or install a CUDA toolkit up to 12"
    good_for = "counts on NVIDIA GPUs up to capability 7.2"
    unfit = "it does not count on {device} (capability {capability}; 7.2 is its last)"
    instead = "use ncu"

    def offered(self, tool: Tool, wanted: Collection[str] = ()) -> Offer | None:
        """The events and metrics that nvprof lists for the first device, and its name; None: nvprof lists none."""
        names: set[str] = set()
        device: str | None = None
        for query in ("--query-events", "--query-metrics"):
            text = ask([str(tool.path), query])
            if match := re.search(r"^Device \d+ \((.+)\):", text, re.MULTILINE):
                device = device or match[1]
            names |= set(re.findall(r"^\s+(\w+):\s", text, re.MULTILINE))
        return Offer(device, frozenset(names)) if names else None

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The command of a step: nvprof's GPU trace for time, the bare program for energy, else its counters."""
        if what == ENERGY:
            return Step(what, request.program, "the program alone, while the meter is read")
        log = place.log(what, "-%p.csv")
        # Only our own %p is a pattern.
        log_pattern = str(log.parent).replace("%", "%%") + f"/{log.name}"
        head = [str(tool.path), "--csv", "-u", "ns", "--log-file", log_pattern, "--profile-child-processes"]
        if what == TIME:
            why = "the time of every kernel launch, traced without any counters: replay would falsify it"
            return Step(
                what, (*head, "--print-gpu-trace", *request.program), why, logs=(f"{what}-{place.number}-*.csv",)
            )
        events = [name for name in counters if re.search(_EVENT, name)]
        metrics = [name for name in counters if name not in events]
        patterns = [expression(kernel) or re.escape(kernel) for kernel in request.kernels]
        options = [
            # A colon ends nvprof's pattern of a context, a stream or a kernel.
            *option("--kernels", "|".join(patterns).replace("(?:", "(").replace(":", ".")),
            *option("--events", ",".join(events)),
            *option("--metrics", ",".join(metrics)),
        ]
        return Step(
            what,
            (*head, *options, *request.program),
            f"{len(metrics)} metrics and {len(events)} events, each kernel replayed until all are counted",
            logs=(f"{what}-{place.number}-*.csv",),
            passes="several; nvprof does not tell beforehand",
        )

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """The `Verdict` on a step with nvprof: sentences, the program's exit code, did the step fail, rows of kernels.

        Nvprof's own exit codes (9, 15) hide that of the program, which its log has.
        """
        if step.what == ENERGY:
            return Verdict()
        texts = beginnings(logs)
        outcome = understand(self.name, texts)
        if not logs:
            sentences = (*outcome.sentences, no_log(self.name, ended.code, errors))
            return Verdict(sentences, _status(outcome, ended, failed=ended.code in _FAILURES), True, tells_status=False)
        rows = sum(len(re.findall(_ROW, text)) for text in texts)
        failed = outcome.failed or (ended.code in _FAILURES and not rows)
        sentences = outcome.sentences
        if not rows and not outcome.failed:
            sentences += (_NO_KERNEL,)
        return Verdict(sentences, _status(outcome, ended, failed), failed, rows)

    def progress(self, logs: Sequence[Path]) -> int | None:
        """The launches that nvprof has replayed, as newer versions tell on the way; None: the logs tell of none yet."""
        return sum(len(re.findall(_REPLAYED, text)) for text in beginnings(logs)) or None


def _status(outcome: Outcome, ended: Ended, failed: bool) -> int | None:
    """The program's exit code: from nvprof's log, else nvprof's; 0 where that is nvprof's own; None: not known."""
    if outcome.status is not None or ended.code is None:
        return outcome.status
    if failed or ended.code in _OF_THE_PROGRAM:
        return 0
    return ended.code


COLLECTOR = Nvprof()
