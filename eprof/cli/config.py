"""`--config FILE`: values for options that the command line does not give, from a TOML file."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eprof.base.toml import Document

_NO_KEYS = {"help", "version", "config"}
Actions = dict[str, argparse.Action]


def options_of(parser: argparse.ArgumentParser) -> Actions:
    """The options that a configuration file may hold, by its key: `kernel_name` for `--kernel-name`."""
    found = (one for one in parser._actions if one.option_strings and one.dest not in _NO_KEYS)
    return {one.dest: one for one in found}


def fill(options: argparse.Namespace, given: Iterable[str], own: Actions, all_of_them: Actions) -> None:
    """Set the options of which the command line gives none to what the file says.

    given: what the command line gives; own: the command's options. all_of_them: those of every command, so that one
    file serves all: what only others have is checked too, and left out.
    Raises DefinitionError with the line for an option that does not exist, or a value that it cannot have.
    """
    from eprof.base.toml import Document

    document = Document.read(Path(options.config))
    document.check_keys(document.data, all_of_them)
    taken = set(given)
    options.configured = set()
    for key, value in document.data.items():
        value = _value(document, own.get(key, all_of_them[key]), value)
        if key in own and key not in taken:
            setattr(options, key, value)
            options.configured.add(key)


def asked(options: argparse.Namespace, key: str) -> bool:
    """Whether the command line itself has this option: one of a file that serves all commands may have no use here."""
    return getattr(options, key) not in (None, [], False) and key not in getattr(options, "configured", ())


def _value(document: "Document", option: argparse.Action, value: Any) -> Any:
    """The value as the option takes it."""
    if option.nargs == 0:
        return _checked(document, option, value, isinstance(value, bool), "true or false")
    if isinstance(option.default, list):
        many = [value] if isinstance(value, str) else value
        good = isinstance(many, list) and all(isinstance(one, str) for one in many)
        _checked(document, option, many, good, "a text or a list of texts")
        return [_one(document, option, one) for one in many]
    return _one(document, option, value)


def _one(document: "Document", option: argparse.Action, value: Any) -> Any:
    if option.choices is not None:
        choices = list(option.choices)
        return _checked(document, option, value, value in choices, f"one of: {', '.join(choices)}")
    if option.type is None:
        return _checked(document, option, value, isinstance(value, str), "a text")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    _checked(document, option, value, number, "a number")
    try:
        return option.type(str(value))  # type: ignore[operator]
    except (ValueError, argparse.ArgumentTypeError) as err:
        said = str(err) if isinstance(err, argparse.ArgumentTypeError) else "must be a whole number"
        raise document.error(f"`{option.dest}`: {said}.", option.dest) from err


def _checked(document: "Document", option: argparse.Action, value: Any, good: bool, what: str) -> Any:
    if not good:
        raise document.error(f"`{option.dest}` must be {what}.", option.dest)
    return value
