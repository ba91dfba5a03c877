"""ncu's messages: why there is no table, or what is not right with it."""

from eprof.base.text import counted, pattern
from eprof.collect.messages import Findings, shortened

CSV = "ncu --csv --page raw --print-units base --log-file FILE.csv PROGRAM"
IMPORT = "ncu --import FILE.ncu-rep --csv --page raw --print-units base > out.csv"
IMPORTED = f"the report as a CSV: `{IMPORT}`"
_LINE = pattern(r"\s*==(PROF|WARNING|ERROR|INFO)== ?(.*)")
_BARE = pattern(r"(?:unrecognised option|the argument for option|Invalid option) \S.*")  # of ncu up to 2022
# Pages and summaries that hold no counters of launches, by the line that names their columns.
_OTHERS = (
    (pattern(r'"?(?:Address|Line No)"?(?:,| {2,})"?Source"?(?:[, ].*)?\s*'), "its page of source code"),
    (pattern(r'"?Launch Attribute"?(?:,| +)"?Value"?\s*'), "its page of the session"),
    (
        pattern(r'"Domain","Range:.*"Kernel Name".*'),
        "its summary per NVTX range, in which ranges within ranges have the same launches",
    ),
)
_FIRST = frozenset('"ALutI')  # letters of _BARE and _OTHERS
_CONNECTED = pattern(r"Connected to process (\d+)(?: \((.*)\))?")
_NOTED = 3


class Messages:
    """The messages of a log, with the numbers of their lines.

    other_page: the line at which a page without counters begins, and what it is; page: that of ncu's page for reading.
    """

    def __init__(self) -> None:
        self._findings = Findings("ncu")
        self._lines: list[tuple[int, str, str]] = []
        self._other_page: tuple[int, str] | None = None
        self.processes: dict[str, str] = {}
        self.page: int | None = None

    def hear(self, number: int, text: str) -> bool:
        """Look at a line for a message of ncu; whether it is ncu's own."""
        line = _LINE.match(text)
        if not line:
            return self._is_bare(number, text)
        kind, words = line.groups()
        connected = _CONNECTED.match(words)
        if connected:
            self.processes[connected[1]] = connected[2] or ""
        elif kind in ("ERROR", "WARNING") or words.startswith("Report:"):
            self._note(number, kind, words.strip())
        return True

    def _note(self, number: int, kind: str, text: str) -> None:
        self._lines.append((number, kind, text))
        self._findings.look(number, text)

    def _is_bare(self, number: int, text: str) -> bool:
        """Whether a line is an error message of an old ncu; one that begins a page without counters is kept in mind."""
        if text[:1] not in _FIRST:  # nearly all of what a program says
            return False
        if _BARE.fullmatch(text.rstrip()):
            self._note(number, "ERROR", text.strip())
            return True
        if self._other_page is None:
            pages = (page for shape, page in _OTHERS if shape.fullmatch(text))
            self._other_page = next(((number, page) for page in pages), None)
        return False

    def notes(self) -> list[str]:
        """Sentences for a log that has a table of ncu: what its messages warn of."""
        texts = list(dict.fromkeys((text, kind) for _, kind, text in self._lines if kind in ("ERROR", "WARNING")))
        notes = [f"ncu says: {shortened(text)}" for text, _ in texts[:_NOTED]]
        if any(kind == "ERROR" for _, kind, _ in self._lines):
            notes.append("ncu reported an error, so launches may be missing from the log; look at what it says")
        if len(texts) > _NOTED:
            notes.append(f"ncu says {len(texts) - _NOTED} other things of this kind")
        return notes

    def why_no_table(self) -> str:
        """One sentence for a log without a table of ncu, by its messages."""
        if explanation := self._findings.explanation():
            return explanation
        if self._other_page is not None:
            number, page = self._other_page
            return f"ncu printed {page} (line {number}), which is nothing to count with; print {IMPORTED}"
        if self.page is not None:
            return (
                f"the tables of ncu's page for reading (line {self.page}) are not below a line that names their kernel "
                f"(`name(...), Context 1, Stream 7`); give the whole page, or make a CSV with `{CSV}`"
            )
        for number, kind, text in self._lines:
            if kind == "ERROR":
                return f"ncu failed (line {number} says: {shortened(text)}); mend that, and profile again"
        if not self.processes:
            return f"no table of ncu was found; make one with `{CSV}`"
        processes = counted(len(self.processes), "process", "processes")
        return (
            f"ncu watched {processes} but wrote no table; see that the program launches kernels on the "
            "GPU, ends by itself, and that no filter (-k, -s, -c) leaves out all of them"
        )
