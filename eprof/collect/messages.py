"""What a profiler's messages mean. Each profiler has a catalogue of its own: `profilers/*/messages.py`."""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

PERMISSION_REMEDY = (
    "run as root or with CAP_SYS_ADMIN, or let everyone count: put `options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiler.conf, rebuild the initramfs and "
    "reboot; on a shared machine or in a container it is the host administrator's switch"
)
DRIVER_REMEDY = "install one, start a container with --gpus all, or use --profiler oclgrind"
_LONGEST_LOG = 8 << 20
_LONGEST_QUOTE = 160
# Lines of a log that may be messages; its tables may have millions of others.
_MESSAGE_LINE = r"(?m)^(?:==\w+== ?|=+ |(?=No |Internal ))(.*)"
# nvprof, ncu since 2023 or so, and ncu before, of its options.
_ERROR = r"(?m)^(?:=+ ?(?:Error: |ERROR=+ )|(?=unrecognised option|the (?:required )?argument for option))(.*)"


class Effect(Enum):
    """What a message says about a run that is being collected."""

    NOTHING = "it only explains a log without a table"
    INCOMPLETE = "some counts or launches are missing"
    FAILED = "nothing was collected"
    NOT_STARTED = "nothing was collected, and the program did not run"
    NO_KERNELS = "the program ran no kernel that was profiled"
    EXIT_CODE = "the program's exit code is the detail"
    SIGNAL = "the signal that ended the program is the detail"


class Message(NamedTuple):
    """A message: a pattern, its cause and its remedy as half sentences.

    note: a sentence for a log that has tables all the same. `{detail}` stands for the group `detail` of the pattern.
    """

    pattern: str
    cause: str
    remedy: str
    note: str = ""
    effect: Effect = Effect.NOTHING


class Quote(NamedTuple):
    """A message as it was found: the number and text of its line, and the detail in it."""

    number: int
    text: str
    detail: str

    def explain(self, message: Message, speaker: str) -> str:
        """Cause, the profiler's own words, and remedy. speaker: "line 3", or the profiler."""
        cause = message.cause.format(detail=self.detail)
        return f"{cause} ({speaker} says: {shortened(self.text)}); {message.remedy.format(detail=self.detail)}"


class Findings:
    """The messages of a catalogue that were found, each with the first line that shows it."""

    def __init__(self, catalogue: Sequence[Message]) -> None:
        self._catalogue = catalogue
        self.quotes: dict[Message, Quote] = {}

    def look(self, number: int, text: str) -> Message | None:
        """Look for a message in a line; of several, the first of the catalogue counts."""
        for message in self._catalogue:
            match = re.search(message.pattern, text)
            if match is not None:
                self.quotes.setdefault(message, Quote(number, text.strip(), match.groupdict().get("detail") or ""))
                return message
        return None

    def explanation(self) -> str | None:
        """Why there is no table, if a message says so: a catalogue names causes before consequences."""
        for message in self._catalogue:
            quote = self.quotes.get(message)
            if quote is not None:
                return quote.explain(message, f"line {quote.number}")
        return None

    def of(self, effect: Effect) -> list[Quote]:
        """The messages found that have this effect."""
        return [quote for message, quote in self.quotes.items() if message.effect is effect]


class Outcome(NamedTuple):
    """What the logs of a run say: sentences for the user, and the program's own exit status, if they have it."""

    sentences: tuple[str, ...]
    failed: bool
    started: bool
    no_kernels: bool
    status: int | None


def understand(profiler: str, catalogue: Sequence[Message], texts: Iterable[str]) -> Outcome:
    """What the texts of a profiler's logs mean."""
    findings = Findings(catalogue)
    for text in texts:
        for line in re.findall(_MESSAGE_LINE, text):
            findings.look(0, line)
    started = not findings.of(Effect.NOT_STARTED)
    return Outcome(
        sentences=tuple(_sentences(profiler, findings)),
        failed=not started or bool(findings.of(Effect.FAILED)),
        started=started,
        no_kernels=bool(findings.of(Effect.NO_KERNELS)),
        status=_status(findings),
    )


def _sentences(profiler: str, findings: Findings) -> Iterable[str]:
    for message, quote in findings.quotes.items():
        if message.effect in (Effect.FAILED, Effect.NOT_STARTED):
            yield f"{quote.explain(message, profiler)}."
        elif message.effect is Effect.INCOMPLETE:
            yield f"{message.note.format(detail=quote.detail)}."


def _status(findings: Findings) -> int | None:
    """The program's exit status as a shell reports it; a signal is the cause of a code."""
    for quote in findings.of(Effect.SIGNAL):
        if quote.detail:
            return 128 + int(quote.detail)
    for quote in findings.of(Effect.EXIT_CODE):
        return int(quote.detail) & 0xFF
    return None


def of_the_driver(profiler: str) -> tuple[Message, ...]:
    """Refusals of NVIDIA's driver, which every profiler passes on."""
    return (
        Message(
            "ERR_NVGPUCTRPERM|does not have permission to (?:profile|access)|NVSOLN1000",
            f"{profiler} had no permission to read the GPU's counters",
            PERMISSION_REMEDY,
            f"{profiler} had no permission to read counters; set NVreg_RestrictProfilingToAdminUsers=0 or run it as "
            "root",
            Effect.FAILED,
        ),
        _refusal("ERR_NVCMPGPU", "counters of a mining GPU cannot be read", "profile on another GPU"),
        _refusal("active SLI group", "a GPU of an active SLI group cannot be profiled", "switch SLI off"),
        _refusal(
            "Windows Subsystem for Linux", "this GPU cannot be profiled under WSL", "profile on the host or on Linux"
        ),
        _refusal(
            "driver resource was unavailable",
            "another profiler holds the GPU's counters",
            "end it (for DCGM: `dcgmi profile --pause`), and profile again",
        ),
        _refusal(
            "unable to locate cuda driver|Driver could not be loaded",
            f"{profiler} found no NVIDIA driver (libcuda.so.1)",
            DRIVER_REMEDY,
        ),
        _refusal(
            "CUDA device error|GPU profiling skipped",
            "CUDA finds no GPU that it can use",
            "see whether nvidia-smi works here; a container needs --gpus all, a job a GPU of its own, and the driver "
            f"must not be older than {profiler}",
        ),
        _refusal(
            "incompatible CUDA driver",
            f"{profiler} and the driver do not fit together",
            f"use the {profiler} of the driver's CUDA version",
        ),
    )


def _refusal(pattern: str, cause: str, remedy: str) -> Message:
    return Message(pattern, cause, remedy, effect=Effect.FAILED)


def no_log(profiler: str, code: int | None, errors: str) -> str:
    """A sentence on a profiler that left nothing, in its own words if it had any."""
    error = re.search(_ERROR, errors)
    why = "; what it said is above, or in output/"
    if error is not None:
        why = f": {error[1].strip()[:_LONGEST_QUOTE]}"
    status = f" (exit code {code})" if code else ""
    return f"{profiler} wrote no log{status}{why.rstrip('.')}."


def beginnings(paths: Sequence[Path]) -> list[str]:
    """The beginnings of log files, where the messages are; tables of gigabytes are not read here."""
    texts = []
    for path in paths:
        with path.open("rb") as file:
            texts.append(file.read(_LONGEST_LOG).decode("utf-8", "replace"))
    return texts


def shortened(text: str) -> str:
    """A line of a log, short enough for a sentence."""
    if len(text) <= _LONGEST_QUOTE:
        return text
    return text[: _LONGEST_QUOTE - 3] + "..."
