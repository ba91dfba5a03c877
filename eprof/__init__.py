"""eprof: where do this kernel's joules go, and what can I change?"""

__version__ = "0.1.0"
__all__ = ["Difference", "Energy", "EprofError", "Profile", "__version__", "diff", "kernel_tuner", "load", "run"]

# Importing `typing` would take longer than all the rest of `import eprof`; type checkers know this name as it is.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from eprof.api import load, run
    from eprof.api.kernel_tuner import kernel_tuner
    from eprof.api.variants import diff
    from eprof.base.errors import EprofError
    from eprof.compare.difference import Difference
    from eprof.profile.profile import Energy, Profile

_HOMES = {
    "diff": "eprof.api.variants",
    "kernel_tuner": "eprof.api.kernel_tuner",
    "load": "eprof.api",
    "run": "eprof.api",
    "Difference": "eprof.compare.difference",
    "Energy": "eprof.profile.profile",
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
