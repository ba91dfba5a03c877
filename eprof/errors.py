"""What can go wrong: one clear sentence each, saying what was wrong, where, and what to do."""


class EprofError(Exception):
    """Root of all errors that a user can mend. The door prints it as one message and exits with code 1."""


class LogError(EprofError):
    """A log cannot be read, or holds nothing that can be reported on."""


class DefinitionError(EprofError):
    """A file in `counters/` or `costs/` is not right; the message names the file and the line."""


class CostError(EprofError):
    """A cost table has no price, no setting or no unit for what was asked."""


class UsageError(EprofError):
    """The command line asks for something that cannot be; exit code 2."""


class CollectError(EprofError):
    """A program or its profiler could not be run; the door exits with `code` (126 and 127 as a shell does)."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
