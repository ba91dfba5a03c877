"""No profiler: nothing is counted. The program runs once, while power is read and its output is looked at for marks."""

from eprof.collect.collector import ProgramAlone, Tool


class Alone(ProgramAlone):
    """The program alone, while its power is read."""

    name = "none"
    rank = 95
    meanwhile = "all power meters are read"

    def find(self, program: str = "") -> Tool:
        """Running without a profiler is always possible."""
        return Tool(self.name, True, "nothing is counted; power by component and --mark, for `eprof timeline`")


COLLECTOR = Alone()
