"""Which kinds of file are told apart by their first bytes, before any line is read."""

from shlex import quote

from eprof.base.errors import LogError
from eprof.rows.stream import utf16

FORMATS = (
    "nvprof-metrics-summary",
    "nvprof-events-summary",
    "nvprof-wide-trace",
    "nvprof-gpu-trace",
    "nvprof-gpu-summary",
    "nvprof-sqlite",
    "ncu-long",
    "ncu-raw",
    "ncu-summary",
    "ncu-report",
    "nsys-summary",
)
SQLITE = b"SQLite format 3\0"
_NSYS = b"NVIDIA Tegra Profiler Report"
_NSYS_NAMES = (".nsys-rep", ".qdrep")
_NSYS_REPORT = (
    "this is a report file of Nsight Systems, which only nsys reads; make a table of it with "
    "`nsys stats --report cuda_gpu_kern_sum --format csv {file} > times.csv`, or a database with "
    "`nsys export --type sqlite {file}`, and give that"
)
_FOREIGN = {
    b"\x7fELF": "this is a program, not a log; profile it with `eprof run`, or give its log",
    b"MZ": "this is a Windows program, not a log; profile it there, and give the log",
    b"PK\x03\x04": "this is a zip archive; unpack it and give the logs in it",
    b"BZh": "this is packed with bzip2; unpack it first (gzip and zstd are read as they are)",
    b"\xfd7zXZ": "this is packed with xz; unpack it first (gzip and zstd are read as they are)",
    b"7z\xbc\xaf": "this is a 7z archive; unpack it and give the logs in it",
    b"\x89PNG": "this is a picture; give the log as text",
    b"\xff\xd8\xff": "this is a picture; give the log as text",
    b"%PDF": "this is a PDF; give the log as text",
    b"# CUDA_PROFILE_LOG_VERSION": "this is a log of CUDA's old command-line profiler (CUDA_PROFILE=1), not of nvprof; "
    "profile with nvprof --csv",
    b"PAR1": "this is a Parquet file; give the log as the profiler wrote it",
}


def refuse_foreign(path: str, head: bytes) -> None:
    """Raises LogError if a file that starts with `head` (unpacked) cannot be a log; says what it is instead."""
    if not head:
        raise LogError(f"{path}: the file is empty; was the profiler stopped before it wrote its result?")
    for magic, sentence in _FOREIGN.items():
        if head.startswith(magic) and (magic != b"MZ" or b"\0" in head):
            raise LogError(f"{path}: {sentence}")
    if head.startswith(_NSYS) or (path.endswith(_NSYS_NAMES) and b"\0" in head):
        raise LogError(f"{path}: {_NSYS_REPORT.format(file=quote(path))}")
    if b"\0" in head and not utf16(head) and head.strip(b"\0"):
        raise LogError(f"{path}: this is a binary file of an unknown kind; give the log as the profiler wrote it")
