"""Values for options that the command line does not give, from a TOML file: `--config FILE`, or one that is found."""

import argparse
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof.cli.options import expanded

if TYPE_CHECKING:
    from eprof.base.toml import Node

_NO_KEYS = {"help", "version", "config"}
# A file that came with somebody's logs must not write files, start a browser, connect to anything, run a benchmark or
# change clocks, nor what one side of a comparison costs.
_ONLY_NAMED = ("output", "force", "open", "scheduler", "directory", "shim", "mpi", "clock", "lock_clocks", "settings")
_ONE_SIDE = ("old_", "new_", "more_")
# The change that a gate judges may bring a file; of what the gate sees, that one decides nothing.
_GATES = ("fail_above", "max_error")
_LOOKS = (*_GATES, "format", "no_color", "verbose", "quiet", "jobs")
Actions = dict[str, argparse.Action]


def options_of(parser: argparse.ArgumentParser) -> Actions:
    """Key of a configuration file -> the option of a command that it sets: `kernel_name` -> `--kernel-name`."""
    return {option.dest: option for option in parser._actions if option.option_strings and option.dest not in _NO_KEYS}


def find() -> Path | None:
    """The configuration file for this folder, `eprof.toml` or a `pyproject.toml` with `[tool.eprof]`; None: none.

    The nearest one, up to the root of the repository or the home folder. Outside of both, this folder alone counts:
    everybody may write to /tmp.
    """
    with contextlib.suppress(OSError):
        here = Path.cwd()
        home = Path("~").expanduser()
        above = [here, *here.parents]
        last = next((folder for folder in above if folder == home or (folder / ".git").exists()), here)
        for folder in above[: above.index(last) + 1]:
            own = folder / "eprof.toml"
            if own.is_file():
                return own
            project = folder / "pyproject.toml"
            if project.is_file() and b"[tool.eprof" in project.read_bytes():
                return project
    return None


def fill(options: argparse.Namespace, given: Iterable[str], own: Actions, known: Actions, found: Path | None) -> None:
    """Set the options that the command line does not give to what the configuration file says.

    given: the options that the command line gives; own: the command's options. known: those of every command, so that
    one file serves all: what only others have is checked too, and left out. found: the file, if `--config` names none.
    Raises DefinitionError with the line for an option that does not exist, or a value that it cannot have.
    """
    from eprof.base.toml import Document

    path = found or Path(options.config)
    table = Document.read(path).root
    if path.name == "pyproject.toml":
        table = table["tool"]["eprof"]
    taken = set(given)
    options.configured = set()
    keys = table.table(known)
    gates = [gate for gate in _GATES if gate in own and (gate in keys or gate in taken)]
    for key, node in keys.items():
        is_judged = bool(gates) and key in own and key not in taken and key not in _LOOKS
        if found is not None and (is_judged or key in _ONLY_NAMED or key.startswith(_ONE_SIDE)):
            under = f" under --{gates[0].replace('_', '-')}" if is_judged else ""
            raise node.error(f"`{key}` counts{under} only in a file that --config names, and this one was found.")
        option = own.get(key, known[key])
        value: Any = None
        if option.nargs == 0:
            value = node.truth()
        elif isinstance(option.default, list):
            value = [_single(option, each, path.parent) for each in node.each()]
        else:
            value = _single(option, node, path.parent)
        if key in own and key not in taken:
            setattr(options, key, value)
            options.configured.add(key)


def is_given(options: argparse.Namespace, key: str) -> bool:
    """Whether the command line itself gives this option; False where a configuration file does."""
    return getattr(options, key) not in (None, [], False) and key not in getattr(options, "configured", ())


def _single(option: argparse.Action, node: "Node", folder: Path) -> Any:
    if option.choices is not None:
        return node.choice(list(option.choices))
    if option.type is None:
        text = node.text()
        # A file that lies beside the configuration file, and not in this folder, by a path that leads there from here.
        with contextlib.suppress(OSError):  # too long for a path
            if "FILE" in str(option.metavar) and not Path(text).exists() and (folder / text).is_file():
                return str(folder / text)
        return text
    check = node.text if option.type is expanded else node.number
    check()
    try:
        return option.type(str(node.value))  # type: ignore[operator]
    except argparse.ArgumentTypeError as err:
        raise node.error(f"`{option.dest}`: {err}.") from err
    except ValueError as err:
        raise node.wrong("a whole number") from err
