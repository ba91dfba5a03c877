"""Tables of AMD's profilers, rocprof, rocprofv3, Omniperf and rocprof-compute, and how they are recognised."""

import re

from eprof.base.signs import Signs, reads
from eprof.base.text import pattern

COUNTED, TIMED = "rocprof-counters", "rocprof-times"
# A summary that rocpd prints has blanks between its cells; the one by rank below it tells the same kernels again.
_TITLE = rb"(?:^|\n)KERNELS_SUMMARY:[ \r]*\n *Name {2,}Calls {2,}DURATION \("
DRAWN = pattern(_TITLE + rb".*(?:\n.*[0-9][ \r]*$)+", re.MULTILINE)
HEADER = pattern(
    rb'(?:^|\n)\s*"?(?:(?:Guid"?,"?)?(?:Correlation_Id"?,"?Dispatch_Id|Kind"?,"?Agent_Id)|Index"?,"?KernelName"?,'
    rb'|GPU_ID"?,"?Dispatch_ID|Dispatch_ID"?,"?(?:GPU_ID|Kernel_Name)'
    rb'|Name"?,"?Calls"?,"?(?:TotalDurationNs"?,|DURATION \()'
    rb'|Kernel_Name"?,"?Count"?,"?Sum\((?:|m|u|n)s\)"?,|\| *NAME *\| *DOMAIN *\| *CALLS *\|).*|' + _TITLE
)
_BESIDE = pattern(rb"workload_name,command,|device,HBMBw\b")
_CUT = pattern(
    rb'(?:^|\n)(?:"?\w+"?,)*"?Kernel_Name"?,(?:"?\w+"?,)*"?(?:Counter_Name"?,"?Counter_Value|Start_Timestamp)\b'
)
_ANALYZED = pattern(rb"\bAnalysis mode = cli\b|(?:^|\n)0\. Top (?:Stats?|Kernels?)\s")


def _refusal(path: str, head: bytes) -> str | None:
    """What to give instead of what rocprof-compute printed, of a table beside its counts, or of one cut at the left."""
    if _ANALYZED.search(head) and b"==" not in head:  # no log of nvprof or ncu, whose lines begin so, stands beside it
        return (
            "these are tables that `rocprof-compute analyze` printed, which eprof does not read; the counts are in "
            "pmc_perf.csv, in the workload's folder (its -p), so give that"
        )
    if _BESIDE.match(head):
        return "this stands beside a table of Omniperf or rocprof-compute, whose counts are in pmc_perf.csv; give that"
    if _CUT.search(head) and not HEADER.search(head):
        return (
            "this table has columns of rocprofv3's, but lost the first ones (Correlation_Id, Dispatch_Id, Kind), so "
            "that nothing tells its launches apart; give the table as rocprofv3 wrote it"
        )
    return None


SIGNS = Signs(
    reader_of=reads("reader", HEADER.search),
    refusal=_refusal,
    slowed=frozenset([COUNTED]),
    slowed_note="time is of launches that rocprof counted one by one, so estimated: prefer a table of times "
    "(rocprofv3 --kernel-trace --output-format csv) along with it",
    timed=frozenset([TIMED]),
    generations="of AMD",
)
