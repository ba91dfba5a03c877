"""nvprof's messages: why there is no table, or why its counts are not complete."""

from eprof.base.text import pattern
from eprof.collect.messages import Findings
from eprof.logs.rows.log import of_several_programs

PROFILER_LINE = pattern(
    r'(?:[^,"=]{1,40},){0,3}[ \t]{0,40}(?:==(?P<pid>\d+|PROF|WARNING|ERROR)==|={8}(?!.*=\s*$)) (?P<text>.*)'
)
_COMMAND = pattern(r"NVPROF is profiling process (\d+), command: (.*)")
_EXAMPLES, _SHOWN = 3, 60
_LONGEST = 4000  # characters of a message that are looked at
# A log has one of these for each launch.
_ROUTINE = ("Replaying kernel ", "Profiling application: ", "Profiling result:", "Metric result:", "Event result:")

# Lines of nvprof that carry no `==PID==` and say nothing about counts: not program output.
_CHATTER = pattern(
    r'(?:[^,"=]{1,40},){0,3}\s*(?:No API activities were profiled\.|This can happen because of short execution .*'
    r'|Total CPU (?:Page faults|thrashes|throttles).*: \d+|Device "[^"]+"'
    r"|(?:Regs|SSMem|DSMem|SrcMemType|DstMemType|Src Dev|Dst Dev|Src Ctx|Dst Ctx): .*"
    r"|No (?:kernels|events/metrics) were profiled\.|Internal profil(?:er|ing) error.*)"
)


def is_chatter(line: str) -> bool:
    """Whether a line without `==PID==` is nvprof's all the same."""
    return _CHATTER.fullmatch(line) is not None


class Messages:
    """The messages of a log, and the commands that it names."""

    def __init__(self) -> None:
        self._findings = Findings("nvprof")
        self.command: str | None = None
        self.commands: dict[str, None] = {}
        self.profiled = False

    def hear(self, number: int, text: str) -> None:
        """Look at the text of line `number` for a message of nvprof."""
        command = _COMMAND.match(text)
        if command:
            self.profiled = True
            self.command = self.command or command[2].strip() or None
            self.commands.setdefault(command[2].strip()[:_LONGEST])
        elif not text.startswith(_ROUTINE):
            self._findings.look(number, text[:_LONGEST])

    def notes(self) -> list[str]:
        """Sentences for a log that has nvprof's tables, by its messages."""
        notes = []
        several = of_several_programs(self.commands)
        if several is not None:
            notes.append(f"the log is of {several}")
        for message, quote in self._findings.quotes.items():
            if message.note:
                notes.append(f"{message.note.format(detail=quote.detail)} (line {quote.number})")
        return notes

    def why_no_table(self) -> str | None:
        """One sentence on why nvprof's log has no table, or None if its messages do not say."""
        return self._findings.explanation()
