"""Logs that are packed with gzip or zstd: unpacked a block at a time; what comes before a damage is kept."""

import io
import zlib
from collections.abc import Iterable, Iterator

from eprof.base.errors import LogError
from eprof.base.resources import log_content

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_STEP = 1 << 16  # bytes; a read that meets a damage loses no more
# Beyond this no text of a profiler is packed (real logs: up to 40 times): it is a bomb, or a disk of zeros. gzip itself
# ends at 1,032. A small file does no harm.
_MOST_TIMES, _FREE_BYTES = 300, 1 << 25


def kind(head: bytes) -> str | None:
    """How a file that starts with `head` is packed: "gzip", "zstd", or None."""
    if head.startswith(GZIP):
        return "gzip"
    return "zstd" if head.startswith(ZSTD) else None


def unpack(chunks: Iterable[bytes], how: str, notes: list[str], size: int) -> Iterator[bytes]:
    """The unpacked bytes, at most about `size` at a time, of any number of members or frames.

    A damage or a cut ends them with a note. Raises LogError for data that unpack to hundreds of times their size.
    """
    packed = _Counted(chunks)
    done = 0
    for data in (_gunzip if how == "gzip" else _unzstd)(packed, notes, size):
        done += len(data)
        if is_bomb(done, packed.bytes):
            raise LogError(
                f"the {how} data unpack to more than {_MOST_TIMES:,} times their size, which no log does; unpack the "
                "file yourself if you trust it"
            )
        yield data


def is_bomb(unpacked_bytes: int, packed_bytes: int) -> bool:
    """Whether packed data became so much more that they are no text of a profiler or a meter."""
    return unpacked_bytes > max(_FREE_BYTES, _MOST_TIMES * packed_bytes)


def content(path: str, most: int) -> bytes:
    """The bytes of a file of at most `most` bytes, unpacked if it is packed. Raises LogError, for a damaged one too."""
    data = log_content(path, most)
    how = kind(data)
    if how is None:
        return data
    whole = bytearray()
    damage: list[str] = []
    try:
        for piece in unpack([data], how, damage, _STEP):
            whole += piece
            if len(whole) > most:
                raise LogError(f"holds more than {most >> 20} MB of text; cut it in parts.")
    except LogError as err:
        raise LogError(f"{path}: {err}") from err
    if damage:
        raise LogError(f"{path}: {damage[0].partition(';')[0]}; copy the file again.")
    return bytes(whole)


class _Counted:
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.chunks = iter(chunks)
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            self.bytes += len(chunk)
            yield chunk


def _gunzip(chunks: Iterable[bytes], notes: list[str], size: int) -> Iterator[bytes]:
    engine = zlib.decompressobj(wbits=31)
    started = False
    for chunk in chunks:
        while chunk:
            try:
                data = engine.decompress(chunk, size)
            except zlib.error:
                notes.append("the gzip data are damaged; what could be unpacked before that was read")
                return
            started = True
            if data:
                yield data
            chunk = engine.unconsumed_tail
            if engine.eof:
                chunk = engine.unused_data
                started = False
                engine = zlib.decompressobj(wbits=31)
    if started:
        yield engine.flush()
        notes.append("the gzip file is cut off; what could be unpacked was read")


class _Chunks(io.RawIOBase):
    """Chunks as a file, for pyarrow."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        """Packed bytes can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` packed bytes; none at the end."""
        if not self._rest:
            self._rest = next(self._chunks, b"")
        taken, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return taken


def _unzstd(chunks: Iterable[bytes], notes: list[str], size: int) -> Iterator[bytes]:
    import pyarrow as pa  # not where logs are only recognised

    stream = pa.CompressedInputStream(pa.PythonFile(_Chunks(chunks), mode="r"), "zstd")
    held = list[bytes]()
    held_bytes = 0
    while True:
        try:
            data = stream.read(_STEP)
        except (OSError, pa.ArrowException):
            notes.append("the zstd data are damaged or cut off; what could be unpacked before that was read")
            data = b""
        held.append(data)
        held_bytes += len(data)
        if held_bytes >= size or not data:
            yield b"".join(held)
            held = []
            held_bytes = 0
        if not data:
            return
