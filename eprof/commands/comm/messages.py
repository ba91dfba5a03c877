"""Messages of an MPI program: read from a report of mpiP, or from what `otf2-print` printed."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from re import Pattern
from typing import NamedTuple

from eprof.base.errors import LogError
from eprof.base.optional import either, mapped, ratio
from eprof.base.resources import lines as lines_of
from eprof.base.resources import log_content
from eprof.base.text import pattern, phrase


class Sent(NamedTuple):
    """Messages that a program sent by one call: their number, and their mean size in bytes.

    is_floor: each stands for one message or more (a collective operation).
    """

    call: str
    number: int
    size: float
    is_floor: bool = False


_ALL, _TOP, _END = "Callsite Message Sent statistics", "Aggregate Sent Message Size", "End of Report"
_COUNT, _NUMBER = r"(\d{1,15})", r"(\d{1,18}(?:\.\d+)?(?:e[+-]?\d{1,2})?)"
# Name, site, rank (`*`: all), count, largest, mean, least, sum.
_CALL_SITE = pattern(rf"(\w+) +(\d+) +(?:(\*)|\d+) +{_COUNT} +\S+ +\S+ +\S+ +{_NUMBER}")
# Call, site, count, sum, mean, share of all bytes sent in per cent.
_AGGREGATE = pattern(rf"(\w+) +(\d+) +{_COUNT} +{_NUMBER} +\S+ +{_NUMBER}")
_WHOLE = 0.99  # of the bytes sent: shares are printed with two digits
_LENGTH, _BYTES = pattern(r".*, Length: (\d{1,18})\b"), pattern(r".*, Bytes: (\d{1,18}), Matching: ")
_OTF2 = {
    "MPI_SEND": ("Send", _LENGTH),
    "MPI_ISEND": ("Isend", _LENGTH),
    "RMA_PUT": ("Put", _BYTES),
    "RMA_GET": ("Get", _BYTES),
    "RMA_ATOMIC": ("Atomic", pattern(r".*, Sent: (\d{1,18}), Received: (\d{1,18}), Matching: ")),
}
_OF_GPU = pattern(r"[^,]* Window: \"(?:CUDA|HIP|OPENCL)_WINDOW\"")
_ONE_MESSAGE = pattern(r"i?[bsr]?send(recv(_replace)?|_init)?|r?(put|get|accumulate)")


def read_messages(path: str) -> tuple[list[Sent], list[str]]:
    """(messages of a program by call and size, the largest first; notes on what is missing), from mpiP or otf2-print.

    Raises LogError: the file at `path` has none.
    """
    lines = lines_of(log_content(path, 1 << 30))
    notes: list[str] = []
    is_mpip = any(line.startswith("@ mpiP") or line.startswith("@---") for line in lines)
    numbers: Counter[tuple[str, float, bool]] = Counter()
    messages = {True: _of_mpip, False: _of_otf2}[is_mpip]
    for message in messages(path, lines, notes):
        numbers[message.call, message.size, message.is_floor] += message.number
    if not numbers:
        if any("Global Definitions" in line for line in lines[:20]):
            raise LogError(f"{path}: has only the definitions of a trace (-G); print its events: leave -G out.")
        raise LogError(
            f"{path}: has no messages; give a report of mpiP (with `{_ALL}`), or what otf2-print printed (MPI_SEND, "
            "RMA_PUT)."
        )
    ordered = sorted(numbers.items(), key=lambda item: -item[0][1])
    return [Sent(call, number, size, is_floor) for (call, size, is_floor), number in ordered], notes


def _of_mpip(path: str, lines: Sequence[str], notes: list[str]) -> Iterator[Sent]:
    """Yield the messages of each call site in mpiP's report, of all ranks: from its whole table, else its top senders.

    A concise report has the second alone, one that is cut may have more of them than of the first.
    """
    is_cut = not any(_END in line for line in lines)
    if is_cut:
        notes.append(f'{Path(path).name} does not end with "{_END}": it may be cut off, and messages be missing.')
    top = list(_section(path, lines, _TOP, _AGGREGATE))
    of_all = [row for row in _section(path, lines, _ALL, _CALL_SITE) if row[2] == "*"]
    sites = {(call, site): (int(number), float(total)) for call, site, number, total, _ in top}
    sites |= {(call, site): (int(number), float(total)) for call, site, _, number, total in of_all}
    # The shares of those that sent most tell how many bytes all sent.
    percent = math.fsum(float(share) for *_, share in top)
    known = ratio(math.fsum(total for _, total in sites.values()), math.fsum(float(row[3]) for row in top))
    share = mapped(lambda known: known * percent / 100, known)
    is_part = either(share, float(bool(of_all))) < _WHOLE
    if is_part:
        listed = phrase(", {:.2g} % of the bytes sent", mapped(lambda share: 100 * share, share or None))
        notes.append(f"{Path(path).name} lists only some call sites{listed}: there were more messages than these.")
    for (call, _), (number, total) in sites.items():
        is_floor = is_cut or is_part or _ONE_MESSAGE.fullmatch(call.lower()) is None
        if number:
            yield Sent(call, number, total / number, is_floor)
    if any(_ONE_MESSAGE.fullmatch(call.lower()) is None for call, _ in sites):
        notes.append("Collective operations are priced as one message a call, the least that they can be.")


def _section(path: str, lines: Sequence[str], title: str, row: Pattern[str]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row below a title of mpiP's report. Raises LogError for a line that is no row."""
    is_inside = False
    for number, line in enumerate(lines, 1):
        if line.startswith("@"):
            is_inside = title in line
        elif is_inside and line.strip("- ") and line.split()[0] not in ("Name", "Call"):
            match = row.fullmatch(line.strip())
            if match is None:
                raise LogError(f"{path}:{number}: `{line.strip()[:60]}` is no row of `{title}`; is the report whole?")
            yield match.groups()


def _of_otf2(path: str, lines: Sequence[str], notes: list[str]) -> Iterator[Sent]:
    """Yield the messages sent, as `otf2-print` prints them. Received messages are the same ones again.

    A one-sided operation is a message, one that gives and takes (an atomic one) a message or more. Copies between a
    host and its GPU are written in the same way, into windows of their own.
    """
    collective = copies = 0
    running = sum(line.startswith("PROGRAM_BEGIN ") - line.startswith("PROGRAM_END ") for line in lines)
    if running > 0:
        cut = f"{running} processes of the trace have no end; it may be cut off, and messages be missing."
        notes.append(f"{Path(path).name}: {cut}")
    for number, line in enumerate(lines, 1):
        event = line.split(" ", 1)[0]
        collective += event == "MPI_COLLECTIVE_END"
        if event not in _OTF2:
            continue
        call, size = _OTF2[event]
        match = size.match(line)
        if match is None:
            raise LogError(f"{path}:{number}: a message without its length; is the output of otf2-print whole?")
        if _OF_GPU.match(line):
            copies += 1
            continue
        lengths = [float(length) for length in match.groups()]
        yield Sent(call, 1, sum(lengths), running > 0 or len(lengths) > 1)
    if collective:
        notes.append(f"{collective} collective operations are not priced: there were more messages than these.")
    if copies:
        notes.append(f"{copies} copies between hosts and their GPUs are no messages, and not priced.")
