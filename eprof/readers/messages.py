"""Profilers' messages in logs, and what they mean by `counters/messages.toml` and `counters/*/messages.toml`."""

import functools
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from eprof.base.text import phrase

ASSERTION = "Assertion"  # in a line of a program that is worth a look: it may say why the program ended
_TEXTS = ("pattern", "cause", "remedy", "note")
_LONGEST_LOG = 8 << 20
_LONGEST_QUOTE = 160
# Lines of a log that may be messages; its tables may have millions of others.
_MESSAGE_LINE = r"(?m)^(?:==\w+== ?|=+ |(?=No |Internal ))(.*)"
# nvprof, ncu since 2023 or so, and ncu before, of its options.
_ERROR = r"(?m)^(?:=+ ?(?:Error: |ERROR=+ )|(?=unrecognised option|the (?:required )?argument for option))(.*)"


class Effect(Enum):
    """What a profiler's message tells of the run that was to be collected."""

    NOTHING = "it only explains a log without a table"
    INCOMPLETE = "some counts or launches are missing"
    FAILED = "nothing was collected"
    NOT_STARTED = "nothing was collected, and the program did not run"
    NO_KERNELS = "the program ran no kernel that was profiled"
    EXIT_CODE = "the program's exit code is the detail"
    SIGNAL = "the signal that ended the program is the detail"
    KEPT = "what was collected before is in the file that is the detail"


_NOTHING_COLLECTED = (Effect.FAILED, Effect.NOT_STARTED)


class Message(NamedTuple):
    """A message of a profiler: its pattern, its cause and its remedy as half sentences.

    note: a sentence for a log that has tables all the same. `{detail}` stands for the group `detail` of the pattern.
    """

    pattern: str
    cause: str
    remedy: str
    note: str = ""
    effect: Effect = Effect.NOTHING


@functools.cache
def catalogue(profiler: str) -> tuple[Message, ...]:
    """The messages of a profiler, and of NVIDIA's driver, which all pass on; those of failed collections come first."""
    from eprof.base.resources import folder
    from eprof.base.toml import Document

    home = folder("counters")
    files = [home.joinpath("messages.toml"), home.joinpath(profiler, "messages.toml")]
    documents = [Document.read(file) for file in files if file.is_file()]
    messages = []
    for entry in (entry for document in documents for entry in document.root["message"].entries()):
        entry.table((*_TEXTS, "effect"))
        pattern, cause, remedy, note = (entry[key].text("").replace("{profiler}", profiler) for key in _TEXTS)
        effect = Effect[entry["effect"].text("nothing").upper()]
        messages.append(Message(pattern, cause, remedy, note, effect))
    return tuple(sorted(messages, key=lambda message: message.effect not in _NOTHING_COLLECTED))


def permission_remedy() -> str:
    """Half a sentence on how to let users read a GPU's counters (ERR_NVGPUCTRPERM)."""
    return next(message.remedy for message in catalogue("nvprof") if "ERR_NVGPUCTRPERM" in message.pattern)


class Quote(NamedTuple):
    """A message as it was found: the number and text of its line, and the detail in it."""

    number: int
    text: str
    detail: str

    def explain(self, message: Message, speaker: str, first: str = "") -> str:
        """The message in a sentence: cause, the profiler's own words, remedy. speaker: "line 3", or the profiler.

        first: what to do before the remedy.
        """
        cause = message.cause.format(detail=self.detail)
        return f"{cause} ({speaker} says: {shortened(self.text)}); {first}{message.remedy.format(detail=self.detail)}"


class Findings:
    """The messages of a profiler that were found, each with the first line that shows it."""

    def __init__(self, profiler: str) -> None:
        self._catalogue = catalogue(profiler)
        self.quotes: dict[Message, Quote] = {}

    def look(self, number: int, text: str) -> Message | None:
        """The first message of the catalogue that a line of a log matches, which is remembered; None: none does."""
        for message in self._catalogue:
            match = re.search(message.pattern, text)
            if match is not None:
                self.quotes.setdefault(message, Quote(number, text.strip(), match.groupdict().get("detail") or ""))
                return message
        return None

    def explanation(self) -> str | None:
        """A sentence on why there is no table, by the first message of the catalogue that was found, if any.

        A file that the profiler wrote all the same has what was collected before: it is named first.
        """
        for message in self._catalogue:
            quote = self.quotes.get(message)
            if quote is not None:
                is_all = message.effect is Effect.KEPT
                kept = [f"eprof report {file.detail}" for file in self.of(Effect.KEPT) if not is_all]
                found = phrase("what came before is in its report: `{}`; else ", next(iter(kept), None))
                return quote.explain(message, f"line {quote.number}", found)
        return None

    def of(self, effect: Effect) -> list[Quote]:
        """The profiler's messages found that have this effect."""
        return [quote for message, quote in self.quotes.items() if message.effect is effect]


class Outcome(NamedTuple):
    """The outcome of a collection by messages in its logs; sentences: for the user; status: the program's exit code."""

    sentences: tuple[str, ...]
    failed: bool
    started: bool
    no_kernels: bool
    status: int | None


def understand(profiler: str, texts: Iterable[str]) -> Outcome:
    """The outcome of a collection by the messages of its profiler in the texts of its logs."""
    findings = Findings(profiler)
    for text in texts:
        for line in re.findall(_MESSAGE_LINE, text):
            findings.look(0, line)
    sentences = []
    for message, quote in findings.quotes.items():
        if message.effect in _NOTHING_COLLECTED:
            sentences.append(f"{quote.explain(message, profiler)}.")
        elif message.effect is Effect.INCOMPLETE:
            sentences.append(f"{message.note.format(detail=quote.detail)}.")
    # As a shell reports it; a signal is the cause of a code.
    codes = [128 + int(quote.detail) % 128 for quote in findings.of(Effect.SIGNAL) if quote.detail]
    codes += [int(quote.detail) & 0xFF for quote in findings.of(Effect.EXIT_CODE)]
    started = not findings.of(Effect.NOT_STARTED)
    return Outcome(
        sentences=tuple(sentences),
        failed=not started or bool(findings.of(Effect.FAILED)),
        started=started,
        no_kernels=bool(findings.of(Effect.NO_KERNELS)),
        status=next(iter(codes), None),
    )


def no_log(profiler: str, code: int | None, errors: str) -> str:
    """A sentence on a profiler that left no log: its exit code, and its own error if the text `errors` has one."""
    error = re.search(_ERROR, errors)
    why = "; what it said is above, or in output/"
    if error is not None:
        why = f": {error[1].strip()[:_LONGEST_QUOTE]}"
    return f"{profiler} wrote no log{phrase(' (exit code {})', code or None)}{why.rstrip('.')}."


def beginnings(paths: Sequence[Path]) -> list[str]:
    """The first 8 MiB of each log file as text: messages of profilers stand there."""
    texts = []
    for path in paths:
        with path.open("rb") as file:
            texts.append(file.read(_LONGEST_LOG).decode("utf-8", "replace"))
    return texts


def shortened(text: str) -> str:
    """The text of a profiler's message, cut to 160 characters."""
    if len(text) <= _LONGEST_QUOTE:
        return text
    return text[: _LONGEST_QUOTE - 3] + "..."
