"""`KEY=value` arguments and errors that say what to write instead."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COMMON_FLAGS = ("--count", "--json", "--source", "--help")


class SampleError(Exception):
    """Bad input or a missing backend: one message, exit code 1."""


class UsageError(SampleError):
    """A bad command line: exit code 2."""


@dataclass(frozen=True)
class Key:
    """One `name=value`: its default, how to read it, and what it means."""

    default: Any
    read: Callable[[str, str], Any]
    meaning: str


def whole(least: int, most: int | None = None) -> Callable[[str, str], int]:
    """A reader of whole numbers, also written 1e6, from `least` to `most`."""

    def read(name: str, text: str) -> int:
        try:
            number = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError:
            raise UsageError(f"{name}={text} is not a number") from None
        if number != number // 1 or number < least or (most is not None and number > most):
            upto = "" if most is None else f" to {most}"
            raise UsageError(f"{name}={text}: {name} is a whole number, {least}{upto or ' or more'}")
        return int(number)

    return read


def one_of(*choices: str) -> Callable[[str, str], str]:
    """A reader of one word of several."""

    def read(name: str, text: str) -> str:
        if text not in choices:
            raise UsageError(f"{name}={text}: {name} is one of {', '.join(choices)}")
        return text

    return read


def any_text(_name: str, text: str) -> str:
    """A reader that takes anything."""
    return text


PRECISION = Key("single", one_of("single", "double"), "precision of the arithmetic")
COMMON_KEYS = {
    "seed": Key(1, whole(0), "seed of the random numbers"),
    "repeat": Key(1, whole(1), "how often to run"),
    "backend": Key(
        "auto",
        one_of("auto", "cuda", "driver", "opencl"),
        "auto takes cuda where there is a GPU; driver: CUDA without CuPy",
    ),
    "device": Key("", any_text, "part of the OpenCL device's name, e.g. oclgrind or portable"),
}


def usage(program: str, keys: Mapping[str, Key], about: str) -> str:
    """What --help prints."""
    rows = [f"  {f'{name}={key.default}':<20}{key.meaning}" for name, key in keys.items()]
    flags = [
        "  --count             print from the lists alone what must be done, and run nothing",
        "  --json              print JSON",
        "  --source            print the source that would be compiled: CUDA or OpenCL, by the compiler's own macro",
    ]
    return "\n".join([f"usage: {program} [KEY=value...] [--count] [--json] [--source]", about, "", *rows, *flags])


def parse(arguments: Sequence[str], keys: Mapping[str, Key]) -> tuple[dict[str, Any], set[str]]:
    """Values by key and the flags that were given. Raises UsageError."""
    values, flags = {name: key.default for name, key in keys.items()}, set()
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if argument in COMMON_FLAGS or argument == "-h":
            flags.add("--help" if argument == "-h" else argument)
        elif not equals or name not in keys:
            what = f"unknown key `{name}`" if equals else f"`{argument}` is neither KEY=value nor a flag"
            raise UsageError(f"{what}; keys are {', '.join(keys)}, flags are {', '.join(COMMON_FLAGS)}")
        else:
            values[name] = keys[name].read(name, text)
    return values, flags
