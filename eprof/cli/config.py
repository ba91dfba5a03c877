"""`--config FILE`: values for options that the command line does not give, from a TOML file."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eprof.base.toml import Node

_NO_KEYS = {"help", "version", "config"}
Actions = dict[str, argparse.Action]


def options_of(parser: argparse.ArgumentParser) -> Actions:
    """The options that a configuration file may hold, by its key: `kernel_name` for `--kernel-name`."""
    return {option.dest: option for option in parser._actions if option.option_strings and option.dest not in _NO_KEYS}


def fill(options: argparse.Namespace, given: Iterable[str], own: Actions, known: Actions) -> None:
    """Set the options that the command line does not give to what the file says.

    given: the options that the command line gives; own: the command's options. known: those of every command, so that
    one file serves all: what only others have is checked too, and left out.
    Raises DefinitionError with the line for an option that does not exist, or a value that it cannot have.
    """
    from eprof.base.toml import Document

    taken = set(given)
    options.configured = set()
    for key, node in Document.read(Path(options.config)).root.table(known).items():
        value = _value(own.get(key, known[key]), node)
        if key in own and key not in taken:
            setattr(options, key, value)
            options.configured.add(key)


def asked(options: argparse.Namespace, key: str) -> bool:
    """Whether the command line itself has this option: one of a file that serves all commands may have no use here."""
    return getattr(options, key) not in (None, [], False) and key not in getattr(options, "configured", ())


def _value(option: argparse.Action, node: "Node") -> Any:
    """The value as the option takes it."""
    if option.nargs == 0:
        return node.truth()
    if isinstance(option.default, list):
        return [_single(option, each) for each in node.each()]
    return _single(option, node)


def _single(option: argparse.Action, node: "Node") -> Any:
    if option.choices is not None:
        return node.choice(list(option.choices))
    if option.type is None:
        return node.text()
    node.number()
    try:
        return option.type(str(node.value))  # type: ignore[operator]
    except argparse.ArgumentTypeError as err:
        raise node.error(f"`{option.dest}`: {err}.") from err
    except ValueError as err:
        raise node.wrong("a whole number") from err
