"""eprof: where do this kernel's joules go, and what can I change?"""

__version__ = "0.1.0"

# Importing `typing` would take longer than all the rest of `import eprof`; type checkers know this name as it is.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from eprof.base.errors import EprofError as EprofError
    from eprof.collect.program_marks import get_include as get_include
    from eprof.collect.program_marks import mark as mark
    from eprof.commands.diff.compare import Difference as Difference
    from eprof.commands.diff.compare import diff as diff
    from eprof.commands.run.session import run as run
    from eprof.profile.api import load as load
    from eprof.profile.profile import Energy as Energy
    from eprof.profile.profile import Profile as Profile
    from eprof.profilers.ncu.handed_on import kernel_tuner as kernel_tuner

_HOMES = {
    "Difference": "eprof.commands.diff.compare",
    "Energy": "eprof.profile.profile",
    "EprofError": "eprof.base.errors",
    "Profile": "eprof.profile.profile",
    "diff": "eprof.commands.diff.compare",
    "get_include": "eprof.collect.program_marks",
    "kernel_tuner": "eprof.profilers.ncu.handed_on",
    "load": "eprof.profile.api",
    "mark": "eprof.collect.program_marks",
    "run": "eprof.commands.run.session",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import eprof` loads neither pandas nor numpy."""
    from importlib import import_module

    if name == "__all__":
        return __dir__()
    if name not in _HOMES or not _is_here(_HOMES[name]):
        raise AttributeError(f"module 'eprof' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What `dir(eprof)` and Tab offer, imported or not."""
    return ["__version__", *(name for name, home in _HOMES.items() if _is_here(home))]


def _is_here(module: str) -> bool:
    """Whether a module of eprof is there: the folders of commands and profilers may be deleted."""
    from pathlib import Path

    return Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py").is_file()
