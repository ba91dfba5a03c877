"""LIKWID: tables of likwid-perfctr are recognised here, in CSV (`-O`) and as text, also behind a program's output."""

from __future__ import annotations

from eprof.base.signs import Signs, reads
from eprof.base.text import pattern

KIND = "likwid-perfctr"
_SIGN = pattern(
    rb"(?:^|\n) *+(?:\| +Event +\| +Counter +\||Event,Counter,(?:HWThread|Core) \d|# GID[|,]EventCount[|,])"
)
_METRICS = pattern(rb"(?:^|\n)(?:\| +Metric +\||Metric,)\s*(?:(?:HWThread|Core) \d|Sum\b)")
_METRICS_OVER_TIME = b"\n# GID|MetricsCount|", b"\n# GID,MetricsCount,"
_MESSAGE = pattern(rb"WARN: .*|ERROR: .*|Sleeping longer as likwid_sleep.*|Running without Marker API.*|")
# In what LIKWID says before it gives up.
_FAILED = pattern(rb"(?i)likwid|Cannot read group file|perf_event_paranoid =|performance group \w+ not allowed")
_WHOLE = 4000  # bytes of a file that its first block shows to its end


def _refusal(path: str, head: bytes) -> str | None:
    if len(head) <= _WHOLE and _METRICS.search(head):
        return "these are LIKWID's metrics, without the table of events that they are made of; give its whole output"
    if any(mark in b"\n" + head for mark in _METRICS_OVER_TIME):
        return (
            "these are LIKWID's metrics over time (-t), without the counts that they are made of; run likwid-perfctr "
            "without -t, or with events in place of a group (-g EVENT:COUNTER,...)"
        )
    is_whole = len(head) <= _WHOLE and all(map(_MESSAGE.fullmatch, head.split(b"\n")))
    if b"likwid" in head and is_whole:
        return (
            "these are messages of LIKWID and no counts (counters of memory controllers and energy need root or "
            "kernel.perf_event_paranoid of 0 or less); give what likwid-perfctr printed or wrote with -o"
        )
    if not _FAILED.search(head):
        return None
    from eprof.readers.messages import Findings

    found = Findings("likwid")
    for number, line in enumerate(head.decode("utf-8", "replace").splitlines(), start=1):
        found.look(number, line)
    return found.explanation()


SIGNS = Signs(
    # The word alone is found much sooner, and most logs lack it.
    reader_of=reads("reader", lambda block: (b"Counter" in block or b"EventCount" in block) and _SIGN.search(block)),
    refusal=_refusal,
)
