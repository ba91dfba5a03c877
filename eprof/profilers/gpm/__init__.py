"""How busy a GPU's units are while the program runs, by NVML's GPM: no replay, every kernel. For `eprof timeline`."""

from eprof.collect.collector import ProgramAlone, Tool
from eprof.collect.nvml import sampled_boards


class Gpm(ProgramAlone):
    """The program alone, while NVML samples power and activity."""

    name = "gpm"
    rank = 96
    samples_activity = True
    meanwhile = "NVML samples power and activity"

    def find(self, program: str = "") -> Tool:
        """The `Tool` that samples how busy a GPU is; not usable where no GPU of this machine tells that."""
        boards, why = sampled_boards()
        if not boards:
            return Tool(self.name, False, why)
        return Tool(self.name, True, "how busy units are, ten times a second, for `eprof timeline RUN --costs TABLE`")


COLLECTOR = Gpm()
