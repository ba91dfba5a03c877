"""How busy a GPU's units are while the program runs, by NVML's GPM: no replay, every kernel. For `eprof timeline`."""

from collections.abc import Sequence
from pathlib import Path

from eprof.collect.collector import ENERGY, PROGRAM, Collector, Place, Request, Step, Tool, Verdict
from eprof.collect.meters.nvml import sampled_boards
from eprof.collect.process import Ended


class Gpm(Collector):
    """The program alone, while NVML samples power and activity."""

    name = "gpm"
    rank = 96
    kinds = (ENERGY,)
    counts_all = True
    processor = PROGRAM
    samples_activity = True

    def find(self, program: str = "") -> Tool:
        """Whether a GPU of this machine samples its activity."""
        boards, why = sampled_boards()
        if not boards:
            return Tool(self.name, False, why)
        return Tool(self.name, True, "how busy units are, ten times a second, for `eprof timeline RUN --costs TABLE`")

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """One run without a profiler in the program."""
        return Step(what, request.program, "the program alone, while NVML samples power and activity")

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """Nothing beside the program ran that could fail."""
        return Verdict()


COLLECTOR = Gpm()
