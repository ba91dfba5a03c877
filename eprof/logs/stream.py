"""`Source`, an open log, and its `blocks` of whole lines: unpacked, UTF-8, with one kind of line end; little is held.

Of logs that are packed with gzip or zstd, what comes before a damage is kept.
"""

import codecs
import csv
import hashlib
import io
import os
import re
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from msgspec import Struct, field

from eprof.base.errors import LogError
from eprof.base.gpus import limit_told_in, told_in
from eprof.base.resources import log_content
from eprof.base.text import pattern
from eprof.logs.log import Log, Table

_BREAK = pattern(rb"\r\n?|\n")
_HEAD = 4096
_WHOLE_CHUNK = 8 << 20
_DAMAGED = b"(a line with NUL bytes)"  # no row of any table
# What mail, comments, `mpirun --tag-output` and `srun -l` put before each line.
_MARGIN = pattern(rb"(?:> ?)+|//|\[(?:(?i:rank|task|node)\W?)?\d+(?:,\d+)*\](?:<std\w+>)?:?|\d+:(?= )")
# What perf and valgrind print, in comments of a script.
_COMMENT, _COMMENTED = pattern(rb"#"), pattern(rb"(?m)^# +(?:Performance counter stats for |==\d+== )")
# A line that mail wrapped (quoted-printable: 76 bytes at most), and how many of these there are at least.
_WRAPPED, _WRAPPED_LINES = pattern(rb"(?m)^(?=[^\n]{73,76}$)[^\n]*[^=\n]=\n(?=[^\n])"), 2
_MARGIN_BYTES, _MARGIN_LINES = 1 << 16, 3  # of a log in which a margin is looked for; lines that have one, at least


class Tuning(Struct, frozen=True):
    """How much of a log is held at once: sizes of chunks and lines, bytes from which rows are parsed together.

    Results do not depend on it, but for the last digits of what is added up in another order.
    """

    chunk_bytes: int = 4 << 20
    longest_line: int = 4 << 20
    fast_from: int = 1 << 20
    fold_rows: int = 1 << 20


class Source(Struct):
    """An open log: its bytes as they come, and what was learnt on the way (complete only after the last byte).

    head: the first bytes. length: the file's bytes when it was opened, where known (not of pipes and /proc). What is
    written behind them later is not read, or a file that grows faster than it is read would have no end. progress:
    called with the number of new bytes. lacks_bytes: the file is known to be cut off or damaged.
    """

    path: str
    handle: IO[bytes]
    head: bytes
    length: int = sys.maxsize
    size_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    lacks_bytes: bool = False
    ends_with_newline: bool = True
    progress: Callable[[int], None] | None = None
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        """SHA-256 of the log's bytes read so far."""
        return self._digest.hexdigest()

    def chunks(self, size: int) -> Iterator[bytes]:
        """The log's raw bytes, about `size` at a time. Raises LogError if the file cannot be read."""
        coming = iter(lambda: self.handle.read(min(size, max(self.length - self.size_bytes, 0))), b"")
        try:
            for chunk in chain([self.head], coming):
                self._digest.update(chunk)
                self.size_bytes += len(chunk)
                if self.progress is not None:
                    self.progress(len(chunk))
                yield chunk
        except OSError as err:
            raise LogError(f"{self.path}: cannot be read: {err.strerror}") from err

    def log(self, tables: Sequence[Table], notes: Iterable[str], *, format_: str | None = None, **about: Any) -> Log:
        """The `Log` that a reader makes when it has read the stream to its end.

        format_: if it is not the kinds of the tables. about: other fields of `Log`. The device is what the program's
        output in `head` names, where the reader knows none and does not say `several_devices`.
        """
        if not about.pop("several_devices", False):
            about["device"] = about.get("device") or told_in(self.head)
        about.setdefault("limit_w", limit_told_in(self.head))
        return Log(
            path=self.path,
            format=format_ or "+".join(dict.fromkeys(table.kind for table in tables)),
            sha256=self.sha256,
            size_bytes=self.size_bytes,
            tables=tuple(tables),
            notes=tuple(notes),
            **about,
        )


def open_source(path: str | Path, progress: Callable[[int], None] | None = None) -> Source:
    """Open a log and look at its first bytes. Raises LogError with the reason if that is not possible."""
    name = str(path)
    try:
        handle = Path(path).open("rb")  # noqa: SIM115 - the reader closes it
        status = os.fstat(handle.fileno())
        length = (stat.S_ISREG(status.st_mode) and status.st_size) or sys.maxsize
        source = Source(name, handle, handle.read(_HEAD), length, progress=progress)
    except FileNotFoundError as err:
        raise LogError(f"{name}: there is no such file; check the path") from err
    except IsADirectoryError as err:
        instead = "give the log files in it"
        if anchor := next(Path(path).glob("*.otf2"), None):
            instead = f"its trace is read by `otf2-print {anchor} > messages.txt; eprof comm --messages messages.txt`"
        raise LogError(f"{name}: this is a folder; {instead}") from err
    except PermissionError as err:
        raise LogError(f"{name}: no permission to read this file; change its mode or owner") from err
    except (OSError, ValueError) as err:
        raise LogError(f"{name}: cannot be opened: {err}") from err
    if source.head and stat.S_ISCHR(status.st_mode) and not handle.isatty():
        handle.close()
        raise LogError(f"{name}: this is a device, which may give bytes without end; give a file")
    return source


def unpacked(source: Source, chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The bytes of a log, unpacked if it is packed, at most about `size` at a time then. Raises LogError."""
    how = packing(source.head)
    if how is None:
        yield from chunks
        return
    damage: list[str] = []
    try:
        yield from unpack(chunks, how, damage, size)
    except LogError as err:
        raise LogError(str(err) if str(err).startswith(source.path) else f"{source.path}: {err}") from err
    source.notes += damage
    source.lacks_bytes = bool(damage)


@contextmanager
def whole_file(source: Source, suffix: str) -> Iterator[IO[bytes]]:
    """The log as an open file with a name, for libraries that want one; if packed, a temporary file, unpacked."""
    chunks = source.chunks(_WHOLE_CHUNK)
    if packing(source.head) is None:
        for _ in chunks:  # for the hash
            pass
        yield source.handle
        return
    import tempfile  # takes long, and few logs need it

    with tempfile.NamedTemporaryFile(suffix=suffix) as whole:
        for piece in unpacked(source, chunks, _WHOLE_CHUNK):
            whole.write(piece)
        whole.flush()
        yield whole.file


def blocks(source: Source, tuning: Tuning) -> Iterator[bytes]:
    r"""Blocks of a log's whole lines ending in "\n" (the last line may lack it), valid UTF-8."""
    chunks = unpacked(source, source.chunks(tuning.chunk_bytes), tuning.chunk_bytes)
    block, margin, is_wrapped = b"", None, False
    for place, block in enumerate(_whole_lines(_utf8(chunks), source, tuning.longest_line)):
        clean = _clean(block, source)
        if place == 0:
            is_wrapped = len(_WRAPPED.findall(clean[:_MARGIN_BYTES])) >= _WRAPPED_LINES
        if is_wrapped:
            clean = clean.replace(b"=\n", b"").replace(b"=3D", b"=")
        if place == 0:
            margin = _margin(clean, source)
        if margin:
            clean = margin.sub(b"", clean)
        yield clean
    source.ends_with_newline = not block.strip(b"\0") or block.endswith((b"\n", b"\r"))


def _margin(block: bytes, source: Source) -> re.Pattern[bytes] | None:
    """What finds the margin that most of a log's lines begin with ("> " of a mail, "[rank 0]" of mpirun), or None.

    Lines of several ranks are mixed, so their margins stay.
    """
    lines = [line for line in block[:_MARGIN_BYTES].split(b"\n") if line.strip()]
    own = _COMMENT if _COMMENTED.search(block[:_MARGIN_BYTES]) else _MARGIN
    margins = Counter(found[0].rstrip() for line in lines if (found := own.match(line)))
    if len(margins) != 1 or 2 * margins.total() < len(lines) or margins.total() < _MARGIN_LINES:
        return None
    (margin,) = margins
    source.notes.append(f"its lines begin with {margin.decode()}, which was left out")
    return pattern(b"(?m)^" + re.escape(margin) + rb'(?: ?\\?(?=["#]))?')


def _utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """A log's bytes without a byte order mark; UTF-16 (what PowerShell redirects write) becomes UTF-8."""
    chunks = iter(chunks)
    first = next(chunks, b"")
    while len(first) < 4 and (more := next(chunks, b"")):
        first += more
    encoding = utf16(first)
    if encoding:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        yield from (decoder.decode(chunk).encode() for chunk in chain([first], chunks))
    else:
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from chunks


def utf16(head: bytes) -> str | None:
    """The name of the UTF-16 encoding that a log starting with `head` has, else None."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[:200]
    odd, even = sample[1::2], sample[::2]
    if len(sample) >= 20 and odd.count(0) > 0.9 * len(odd) and not even.count(0):
        return "utf-16-le"
    return None


def _whole_lines(chunks: Iterable[bytes], source: Source, longest: int) -> Iterator[bytes]:
    """The chunks cut anew at line ends; in place of a line of more than `longest` bytes a remark stands, and a note."""
    rest = b""
    dropping = False
    for chunk in chunks:
        if dropping:
            line_end = _BREAK.search(chunk)
            if not line_end:
                continue
            chunk, dropping = chunk[line_end.end() :], False
        if rest.endswith(b"\r"):
            rest, chunk = b"", rest + chunk
        last = chunk.rfind(b"\n")
        cut = max(last, chunk.rfind(b"\r", last + 1, len(chunk) - 1)) + 1
        if cut:
            yield b"".join((rest, memoryview(chunk)[:cut]))
            rest = b""
        rest += chunk[cut:]
        if len(rest) > longest:
            # In place of a line too long to hold, one that can be no row of a table.
            start = re.sub(rb"[^ -~]|[\",]", b" ", rest[:80])
            yield b"(a very long line that starts with: " + start + b")\n"
            source.notes.append(f"a line of more than {longest >> 20} MB was skipped")
            rest = b""
            dropping = True
    if rest:
        yield rest


def _clean(block: bytes, source: Source) -> bytes:
    r"""A block of a log with "\n" ends, as UTF-8, else Latin-1; lines with NUL bytes are left out, and noted."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in block:
        # Of a line with NUL bytes nothing is kept, or digits beside a lost one would make another number.
        *whole, last = block.split(b"\n")
        if last.strip(b"\0"):
            whole.append(last)
        else:  # disks that lost power leave such ends, after the last whole line
            whole.append(b"")
        source.lacks_bytes |= any(b"\0" in line for line in whole)
        block = b"\n".join(_DAMAGED if b"\0" in line else line for line in whole)
        _note_once(source, "the file holds NUL bytes; lines with them were left out")
    with suppress(UnicodeDecodeError):
        if not block.isascii():  # which makes no copy
            block.decode()
        return block
    _note_once(source, "some lines are not UTF-8; they were read as Latin-1, so names may look odd")
    lines = block.split(b"\n")
    for place, line in enumerate(lines):
        try:
            line.decode()
        except UnicodeDecodeError:
            lines[place] = line.decode("latin-1").encode()
    return b"\n".join(lines)


def _note_once(source: Source, note: str) -> None:
    if note not in source.notes:
        source.notes.append(note)


def split(line: str, delimiter: str = ",") -> list[str]:
    """The fields of one line of CSV; [] where it is none (a field of more than 128 KB)."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


# ---------------------------------------------------------------------------------------------------- packed

_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_STEP = 1 << 16  # bytes; a read that meets a damage loses no more
# Beyond this no text of a profiler is packed (real logs: up to 40 times): it is a bomb, or a disk of zeros. gzip itself
# ends at 1,032. A small file does no harm.
_MOST_TIMES, _FREE_BYTES = 300, 1 << 25


def packing(head: bytes) -> str | None:
    """The packing of a file that starts with `head`: "gzip" or "zstd"; None: it is not packed."""
    return next((how for how, magic in _MAGIC.items() if head.startswith(magic)), None)


def unpack(chunks: Iterable[bytes], how: str, notes: list[str], size: int) -> Iterator[bytes]:
    """The unpacked bytes of packed chunks (how: "gzip" or "zstd"), about `size` at a time at most.

    They end with a note in `notes` where the data are damaged or cut. Raises LogError for a bomb (`is_bomb`).
    """
    packed_bytes = done = 0

    def counted() -> Iterator[bytes]:
        nonlocal packed_bytes
        for chunk in chunks:
            packed_bytes += len(chunk)
            yield chunk

    for data in {"gzip": _gunzip, "zstd": _unzstd}[how](counted(), notes, size):
        done += len(data)
        if is_bomb(done, packed_bytes):
            raise LogError(
                f"the {how} data unpack to more than {_MOST_TIMES:,} times their size, which no log does; unpack the "
                "file yourself if you trust it"
            )
        yield data


def is_bomb(unpacked_bytes: int, packed_bytes: int) -> bool:
    """Whether packed data unpacked to so many bytes (over 32 MiB and 300 times) that they are no profiler's text."""
    return unpacked_bytes > max(_FREE_BYTES, _MOST_TIMES * packed_bytes)


def unpacked_content(path: str, most: int) -> bytes:
    """The bytes of a file of at most `most` bytes, unpacked if it is packed. Raises LogError, for a damaged one too."""
    data = log_content(path, most)
    if packing(data) is None:
        return data
    source = Source(path, io.BytesIO(), data)
    whole = bytearray()
    for piece in unpacked(source, [data], _STEP):
        whole += piece
        if len(whole) > most:
            raise LogError(f"{path}: holds more than {most >> 20} MB of text; cut it in parts.")
    if source.notes:
        raise LogError(f"{path}: {source.notes[0].partition(';')[0]}; copy the file again.")
    return bytes(whole)


def _gunzip(chunks: Iterable[bytes], notes: list[str], size: int) -> Iterator[bytes]:
    """`unpack` of gzip, of any number of members."""
    engine = zlib.decompressobj(wbits=31)
    is_open = False
    for chunk in chunks:
        while chunk:
            try:
                data = engine.decompress(chunk, size)
            except zlib.error:
                notes.append("the gzip data are damaged; what could be unpacked before that was read")
                return
            if data:
                yield data
            is_open = not engine.eof
            chunk = engine.unconsumed_tail
            if engine.eof:
                chunk = engine.unused_data
                engine = zlib.decompressobj(wbits=31)
    if is_open:
        yield engine.flush()
        notes.append("the gzip file is cut off; what could be unpacked was read")


class _Chunks(io.RawIOBase):
    """Chunks of a log's bytes as a file, for pyarrow."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        """True, as pyarrow asks."""
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` packed bytes, all of a chunk below 0; none at the end."""
        chunk = self._rest or next(self._chunks, b"")
        end = len(chunk) if size < 0 else size
        self._rest = chunk[end:]
        return chunk[:end]


def _unzstd(chunks: Iterable[bytes], notes: list[str], size: int) -> Iterator[bytes]:
    """`unpack` of zstd, by pyarrow."""
    import pyarrow as pa  # not where logs are only recognised

    stream = pa.CompressedInputStream(pa.PythonFile(_Chunks(chunks), mode="r"), "zstd")
    held = bytearray()
    while True:
        try:
            data = stream.read(_STEP)
        except (OSError, pa.ArrowException):
            notes.append("the zstd data are damaged or cut off; what could be unpacked before that was read")
            data = b""
        held += data
        if len(held) >= size or not data:
            yield bytes(held)
            held.clear()
        if not data:
            return
