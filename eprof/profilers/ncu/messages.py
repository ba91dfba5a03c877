"""What Nsight Compute says around its tables: why there is none, or what is not right with it."""

import re
from dataclasses import dataclass, field

CSV = "ncu --csv --page raw --print-units base --log-file FILE.csv PROGRAM"
IMPORT = "ncu --import FILE.ncu-rep --csv --page raw --print-units base > out.csv"
IMPORTED = f"the report as a CSV: `{IMPORT}`"
_LINE = re.compile(r"\s*==(PROF|WARNING|ERROR|INFO)== ?(.*)")
_BARE = re.compile(r"(?:unrecognised option|the argument for option|Invalid option) \S.*")  # of ncu up to 2022
# Pages and summaries that hold no counters of launches, by the line that names their columns.
_OTHERS = (
    (re.compile(r'"?(?:Address|Line No)"?(?:,| {2,})"?Source"?(?:[, ].*)?\s*'), "its page of source code"),
    (re.compile(r'"?Launch Attribute"?(?:,| +)"?Value"?\s*'), "its page of the session"),
    (
        re.compile(r'"Domain","Range:.*"Kernel Name".*'),
        "its summary per NVTX range, in which ranges within ranges have the same launches",
    ),
)
_FIRST = frozenset('"ALutI')  # letters of _BARE and _OTHERS
_CONNECTED = re.compile(r"Connected to process (\d+)(?: \((.*)\))?")
_OPTIONS = re.compile(r"No kernels were profiled|No ranges were profiled|No graphs were profiled")
# Cause and cure; the first that is found in a log without a table explains it: causes before consequences.
_SIGNS = (
    (
        "ERR_NVGPUCTRPERM|does not have permission to (?:access|profile)",
        "ncu had no permission to read the GPU's counters",
        "load the NVIDIA kernel module with NVreg_RestrictProfilingToAdminUsers=0, or run ncu as root",
    ),
    ("ERR_NVCMPGPU", "counters of a mining GPU cannot be read", "profile on another GPU"),
    ("active SLI group", "a GPU of an active SLI group cannot be profiled", "switch SLI off"),
    ("Windows Subsystem for Linux", "this GPU cannot be profiled under WSL", "profile on the host or on Linux"),
    (
        "driver resource was unavailable",
        "another profiler holds the GPU's counters",
        "end it (for DCGM: `dcgmi profile --pause`), and profile again",
    ),
    (
        "failed to connect to the CUDA driver|Driver could not be loaded",
        "ncu found no CUDA driver",
        "see that `nvidia-smi` works on this machine, and profile again",
    ),
    (
        "not supported on|Unsupported GPU|is not supported for profiling",
        "this version of ncu does not support the GPU",
        "profile with nvprof below capability 7.0, or with a newer ncu on a newer GPU",
    ),
    (
        r"[Aa]pplication returned an error code \((\d+)\)",
        "the program ended with an error before ncu had a result",
        "mend the program so that it ends with code 0, and profile again",
    ),
    (
        "[Aa]pplication (?:received signal|was terminated)|[Tt]he application was killed",
        "the program was stopped before ncu had a result",
        "mend the program so that it ends by itself, and profile again",
    ),
    (
        "No (?:kernels|ranges|graphs) were profiled",
        "ncu profiled no kernel",
        "see that the program launches kernels on the GPU, that the filters (-k, -s, -c, --nvtx) let some through, and "
        "give ncu `--target-processes all`",
    ),
    (
        r"Report: .*\.ncu-rep",
        "ncu wrote its result to a report file",
        f"make a CSV of it with `{IMPORT}`",
    ),
)  # fmt: skip
_NOTED = 3


@dataclass
class Messages:
    """What was said in a log, with the numbers of the lines."""

    processes: dict[str, str] = field(default_factory=dict)
    said: list[tuple[int, str, str]] = field(default_factory=list)
    page: int | None = None
    other: tuple[int, str] | None = None

    def hear(self, number: int, text: str) -> bool:
        """Look at a line; whether it is ncu's own."""
        found = _LINE.match(text)
        if not found:
            return self._is_other(number, text)
        connected = _CONNECTED.match(found[2])
        if connected:
            self.processes[connected[1]] = connected[2] or ""
        elif found[1] in ("ERROR", "WARNING") or found[2].startswith("Report:"):
            self.said.append((number, found[1], found[2].strip()))
        return True

    def _is_other(self, number: int, text: str) -> bool:
        """Whether a line is an error of an old ncu; one that begins what has no counters is kept in mind."""
        if text[:1] not in _FIRST:  # nearly all of what a program says
            return False
        if _BARE.fullmatch(text.rstrip()):
            self.said.append((number, "ERROR", text.strip()))
            return True
        if self.other is None:
            self.other = next(((number, what) for shape, what in _OTHERS if shape.fullmatch(text)), None)
        return False

    def notes(self) -> list[str]:
        """Sentences for a log that has a table: what ncu warned of."""
        said = list(dict.fromkeys((text, kind) for _, kind, text in self.said if kind in ("ERROR", "WARNING")))
        notes = [f"ncu says: {_short(text)}" for text, _ in said[:_NOTED]]
        if any(kind == "ERROR" for _, kind, _ in self.said):
            notes.append("ncu reported an error, so launches may be missing from the log; look at what it says")
        return [*notes, f"ncu says {len(said) - _NOTED} other things of this kind"] if len(said) > _NOTED else notes

    def why_no_table(self) -> str:
        """One sentence for a log without a table."""
        for pattern, cause, cure in _SIGNS:
            for number, _, text in self.said:
                if re.search(pattern, text):
                    return f"{cause} (line {number} says: {_short(text)}); {cure}"
        if self.other is not None:
            number, what = self.other
            return f"ncu printed {what} (line {number}), which is nothing to count with; print {IMPORTED}"
        if self.page is not None:
            return (
                f"the tables of ncu's page for reading (line {self.page}) are not below a line that names their kernel "
                f"(`name(...), Context 1, Stream 7`); give the whole page, or make a CSV with `{CSV}`"
            )
        for number, kind, text in self.said:
            if kind == "ERROR":
                return f"ncu failed (line {number} says: {_short(text)}); mend that, and profile again"
        if self.processes:
            number = len(self.processes)
            return (
                f"ncu watched {number} process{'es' if number > 1 else ''} but wrote no table; see that the program "
                "launches kernels on the GPU, ends by itself, and that no filter (-k, -s, -c) leaves out all of them"
            )
        return f"no table of ncu was found; make one with `{CSV}`"


def _short(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "..."
