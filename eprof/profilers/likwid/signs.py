"""How tables of likwid-perfctr are recognised, in CSV (`-O`) and as text, also behind a program's own output."""

from eprof.base.text import pattern
from eprof.rows.signs import Signs

KIND = "likwid-perfctr"
_SIGN = pattern(
    rb"(?:^|\n)(?:TABLE,(?:Region [^\n]*,)?Group \d+ (?:Raw|Metric)|\| +Event +\| +Counter +\|"
    rb"|Event,Counter,(?:HWThread|Core) \d)"
)
_MESSAGE = pattern(rb"WARN: .*|ERROR: .*|Sleeping longer as likwid_sleep.*|Running without Marker API.*|")
_AMD = b"AMDuProfPcm Report"
_WHOLE = 4000  # bytes of a file that its first block shows to its end


def _reader_of(block: bytes) -> str | None:
    return "reader" if _SIGN.search(block) else None


def _refusal(path: str, head: bytes) -> str | None:
    if head.lstrip().startswith(_AMD):
        return (
            "AMDuProfPcm tells floating-point work as a rate without the time of the run, so no counts follow from it; "
            "count with perf stat or likwid-perfctr"
        )
    if b"likwid" not in head or len(head) > _WHOLE or not all(map(_MESSAGE.fullmatch, head.split(b"\n"))):
        return None
    return (
        "these are messages of LIKWID and no counts (counters of memory controllers and energy need root or "
        "kernel.perf_event_paranoid of 0 or less); give what likwid-perfctr printed or wrote with -o"
    )


SIGNS = Signs(reader_of=_reader_of, refusal=_refusal)
