"""eprof's exceptions (their message: what was wrong, where, and what to do), and shortages of memory, files, room."""

import errno

_MEMORY = "there is not enough memory; allow more (`ulimit -v`), or report on fewer logs at once"
_FILES = "too many files are open; allow more (`ulimit -n`)"
_STARTS = "no more threads or processes may be started; allow more (`ulimit -u`), and memory for them (`ulimit -v`)"
_SPACE = "there is no room for temporary files; set TMPDIR to a folder that has room"
_SHORT = {
    errno.ENOMEM: _MEMORY,
    errno.EMFILE: _FILES,
    errno.ENFILE: "too many files are open on this machine; close other programs",
    errno.EAGAIN: _STARTS,
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "a temporary file would be larger than is allowed; allow more (`ulimit -f`)",
}
_LONGEST, _START, _END = 4000, 800, 400  # characters of a message


class EprofError(Exception):
    """Root of all errors that a user can mend. The command line prints it as one message and exits with code 1.

    A message may quote what a file holds, which may be endless: its middle is left out, for it ends with what to do.
    """

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        if len(message) > _LONGEST:
            left_out = len(message) - _START - _END
            message = f"{message[:_START]}… ({left_out:,} more characters) …{message[-_END:]}"
        super().__init__(message)


class LogError(EprofError):
    """A log cannot be read, or holds nothing that can be reported on."""


class UnknownLogError(LogError):
    """A file is no log of any profiler that eprof reads."""


class DefinitionError(EprofError):
    """A file in `counters/` or `costs/` is not right; the message names the file and the line."""


class CostError(EprofError):
    """A cost table has no such price, setting or unit."""


class MeterError(EprofError):
    """What a meter saw cannot be the energy of these kernels, or cannot be split over them."""


class UsageError(EprofError):
    """The command line asks for something that cannot be."""

    exit_code = 2


class CollectError(EprofError):
    """A program or its profiler could not be run; the exit code is `code` (126 and 127 as a shell does)."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class ShortageError(EprofError):
    """The machine, not the input: too little memory, too few files, threads or processes, no room."""


def shortage(err: BaseException) -> str | None:
    """The shortage (memory, files, threads, room) behind an error, and what to do, in half a sentence; else None."""
    seen: BaseException | None = err
    while seen is not None:
        if isinstance(seen, ShortageError):
            return str(seen)
        if isinstance(seen, MemoryError):
            return _MEMORY
        if isinstance(seen, OSError) and seen.errno in _SHORT:
            return _SHORT[seen.errno]
        if isinstance(seen, FileNotFoundError) and "temporary directory" in str(seen):
            return _SPACE
        # What the loader of shared libraries says has no number, nor has what Python and pyarrow say of threads.
        said = str(seen)
        if isinstance(seen, ImportError) and ("map segment" in said or "allocate memory" in said):
            return _MEMORY
        if "start new thread" in said or "launch worker thread" in said:
            return _STARTS
        seen = seen.__cause__ or seen.__context__
    return None
