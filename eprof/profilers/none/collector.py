"""No profiler: nothing is counted. The program runs once, while power is read and its output is looked at for marks."""

from collections.abc import Sequence
from pathlib import Path

from eprof.collect.collector import ENERGY, PROGRAM, Collector, Place, Request, Step, Tool, Verdict
from eprof.collect.process import Ended


class Alone(Collector):
    """The program alone, for `eprof timeline`."""

    name = "none"
    rank = 95
    kinds = (ENERGY,)
    counts_all = True
    processor = PROGRAM

    def find(self, program: str = "") -> Tool:
        """Running without a profiler is always possible."""
        return Tool(self.name, True, "nothing is counted; power by component and --mark, for `eprof timeline`")

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """One run without a profiler."""
        meters = ", while all power meters are read" if what == ENERGY else ""
        return Step(what, request.program, f"the program alone{meters}")

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """Without a profiler there is nothing to judge."""
        return Verdict()


COLLECTOR = Alone()
