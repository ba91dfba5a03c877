"""nvprof: how it is started, and how its logs, CSV, text and SQLite, are read.

Its databases are recognised here, and logs of the profiler before it. Its other logs need no sign: what nobody else
claims is read as nvprof's.
"""

from eprof.base.signs import Signs

COUNTED = "nvprof-sqlite-counted"  # times of kernels that counters slowed down
_SQLITE = b"SQLite format 3\0"
_OLD_LOG = b"# CUDA_PROFILE_LOG_VERSION"


def _reader_of(block: bytes) -> str | None:
    """The module for a database, which may be of nsys too, or for a log of the profiler before nvprof; else None."""
    if block.startswith(_SQLITE):
        return "sqlite"
    return "cuda_profile" if block.startswith(_OLD_LOG) else None


SIGNS = Signs(
    reader_of=_reader_of,
    slowed=frozenset([COUNTED]),
    timed=frozenset(("nsys-sqlite",)),
    takes_unsigned="reader",
    capabilities=(2.0, 7.2),
    generations="up to Volta",
    commands={
        **dict.fromkeys(("times", "streams", "launches"), "nvprof --print-gpu-trace --csv"),
        "counts": "nvprof --metrics all --csv --log-file counts.csv",
    },
)
