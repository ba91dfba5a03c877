"""Nsight Systems, `nsys`: how its tables and databases are read.

Its tables in JSON are recognised here; those in CSV and text with those of ncu.
"""

from shlex import quote

from eprof.base.signs import Signs, reads
from eprof.base.text import pattern
from eprof.nvidia import KIND

_SIGN = pattern(rb'[{,]\s*"(?:Time ?\(%\)|Total Time ?\(\w+\)|Duration ?\(\w+\)|QCount|KAvg ?\(\w+\))"\s*:')
_REPORT = b"NVIDIA Tegra Profiler Report"
_REPORT_NAMES = (".nsys-rep", ".qdrep")
_CONVERTED = pattern(rb'\s*\[\s*\{[^{}]{0,400}"cat"\s*:\s*"(?:cuda|cuda_api|nvtx|nvtx-kernel)"')


def _refusal(path: str, head: bytes) -> str | None:
    """What to give instead of a report file of nsys or a Chrome trace that was made of one; None: it is neither."""
    if _CONVERTED.match(head):
        return (
            "this is a Chrome trace that a converter (nsys2json, nsightful) made of a report of Nsight Systems; give "
            "the database that it was made of (.sqlite), or make one with `nsys export --type sqlite REPORT.nsys-rep`"
        )
    if not (head.startswith(_REPORT) or (path.endswith(_REPORT_NAMES) and b"\0" in head)):
        return None
    file = quote(path)
    return (
        "this is a report file of Nsight Systems, which only nsys reads; make a table of it with "
        f"`nsys stats --report cuda_gpu_kern_sum --format csv {file} > times.csv`, or a database with "
        f"`nsys export --type sqlite {file}`, and give that"
    )


SIGNS = Signs(
    reader_of=reads("reader", _SIGN.search),
    refusal=_refusal,
    timed=frozenset((KIND,)),
    capabilities=(6.0, float("inf")),
    generations="from Pascal on",
    commands={
        "times": "nsys stats --report cuda_gpu_trace --format csv",
        "streams": "nsys stats --report cuda_gpu_trace --format csv",
        "nvtx": "nsys export --type sqlite",
        "launches": "nsys stats --report cuda_gpu_trace --format csv",
    },
)
