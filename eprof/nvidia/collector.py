"""A profiler of NVIDIA GPUs, which is a command: found on this machine, beside a GPU that it counts on."""

import re

from eprof.collect.collector import Collector, Tool
from eprof.collect.machine import GIVE_GPU, NO_GPU, ask, executable, gpu, has_gpu


class GpuCollector(Collector):
    """A profiler of NVIDIA GPUs, which is a command.

    commands: its names. places: folders where it may be, beside PATH. version: a pattern for what `--version` prints.
    good_for: what it does on GPUs that it `fits`; unfit, instead: why it cannot on others, and what to use there.
    """

    commands: tuple[str, ...]
    places: tuple[str, ...]
    version: str
    install: str
    good_for: str
    unfit: str
    instead: str

    def find(self, program: str = "") -> Tool:
        """Look for the profiler's command and a GPU that it counts on; `Tool.why` says if one is missing."""
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
