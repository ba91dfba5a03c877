"""How databases of nvprof are recognised. Its other logs need no sign: what nobody else claims is read as nvprof's."""

from eprof.base.signs import Signs, reads

COUNTED = "nvprof-sqlite-counted"  # times of kernels that counters slowed down
_SQLITE = b"SQLite format 3\0"
_OLD_LOG = b"# CUDA_PROFILE_LOG_VERSION"


def _refusal(_: str, head: bytes) -> str | None:
    if not head.startswith(_OLD_LOG):
        return None
    return (
        "this is a log of CUDA's old command-line profiler (CUDA_PROFILE=1), not of nvprof; profile with nvprof --csv"
    )


SIGNS = Signs(
    reader_of=reads("sqlite", lambda block: block.startswith(_SQLITE)),  # a database, which may be of nsys too
    refusal=_refusal,
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
