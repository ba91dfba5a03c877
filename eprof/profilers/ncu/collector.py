"""ncu, Nsight Compute: for NVIDIA GPUs from Volta on. `counters/ncu` says what to collect."""

import functools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from eprof.base.kernels import expression
from eprof.collect.collector import (
    ENERGY,
    PLAIN,
    TIME,
    Offer,
    Place,
    Request,
    Step,
    Tool,
    Verdict,
    option,
)
from eprof.collect.machine import ask
from eprof.collect.process import Ended
from eprof.nvidia import collector as nsys
from eprof.nvidia.collector import GpuCollector
from eprof.profilers.ncu import tensor_ops
from eprof.readers.messages import beginnings, no_log, understand

_PASSES = {"7.0": "11 or more", "7.2": "11 or more"}
_DURATION = "gpu__time_duration.sum"
# With each value's opcode since some version after 2022.3, which has `values` only, without them.
_INSTANCES = "--print-metric-instances"
_DETAILS = rf"{_INSTANCES}(?:(?!\n  --)[\s\S])*?\n +details\n"
_PER_OPCODE = "_per_opcode"
_NO_KERNEL = "No kernel ran on the GPU, or ncu saw none. Does the program use CUDA?"


class Ncu(GpuCollector):
    """Nsight Compute (ncu), NVIDIA's profiler of today, and nsys for times."""

    name = "ncu"
    rank = 20
    capabilities = (7.0, float("inf"))
    chooses_launches = True
    quicker = "a smaller problem, fewer kernels (-k NAME), or fewer launches (--launch-count N)"
    locks_clocks = True
    # `ncu` is a shell script around three programs in a row; nsys, killed, would leave its agent behind.
    processes = "/(?:ncu|nsys)$|/nsight[-_](?:compute|systems)"
    commands = ("ncu", "nv-nsight-cu-cli")
    places = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute", "/usr/lib/nsight-compute")
    version = r"Version (\d+\.\d+\.\d+)"
    install = "sudo apt install nsight-compute (Debian, Ubuntu), or install the CUDA toolkit of the driver's version"
    good_for = "counts on NVIDIA GPUs from capability 7.0 on"
    unfit = "it does not know {device} (capability {capability}; 7.0 is its first)"
    instead = "use nvprof"

    def order(self, request: Request) -> tuple[str, ...]:
        """The kinds of steps with ncu in order; the program alone comes first where nsys writes into its output."""
        return self.kinds if nsys.why_not(request) else (PLAIN, *self.kinds)

    def helpers(self) -> tuple[Tool, ...]:
        """The tools that `eprof run` uses beside ncu: nsys, for times, which else are those of replayed kernels."""
        return (nsys.find(),)

    def offered(self, tool: Tool, wanted: Collection[str] = ()) -> Offer | None:
        """The metrics that ncu can collect on this GPU's chip, plain and with ".sum"; None: it lists none.

        Needs no driver. Those with a value for each opcode are offered by their plain names, if this ncu can print such
        values; flops of tensor cores as the sums that their metrics make.
        """
        names = _chip_metrics(tool)
        if not names:
            return None
        offered = names | {f"{name}.sum" for name in names} | tensor_ops.parts(f"{name}.sum" for name in names).keys()
        by_opcode = {name.partition("[")[0] for name in wanted if _PER_OPCODE in name}
        if by_opcode and _tells_opcodes(str(tool.path)):
            # In no chip's list. This repeats a name that ncu knows, and makes a pattern of one that it does not.
            text = ask([str(tool.path), "--list-metrics", "--metrics", ",".join(sorted(by_opcode))])
            offered |= by_opcode & set(re.findall(r"(?m)^[ \t-]*+(?=\w+?__\w)(\w++)[ \t]*$", text))
        return Offer(tool.device, frozenset(offered))

    def basic(self, capability: str) -> dict[str, str]:
        """The smallest set of ncu's metrics that is worth a run, on a GPU without a definition -> what each is for."""
        about = _about()
        if capability in about["no_dram"]["capabilities"]:
            return dict(about["basic"])
        return {**about["basic"], **about["dram_of"].get(capability.partition(".")[0], about["dram"])}

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The command of a step: nsys for time, the bare program for energy, ncu in base units for counters."""
        if what == PLAIN:
            return Step(what, request.program, "the program alone: its output, and the time of the whole program")
        if what == ENERGY:
            return Step(what, request.program, "the program alone, while the meter is read")
        if what == TIME:
            why_not = nsys.why_not(request)
            if why_not is None:
                return nsys.step(what, request, place)
            why = f"the program alone, for the time of the whole program: {why_not}, {nsys.lost(request)}"
            return Step(what, request.program, why)
        log = place.log(what, ".csv")
        # Metrics with opcodes go by their plain names, sums (`*`) by what they are made of.
        plain = [name.partition("[")[0] for name in counters if "*" not in name]
        sums = [name for name in counters if "*" in name]
        parts = tensor_ops.parts(f"{name}.sum" for name in _chip_metrics(tool)) if sums else {}
        of_sums = (part for name in sums for part in parts.get(name, ()))
        metrics = list(dict.fromkeys([*plain, *of_sums, _DURATION]))
        command = [
            str(tool.path), "--csv", "--page", "raw", "--print-units", "base", "--target-processes", "all",
            "--clock-control", "base" if request.lock_clocks else "none", "--log-file", str(log),
        ]  # fmt: skip
        if any("[" in name for name in counters) and _tells_opcodes(str(tool.path)):
            command += [_INSTANCES, "details"]
        if request.kernels:
            patterns = [expression(kernel) or f"^{re.escape(kernel)}$" for kernel in request.kernels]
            command += ["-k", request.kernels[0] if len(patterns) == 1 else f"regex:{'|'.join(patterns)}"]
        if request.launch_skip:
            command += ["--launch-skip", str(request.launch_skip)]
        if request.launch_count:
            command += ["--launch-count", str(request.launch_count)]
        if request.nvtx:
            command += ["--nvtx", "--nvtx-include", request.nvtx]
        return Step(
            what,
            (*command, "--metrics", ",".join(metrics), *request.program),
            f"{len(metrics)} metrics, each kernel replayed with cold caches until all are counted",
            logs=(log.name,),
            passes=_PASSES.get(tool.capability or "", "4 or more"),
        )

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """The `Verdict` on a step with ncu or nsys: sentences, the program's exit code, did the step fail, launches.

        Ncu ends with 0 even if no kernel ran, else with the program's own code. Why it did not even start the program
        stands in standard error.
        """
        if step.then is not None:
            return nsys.judge(step.then, ended, errors)
        if step.what == TIME:
            return Verdict((f"Time: {step.why}.",))
        if step.what in (PLAIN, ENERGY):
            return Verdict()
        outcome = understand(self.name, [*beginnings(logs), "\n".join(re.findall(r"(?m)^==ERROR== .*", errors))])
        if not outcome.started:
            return Verdict(outcome.sentences, failed=True, kernels=0, tells_status=False)
        rows = self.progress(logs) or 0
        failed = outcome.failed or (ended.code == 1 and not rows and outcome.status is None)
        status = outcome.status
        if status is None and failed:
            status = 0
        if not logs:
            return Verdict((*outcome.sentences, no_log(self.name, ended.code, errors)), status, True)
        sentences = outcome.sentences
        if outcome.no_kernels or not (rows or failed):
            sentences += (_NO_KERNEL,)
        return Verdict(sentences, status, failed, rows)

    def progress(self, logs: Sequence[Path]) -> int | None:
        """How many launches ncu has begun or written; None without a log. nsys writes at the end only."""
        texts = beginnings(logs)
        if not texts:
            return None
        begun = sum(text.count('==PROF== Profiling "') for text in texts)
        written = {row for text in texts for row in re.findall(r'(?m)^"(\d+)","(\d+)",', text)}
        return max(begun, len(written))


@functools.cache
def _about() -> Mapping[str, Any]:
    """What `counters/ncu/collect.toml` says of chips and of a basic set of counters."""
    from eprof.base.resources import folder
    from eprof.base.toml import Document

    return Document.read(folder("counters") / "ncu" / "collect.toml").data


@functools.cache
def _tells_opcodes(path: str) -> bool:
    return re.search(_DETAILS, ask([path, "--help"])) is not None


def _chip_metrics(tool: Tool) -> frozenset[str]:
    """The metrics that ncu has for this GPU's chip without suffix, none with a value for each opcode."""
    chip = _about()["chip"].get(tool.capability or "")
    text = ask([str(tool.path), "--query-metrics", *option("--chips", chip)])
    names = re.findall(r"^(?=\w+?__\w)(\w++)\s", text, re.MULTILINE)
    return frozenset(name for name in names if _PER_OPCODE not in name)


COLLECTOR = Ncu()
