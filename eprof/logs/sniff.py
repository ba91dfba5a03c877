"""Which kinds of file their first bytes show, before any line is read."""

from collections.abc import Iterable

from eprof.base.errors import LogError
from eprof.logs.rows.stream import utf16

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
    b"PAR1": "this is a Parquet file; give the log as the profiler wrote it",
}


def refuse_foreign(path: str, head: bytes, refusals: Iterable[str | None]) -> None:
    """Raises LogError if a file that starts with `head` (unpacked) cannot be a log; says what it is instead.

    refusals: what profilers say against it.
    """
    if not head:
        raise LogError(f"{path}: the file is empty; was the profiler stopped before it wrote its result?")
    for magic, sentence in _FOREIGN.items():
        if head.startswith(magic) and (magic != b"MZ" or b"\0" in head):
            raise LogError(f"{path}: {sentence}")
    for refusal in refusals:
        if refusal is not None:
            raise LogError(f"{path}: {refusal}")
    if b"\0" in head and not utf16(head) and head.strip(b"\0"):
        raise LogError(f"{path}: this is a binary file of an unknown kind; give the log as the profiler wrote it")
