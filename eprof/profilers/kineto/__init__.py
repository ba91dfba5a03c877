"""Traces of the PyTorch profiler (Kineto): which operator and module launched each kernel, and when it ran.

They are recognised here: JSON objects that begin with what Kineto knows of the machine.
"""

from eprof.base.signs import Signs, reads
from eprof.base.text import pattern

TRACE = "kineto-trace"
# Its metrics are ncu's, by name and meaning: both are CUPTI's.
RANGES = "ncu-kineto"
_SIGN = pattern(rb'\s*\{\s*"(?:schemaVersion|deviceProperties|distributedInfo|metadata|traceEvents|traceName)"\s*:')


_PRINTED = pattern(rb"\bSelf CPU %[ \w%]{1,400}# of Calls")


def _refusal(path: str, head: bytes) -> str | None:
    """What to give instead of eprof's own trace, or of a table that PyTorch's profiler printed; None: it is neither."""
    if head.startswith(b'{"otherData":{"eprof":'):
        return "this is a trace that eprof wrote, for Perfetto; give the logs that it was made of"
    if _PRINTED.search(head) and b"==" not in head:  # no log of nvprof, whose lines begin so, stands beside it
        return (
            "this is a table that PyTorch's profiler printed, which eprof does not read; write its trace with "
            '`prof.export_chrome_trace("trace.json")`, and give that'
        )
    return None


SIGNS = Signs(reader_of=reads("reader", _SIGN.match), refusal=_refusal, timed=frozenset([TRACE]))
