"""nvprof's messages: why there is no table, or why its counts are not complete."""

import re
from collections.abc import Iterable, Sequence

from eprof.base.text import cut, few, pattern
from eprof.collect.messages import Effect, Findings, Message, of_the_driver

PROFILER_LINE = pattern(
    r'(?:[^,"=]{1,40},){0,3}[ \t]{0,40}(?:==(?P<pid>\d+|PROF|WARNING|ERROR)==|={8}(?!.*=\s*$)) (?P<text>.*)'
)
_COMMAND = pattern(r"NVPROF is profiling process (\d+), command: (.*)")
_EXAMPLES, _SHOWN = 3, 60
_LONGEST = 4000  # characters of a message that are looked at
# A log has one of these for each launch.
_ROUTINE = ("Replaying kernel ", "Profiling application: ", "Profiling result:", "Metric result:", "Event result:")

_AGAIN = "profile again"
_MAYBE_LOST = "; counts may be incomplete"
_UNSUPPORTED = "not supported on devices with compute capability "
_SKIPPED = "nvprof skipped a device that it cannot profile"
# Causes before consequences: the first that a log without a table shows explains it.
CATALOGUE = (
    *of_the_driver("nvprof"),
    Message(
        rf"{_UNSUPPORTED}8\.0",
        "nvprof does not support GPUs of compute capability 8.0 and higher",
        "use ncu (Nsight Compute) there",
        effect=Effect.FAILED,
    ),
    Message(
        rf"{_UNSUPPORTED}(?:7\.5|8|9|10|11|12)",
        "nvprof collects no counters on GPUs of this compute capability",
        "use ncu (Nsight Compute) there",
        _SKIPPED,
        Effect.FAILED,
    ),
    Message(
        rf"{_UNSUPPORTED}[\d.]+",
        "this version of nvprof collects no counters on GPUs of this compute capability",
        "profile with the nvprof of an older CUDA toolkit there",
        _SKIPPED,
    ),
    Message(
        "unable to locate OpenACC profiling library",
        "nvprof misses a part of its toolkit (libaccinj64)",
        "install it whole, or put its own bin first in PATH",
        effect=Effect.FAILED,
    ),
    Message(
        "COMPUTE_PROFILE|CUDA_PROFILE",
        "nvprof does not run while COMPUTE_PROFILE or CUDA_PROFILE is set",
        "unset it",
        effect=Effect.FAILED,
    ),
    Message(
        "Unable to import nvprof generated profile data",
        "nvprof could not read back the data that it had collected",
        f"see that the folder for temporary files has space and is writable, and {_AGAIN}",
    ),
    Message(
        r"Application received signal (?P<detail>\d+)",
        "the program was stopped by signal {detail}",
        f"mend the program so that it ends by itself, and {_AGAIN}",
        "a profiled program was stopped by signal {detail}; kernels that it would have run later are missing",
        Effect.SIGNAL,
    ),
    Message(
        r"Application returned non-zero code (?P<detail>-?\d+)",
        "the program failed with code {detail}",
        f"mend the program, and {_AGAIN}",
        "a profiled program failed with code {detail}; kernels that it would have run later are missing",
        Effect.EXIT_CODE,
    ),
    Message(
        r"Internal profil(?:ing|er) error",
        "nvprof failed with an internal error",
        "profile again with fewer counters, or with another version of nvprof",
        f"nvprof failed with an internal error{_MAYBE_LOST}",
    ),
    Message(
        r"Generated result file: (?P<detail>.*\S)",
        "the log holds no table, because nvprof wrote its result to {detail}",
        "run `nvprof -i {detail} --csv --print-gpu-trace --log-file out.csv` where nvprof is, and give out.csv",
    ),
    Message(
        "No events/metrics were profiled",
        "nvprof ran, but counted no events or metrics",
        "see that the program launches kernels, and what --kernels, --devices, --events and --metrics ask for",
    ),
    Message(
        "No kernels were profiled",
        "nvprof ran, but met no kernel",
        "see that the program launches kernels on this GPU; for child processes add --profile-child-processes",
        "a run in this log had no kernels",
    ),
    Message(
        "No CUDA application was profiled|No profile data collected",
        "nvprof saw no CUDA program",
        "see that the program uses the GPU; for child processes add --profile-child-processes",
    ),
    Message(
        "Some profiling data are not recorded|profile data not recorded|replay.*not recorded",
        "nvprof could not write all its data",
        f"call cudaDeviceReset() or cudaProfilerStop() before the program ends, and {_AGAIN}",
        f"nvprof says that some profiling data were not recorded{_MAYBE_LOST}",
    ),
    Message(
        "overflowed",
        "counters overflowed",
        'profile again with "--print-gpu-trace"',
        "nvprof says that counters overflowed, so totals are too low or missing; profile again with --print-gpu-trace",
        Effect.INCOMPLETE,
    ),
    Message(
        "can't be profiled",
        "nvprof could not collect what was asked for",
        "ask for fewer counters, or for those that `nvprof --query-metrics --query-events` lists",
        "nvprof says that some events or metrics can't be profiled, so they are missing",
        Effect.INCOMPLETE,
    ),
    Message(
        "can't be associated with any kernel",
        "nvprof could not tell which kernel its counts belong to",
        _AGAIN,
        f"nvprof says that some counts can't be associated with any kernel{_MAYBE_LOST}",
        Effect.INCOMPLETE,
    ),
    Message(
        r"(?P<detail>\d+) records have invalid timestamps",
        "the times of kernels were lost",
        "profile again with a larger --device-buffer-size",
        "nvprof says that {detail} records have invalid timestamps, so times and launches are incomplete",
        Effect.INCOMPLETE,
    ),
    Message(
        r"Found (?P<detail>\d+) invalid records",
        "nvprof's data are damaged",
        _AGAIN,
        f"nvprof says that {{detail}} records are invalid{_MAYBE_LOST}",
        Effect.INCOMPLETE,
    ),
    Message(
        "extrapolated from limited profile data",
        "nvprof counted only a part",
        _AGAIN,
        "nvprof extrapolated some event values from a part of the GPU: usable, but less exact",
    ),
    Message(
        r'(?:Event|Metric) "(?P<detail>[^"]+)" cannot be found',
        "this GPU has none of the counters that were asked for (`{detail}` is one)",
        "ask for those that `nvprof --query-metrics --query-events` lists",
        "this GPU does not have all counters that were asked for (`{detail}` is one)",
        Effect.INCOMPLETE,
    ),
    Message(
        "(?:Event|Metric).* cannot be found",
        "this GPU has none of the counters that were asked for",
        "ask for those that `nvprof --query-metrics --query-events` lists",
        "this GPU does not have all counters that were asked for",
    ),
    Message(
        "CPU profiling result",
        "the log holds a profile of the CPU and no kernels",
        "run nvprof without --cpu-profiling, with --metrics, --events or --print-gpu-trace",
    ),
    Message(
        "No API activities were profiled",
        "the log holds neither kernels nor API calls",
        "run nvprof with --metrics, --events or --print-gpu-trace",
    ),
    Message(
        "results might be incorrect",
        "nvprof doubts its results",
        _AGAIN,
        "nvprof warns that results might be incorrect with the compiler that was used",
    ),
)
# Lines of nvprof that carry no `==PID==` and say nothing about counts: not program output.
_CHATTER = pattern(
    r'(?:[^,"=]{1,40},){0,3}\s*(?:No API activities were profiled\.|This can happen because of short execution .*'
    r'|Total CPU (?:Page faults|thrashes|throttles).*: \d+|Device "[^"]+"'
    r"|(?:Regs|SSMem|DSMem|SrcMemType|DstMemType|Src Dev|Dst Dev|Src Ctx|Dst Ctx): .*"
    r"|No (?:kernels|events/metrics) were profiled\.|Internal profil(?:er|ing) error.*)"
)


def of_several_programs(commands: Iterable[str]) -> str | None:
    """What commands of several programs are of, in words, or those of one program with other arguments; else None.

    A command without arguments may be one whose arguments are not known.
    """
    whole = list(dict.fromkeys(" ".join(command.split()) for command in commands if command.strip()))
    programs = list(dict.fromkeys(_program(command) for command in whole))
    detailed = [command for command in whole if " " in command]
    if len(programs) > 1:
        return f"{len(programs)} programs: {_listed(programs)}; their counts and times are added up or set side by side"
    if len(detailed) > 1:
        return f"{len(detailed)} commands: {_listed(detailed)}; what they counted and timed is taken for one program's"
    return None


def _program(command: str) -> str:
    return re.split(r"[/\\]", command.split()[0])[-1].partition("@")[0]


def _listed(words: Sequence[str]) -> str:
    return few([f"`{cut(word, _SHOWN)}`" for word in words], _EXAMPLES)


def is_chatter(line: str) -> bool:
    """Whether a line without `==PID==` is nvprof's all the same."""
    return _CHATTER.fullmatch(line) is not None


class Messages:
    """The messages of a log, and the commands that it names."""

    def __init__(self) -> None:
        self._findings = Findings(CATALOGUE)
        self.command: str | None = None
        self.commands: dict[str, None] = {}
        self.profiled = False

    def hear(self, number: int, text: str) -> None:
        """Look at the text of line `number`."""
        command = _COMMAND.match(text)
        if command:
            self.profiled = True
            self.command = self.command or command[2].strip() or None
            self.commands.setdefault(command[2].strip()[:_LONGEST])
        elif not text.startswith(_ROUTINE):
            self._findings.look(number, text[:_LONGEST])

    def notes(self) -> list[str]:
        """Sentences for a log that has tables."""
        notes = []
        several = of_several_programs(self.commands)
        if several is not None:
            notes.append(f"the log is of {several}")
        for message, quote in self._findings.quotes.items():
            if message.note:
                notes.append(f"{message.note.format(detail=quote.detail)} (line {quote.number})")
        return notes

    def why_no_table(self) -> str | None:
        """One sentence on why the log has no table, or None if it does not say."""
        return self._findings.explanation()
