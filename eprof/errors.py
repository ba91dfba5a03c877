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
