"""eprof: where do this kernel's joules go, and what can I change?"""

from eprof.base.version import __version__

__all__ = [
    "Difference",
    "Energy",
    "EprofError",
    "Profile",
    "__version__",
    "diff",
    "get_include",
    "kernel_tuner",
    "load",
    "mark",
    "run",
]

# Importing `typing` would take longer than all the rest of `import eprof`; type checkers know this name as it is.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from eprof.base.errors import EprofError
    from eprof.base.mark import get_include, mark
    from eprof.commands.diff.compare import Difference, diff
    from eprof.commands.run.settings import run
    from eprof.profile.api import load
    from eprof.profile.priced import Energy
    from eprof.profile.profile import Profile
    from eprof.profilers.ncu.handed_on import kernel_tuner

_HOMES = {
    "diff": "eprof.commands.diff.compare",
    "kernel_tuner": "eprof.profilers.ncu.handed_on",
    "load": "eprof.profile.api",
    "get_include": "eprof.base.mark",
    "mark": "eprof.base.mark",
    "run": "eprof.commands.run.settings",
    "Difference": "eprof.commands.diff.compare",
    "Energy": "eprof.profile.priced",
    "Profile": "eprof.profile.profile",
    "EprofError": "eprof.base.errors",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import eprof` loads neither pandas nor numpy."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'eprof' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What `dir(eprof)` and Tab offer, imported or not."""
    return list(__all__)
