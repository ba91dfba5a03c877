"""What nvprof says around its tables: why there is none, or why its counts are not complete."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eprof.base.text import cut, few

PROFILER_LINE = re.compile(
    r'(?:[^,"=]{1,40},){0,3}[ \t]{0,40}(?:==(?P<pid>\d+|PROF|WARNING|ERROR)==|={8}(?!.*=\s*$)) (?P<text>.*)'
)
_COMMAND = re.compile(r"NVPROF is profiling process (\d+), command: (.*)")
_NEW_NUMBERS = "; counts may be incomplete"
_EXAMPLES, _SHOWN = 3, 60
_LONGEST = 4000  # characters of a message that are looked at


@dataclass(frozen=True)
class Sign:
    """A message to recognise. `cause` and `cure` make the sentence for a log without table; `note` is for others."""

    pattern: re.Pattern[str]
    cause: str
    cure: str
    note: str | None = None


def _sign(pattern: str, cause: str, cure: str, note: str | None = None) -> Sign:
    return Sign(re.compile(pattern), cause, cure, note)


_AGAIN = "profile again"
_UNSUPPORTED = "not supported on devices with compute capability "
# The first that occurs in a log without a table explains it: causes before consequences.
SIGNS = (
    _sign(
        "ERR_NVGPUCTRPERM|does not have permission to profile",
        "nvprof had no permission to read the GPU's counters",
        "load the NVIDIA kernel module with NVreg_RestrictProfilingToAdminUsers=0, or run nvprof as root",
        "nvprof had no permission to read counters; set NVreg_RestrictProfilingToAdminUsers=0 or run it as root",
    ),
    _sign(
        r"not supported on devices with compute capability 8\.0",
        "nvprof does not support GPUs of compute capability 8.0 and higher",
        "profile with Nsight Compute (ncu) there",
    ),
    _sign(
        "|".join(_UNSUPPORTED + capability for capability in (r"7\.5", "8", "9", "10", "11", "12")),
        "nvprof collects no counters on GPUs of this compute capability",
        "profile with Nsight Compute (ncu) there",
        "nvprof skipped a device that it cannot profile",
    ),
    _sign(
        _UNSUPPORTED + r"(?P<detail>[\d.]+)",
        "this version of nvprof collects no counters on GPUs of this compute capability",
        "profile with the nvprof of an older CUDA toolkit there",
        "nvprof skipped a device that it cannot profile",
    ),
    _sign("ERR_NVCMPGPU", "counters of a mining GPU cannot be read", "profile on another GPU"),
    _sign("active SLI group", "a GPU of an active SLI group cannot be profiled", "switch SLI off"),
    _sign("Windows Subsystem for Linux", "this GPU cannot be profiled under WSL", "profile on the host or on Linux"),
    _sign(
        "Unable to import nvprof generated profile data",
        "nvprof could not read back the data that it had collected",
        f"see that the folder for temporary files has space and is writable, and {_AGAIN}",
    ),
    _sign(
        r"Application received signal (?P<detail>\d+)",
        "the program was stopped by signal {detail}",
        f"mend the program so that it ends by itself, and {_AGAIN}",
        "a profiled program was stopped by signal {detail}; kernels that it would have run later are missing",
    ),
    _sign(
        r"Application returned non-zero code (?P<detail>\d+)",
        "the program failed with code {detail}",
        f"mend the program, and {_AGAIN}",
        "a profiled program failed with code {detail}; kernels that it would have run later are missing",
    ),
    _sign(
        "unable to locate cuda driver|CUDA device error|GPU profiling skipped|incompatible CUDA driver",
        "nvprof could not use the GPU's driver",
        "see that `nvidia-smi` works and that the driver fits this CUDA version",
    ),
    _sign(
        r"Internal profil(?:ing|er) error",
        "nvprof failed with an internal error",
        "profile again with fewer counters, or with another version of nvprof",
        "nvprof failed with an internal error" + _NEW_NUMBERS,
    ),
    _sign(
        r"Generated result file: (?P<detail>.*\S)",
        "the log holds no table, because nvprof wrote its result to {detail}",
        "run `nvprof -i {detail} --csv --print-gpu-trace --log-file out.csv` where nvprof is, and give out.csv",
    ),
    _sign(
        r"No events/metrics were profiled",
        "nvprof ran, but counted no events or metrics",
        "see that the program launches kernels, and what --kernels, --devices, --events and --metrics ask for",
    ),
    _sign(
        r"No kernels were profiled",
        "nvprof ran, but met no kernel",
        "see that the program launches kernels on this GPU; for child processes add --profile-child-processes",
        "a run in this log had no kernels",
    ),
    _sign(
        r"No CUDA application was profiled|No profile data collected",
        "nvprof saw no CUDA program",
        "see that the program uses the GPU; for child processes add --profile-child-processes",
    ),
    _sign(
        r"Some profiling data are not recorded|profile data not recorded|replay.*not recorded",
        "nvprof could not write all its data",
        f"call cudaDeviceReset() or cudaProfilerStop() before the program ends, and {_AGAIN}",
        "nvprof says that some profiling data were not recorded" + _NEW_NUMBERS,
    ),
    _sign(
        r"[Ee]vents? or metrics overflowed|overflowed",
        "counters overflowed",
        'profile again with "--print-gpu-trace"',
        "nvprof says that counters overflowed, so totals are too low or missing; profile again with --print-gpu-trace",
    ),
    _sign(
        r"can't be profiled",
        "nvprof could not collect what was asked for",
        "ask for fewer counters, or for those that `nvprof --query-metrics --query-events` lists",
        "nvprof says that some events or metrics can't be profiled, so they are missing",
    ),
    _sign(
        r"can't be associated with any kernel",
        "nvprof could not tell which kernel its counts belong to",
        _AGAIN,
        "nvprof says that some counts can't be associated with any kernel" + _NEW_NUMBERS,
    ),
    _sign(
        r"(?P<detail>\d+) records have invalid timestamps",
        "the times of kernels were lost",
        "profile again with a larger --device-buffer-size",
        "nvprof says that {detail} records have invalid timestamps, so times and launches are incomplete",
    ),
    _sign(
        r"Found (?P<detail>\d+) invalid records",
        "nvprof's data are damaged",
        _AGAIN,
        "nvprof says that {detail} records are invalid" + _NEW_NUMBERS,
    ),
    _sign(
        r"extrapolated from limited profile data",
        "nvprof counted only a part",
        _AGAIN,
        "nvprof extrapolated some event values from a part of the GPU: usable, but less exact",
    ),
    _sign(
        r'(?:Event|Metric) "(?P<detail>[^"]+)" cannot be found',
        "this GPU has none of the counters that were asked for (`{detail}` is one)",
        "ask for those that `nvprof --query-metrics --query-events` lists",
        "this GPU does not have all counters that were asked for (`{detail}` is one)",
    ),
    _sign(
        "(?:Event|Metric).* cannot be found",
        "this GPU has none of the counters that were asked for",
        "ask for those that `nvprof --query-metrics --query-events` lists",
        "this GPU does not have all counters that were asked for",
    ),
    _sign(
        r"CPU profiling result",
        "the log holds a profile of the CPU and no kernels",
        "run nvprof without --cpu-profiling, with --metrics, --events or --print-gpu-trace",
    ),
    _sign(
        r"No API activities were profiled",
        "the log holds neither kernels nor API calls",
        "run nvprof with --metrics, --events or --print-gpu-trace",
    ),
    _sign(
        r"results might be incorrect",
        "nvprof doubts its results",
        _AGAIN,
        "nvprof warns that results might be incorrect with the compiler that was used",
    ),
)
# In every text that some sign is found in, at least one of these stands: looking for them is 20 times as fast.
_WORDS = (
    "ERR_NV",
    "permission to profile",
    "not supported on devices",
    "SLI group",
    "Windows Subsystem",
    "Unable to import",
    "Application re",
    "driver",
    "CUDA device error",
    "GPU profiling skipped",
    "Internal profil",
    "Generated result file",
    " profiled",
    "No profile data",
    "not recorded",
    "overflowed",
    "can't be ",
    "records",
    "extrapolated",
    "cannot be found",
    "results might be",
    "CPU profiling",
)
# Lines of nvprof that carry no `==PID==` and say nothing about counts: not program output.
_CHATTER = re.compile(
    r'(?:[^,"=]{1,40},){0,3}\s*(?:No API activities were profiled\.|This can happen because of short execution .*'
    r'|Total CPU (?:Page faults|thrashes|throttles).*: \d+|Device "[^"]+"'
    r"|(?:Regs|SSMem|DSMem|SrcMemType|DstMemType|Src Dev|Dst Dev|Src Ctx|Dst Ctx): .*"
    r"|No (?:kernels|events/metrics) were profiled\.|Internal profil(?:er|ing) error.*)"
)


def of_several_programs(commands: Iterable[str]) -> str | None:
    """What commands of several programs are of, in words, or those of one program with other arguments; else None.

    A command without arguments may be one whose arguments are not told.
    """
    whole = list(dict.fromkeys(" ".join(command.split()) for command in commands if command.strip()))
    programs = list(dict.fromkeys(_program(command) for command in whole))
    told = [command for command in whole if " " in command]
    if len(programs) > 1:
        return f"{len(programs)} programs: {_listed(programs)}; their counts and times are added up or set side by side"
    if len(told) > 1:
        return f"{len(told)} commands: {_listed(told)}; what they counted and timed is taken for one program's"
    return None


def _program(command: str) -> str:
    return re.split(r"[/\\]", command.split()[0])[-1].partition("@")[0]


def _listed(words: Sequence[str]) -> str:
    return few([f"`{cut(word, _SHOWN)}`" for word in words], _EXAMPLES)


def is_chatter(line: str) -> bool:
    """Whether a line without `==PID==` is nvprof's all the same."""
    return _CHATTER.fullmatch(line) is not None


@dataclass
class Messages:
    """What was said in a log: for each sign the first line that shows it."""

    hits: dict[Sign, tuple[int, str, str]] = field(default_factory=dict)
    counts: dict[Sign, int] = field(default_factory=dict)
    command: str | None = None
    commands: dict[str, None] = field(default_factory=dict)
    profiled: bool = False

    def hear(self, number: int, text: str) -> None:
        """Look at the text of line `number`."""
        command = _COMMAND.match(text)
        if command:
            self.profiled = True
            self.command = self.command or command[2].strip() or None
            self.commands.setdefault(command[2].strip()[:_LONGEST])
            return
        text = text[:_LONGEST]
        if not any(map(text.__contains__, _WORDS)):
            return
        for sign in SIGNS:
            found = sign.pattern.search(text)
            if found:
                self.counts[sign] = self.counts.get(sign, 0) + 1
                self.hits.setdefault(sign, (number, text.strip(), found.groupdict().get("detail") or ""))
                return

    def notes(self) -> list[str]:
        """Sentences for a log that has tables."""
        several = of_several_programs(self.commands)
        return [
            *([f"the log is of {several}"] if several else []),
            *(
                f"{sign.note.format(detail=detail)} (line {number})"
                for sign, (number, _, detail) in self.hits.items()
                if sign.note
            ),
        ]

    def why_no_table(self) -> str | None:
        """One sentence on why the log has no table, or None if it does not say."""
        for sign in SIGNS:
            if sign in self.hits:
                number, text, detail = self.hits[sign]
                said = text if len(text) <= 160 else text[:157] + "..."
                cause, cure = sign.cause.format(detail=detail), sign.cure.format(detail=detail)
                return f"{cause} (line {number} says: {said}); {cure}"
        return None
