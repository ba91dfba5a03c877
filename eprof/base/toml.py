"""Definition files: TOML that people write, checked closely, with a small formula language.

Formulas know `+ - * /`, parentheses, numbers and names; those of counters `min()` and `max()` too, those of growing
programs `^`, `log2()` and `sqrt()`. They are parsed with `ast` into a tree that is walked here; no text from a file is
ever run as Python.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property, lru_cache, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import tomli as tomllib  # compiled: twice as quick as the one of Python
from msgspec import Struct, ValidationError, convert

from eprof.base.errors import DefinitionError
from eprof.base.optional import mapped
from eprof.base.resources import content
from eprof.base.text import brief, did_you_mean, pattern, phrase, printable, when

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


Kind = TypeVar("Kind")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
GROWING = ("^", "log2()", "sqrt()")  # what formulas have besides that grow with a program's size
CHOOSING = ("min()", "max()")  # and those of counters
# Of formulas that grow. The power is a whole number.
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"log2": math.log2, "sqrt": math.sqrt}
_HIGHEST_POWER = 64
_LONGEST_FORMULA = 2000
_DEEPEST_FORMULA = 200  # a sum of so many terms; walked by recursion
_LARGEST_NUMBER = 1e100
_MOST_BYTES = 1 << 20
_LONGEST_MESSAGE = 2000
_LARGEST_INTEGER = 1 << 4096  # Python does not write those of 4,300 digits
_LONG_INTEGER = pattern(r"\w{1000}")
_TOO_LARGE = "an integer of more than a thousand digits"


class Formula(Struct, frozen=True, dict=True):
    """A checked formula: its text, the names it uses, and its value for given names."""

    text: str
    names: frozenset[str]

    @classmethod
    @lru_cache(maxsize=4096)  # definitions of GPUs share most of theirs
    def parse(cls, text: str, besides: tuple[str, ...] = ()) -> Formula:
        """Parse the formula in `text`, of a TOML file. Raises ValueError with the reason if it is none.

        besides: what it may have besides sums and products: GROWING, for numbers and no arrays, or CHOOSING.
        """
        if len(text) > _LONGEST_FORMULA:
            raise ValueError(f"the formula is longer than {_LONGEST_FORMULA} characters")
        if not text.isascii():  # Python would take some letters for others that look alike
            raise ValueError(f"`{text}` has letters other than a to z; use + - * / ( ), numbers and names")
        try:
            return cls(text, frozenset(_names(_parsed(text), besides)))
        except _NotAllowed:
            raise
        except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
            raise ValueError(f"`{text}` is not a formula; use + - * / ( ), numbers and names") from err

    @cached_property
    def _tree(self) -> ast.expr:
        return _parsed(self.text)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The formula's value, with `values` for its names; element by element for arrays. A missing name: KeyError."""
        return _value(self._tree, values)


class _NotAllowed(ValueError):
    """A formula that Python could read, and this language cannot."""


def _parsed(text: str) -> ast.expr:
    """The syntax tree of a formula, in which `^` is the power; Python's own `**` stays not allowed, as `|`."""
    return ast.parse(text.replace("**", "|").replace("^", "**"), mode="eval").body


def _names(tree: ast.expr, besides: Collection[str], depth: int = 0) -> set[str]:
    """The names in the tree of a formula; raises for what the formula language does not have."""
    if depth > _DEEPEST_FORMULA:
        raise _NotAllowed(f"the formula has more than {_DEEPEST_FORMULA} terms or parentheses; make steps of it")
    match tree:
        case ast.BinOp(left=inner, right=ast.Constant(value=int() as power), op=ast.Pow()) if besides == GROWING:
            if not 0 < power <= _HIGHEST_POWER:
                raise _NotAllowed(f"a power of the formula is no whole number from 1 to {_HIGHEST_POWER}")
            return _names(inner, besides, depth + 1)
        case ast.UnaryOp(op=ast.USub(), operand=inner) if besides == GROWING:
            return _names(inner, besides, depth + 1)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if besides == GROWING and name in _FUNCTIONS:
            return _names(inner, besides, depth + 1)
        case ast.BinOp(left=left, right=right, op=op) if type(op) in _OPERATORS:
            before, behind = _names(left, besides, depth + 1), _names(right, besides, depth + 1)
            if isinstance(op, ast.Div) and not behind and _value(right, {}) == 0:
                raise _NotAllowed("the formula divides by zero")
            return before | behind
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as choices, keywords=[]) if besides == CHOOSING:
            return set().union(*(_names(choice, besides, depth + 1) for choice in choices))
        case ast.Name(id=name):
            return {name}
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if abs(number) >= _LARGEST_NUMBER:
                raise _NotAllowed(f"a number of the formula is larger than {_LARGEST_NUMBER:g}")
            return set()
        case _:
            shown = ast.unparse(tree).replace("**", "^").replace("|", "**")
            more = "".join(f"{word} " for word in besides)
            raise _NotAllowed(f"`{shown}` is not allowed in a formula; use + - * / {more}( ), numbers and names")


def _value(tree: ast.expr, values: Mapping[str, Any]) -> Any:
    """The value of a checked formula's tree, with `values` for its names."""
    match tree:
        case ast.BinOp(left=left, right=ast.Constant(value=int() as power), op=ast.Pow()):
            # A float overflows where an integer would grow without end.
            return float(_value(left, values)) ** power
        case ast.UnaryOp(operand=operand):
            return -_value(operand, values)
        case ast.Call(func=ast.Name(id=function), args=[argument]):
            return _FUNCTIONS[function](_value(argument, values))
        case ast.Call(func=ast.Name(id=function), args=choices):
            import numpy as np  # what the command line reads before it needs numpy has no such formula

            choose = {"min": np.minimum, "max": np.maximum}[function]
            return reduce(choose, (_value(choice, values) for choice in choices))
        case ast.BinOp(left=left, right=right, op=op):
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=number):
            return number
    raise AssertionError(f"unchecked formula {ast.dump(tree)}")


class Document(Struct, frozen=True, eq=False):
    """A TOML file: its text and data. `error` finds the line of an entry, `root` is where entries are checked."""

    label: str
    text: str
    data: dict[str, Any]

    @classmethod
    def read(cls, source: Traversable) -> Document:
        """Read and parse a TOML file. Raises DefinitionError: no small file, not UTF-8, not TOML (with the line)."""
        label = str(source)
        try:
            text = content(source, _MOST_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as err:
            raise DefinitionError(f"{label}: not UTF-8 text (byte {err.start}); save it as UTF-8.") from err
        except OSError as err:
            raise DefinitionError(f"{label}: cannot be read ({err.strerror or err}).") from err
        return cls.parse(text, label)

    @classmethod
    def parse(cls, text: str, label: str) -> Document:
        """Parse the TOML in `text`, named `label` in messages. Raises DefinitionError with the line."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as err:
            reason, _, place = str(err).partition(" (at line ")
            line = phrase(":{}", place.partition(",")[0])
            raise DefinitionError(f"{label}{line}: not valid TOML: {reason}.") from err
        except RecursionError as err:
            raise DefinitionError(f"{label}: nested too deeply to be a definition.") from err
        except ValueError as err:  # what Python says of an integer of thousands of digits
            raise DefinitionError(f"{label}: not valid TOML: {_TOO_LARGE}.") from err
        # A quick look first: few files have such words.
        if _LONG_INTEGER.search(text) and any(abs(number) >= _LARGEST_INTEGER for number in _integers(data)):
            raise DefinitionError(f"{label}: not valid TOML: {_TOO_LARGE}.")
        return cls(label, text, data)

    def error(self, message: str, *keys: str | int) -> DefinitionError:
        """A DefinitionError that points at the line of the entry reached through `keys` (a number: place in a list)."""
        return DefinitionError(f"{self.label}:{line_of(self.text, *keys)}: {brief(message, _LONGEST_MESSAGE)}")

    def typed(self, data: Any, kind: type[Kind], hook: Callable[[Any, Any], Any] | None = None) -> Kind:
        """Some of the file's data as a structure; hook: makes those that msgspec does not. Raises DefinitionError."""
        try:
            return convert(data, kind, dec_hook=hook)
        except ValidationError as err:
            said, _, place = str(err).partition(" - at `$")
            keys = (int(key) if key.isdecimal() else key for key in re.findall(r"\w+", place))
            raise self.error(f"{said}.", *keys) from err

    @property
    def root(self) -> Node:
        """The whole TOML file as a table."""
        return Node(self, self.data)


class Node(Struct, frozen=True, eq=False):
    """A value in a document and the keys that lead to it. `value` is None where the file does not have it.

    Each check returns the value, or raises a DefinitionError that says with file and line what it must be. A `default`
    is for a value that may be missing.
    """

    document: Document
    value: Any
    path: tuple[str | int, ...] = ()

    @property
    def name(self) -> str:
        """The last key that leads to the value, for messages; "file" if there is none."""
        return next((key for key in reversed(self.path) if isinstance(key, str)), "file")

    def error(self, message: str) -> DefinitionError:
        """A DefinitionError that points at this value of the TOML file."""
        return self.document.error(message, *self.path)

    def wrong(self, kind: str) -> DefinitionError:
        """The DefinitionError to raise where the value is missing, or is not of `kind` (in words)."""
        if self.value is None:
            return self.error(f"`{self.name}` is missing; it must be {kind}.")
        return self.error(f"`{self.name}` must be {kind}, not {self.value!r}.")

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def __getitem__(self, key: str) -> Node:
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(self.document, value, (*self.path, key))

    def table(self, known: Collection[str] | None = None) -> Node:
        """The node itself, checked to be a table with no other keys than `known` (None: any)."""
        if not isinstance(self.value, dict):
            raise self.wrong("a table of keys and values")
        for key in self.value:
            if known is not None and key not in known:
                meant = did_you_mean(key, known)
                raise self[key].error(f"unknown key `{key}`; use one of: {', '.join(sorted(known))}.{meant}")
        return self

    def items(self, known: Collection[str] | None = None) -> list[tuple[str, Node]]:
        """The keys, checked to be `known` (None: any), and entries of a TOML table; [] for one that is missing."""
        if self.value is None:
            return []
        return [(key, self[key]) for key in self.table(known).value]

    def entries(self, kind: str = "a list") -> list[Node]:
        """The entries of a TOML list; [] for one that is missing. kind: what the list must be, for the message."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.wrong(kind)
        entries = []
        for number, entry in enumerate(self.value):
            # Lines are found for tables; others stand where the list stands.
            path = (*self.path, number) if isinstance(entry, dict) else self.path
            entries.append(Node(self.document, entry, path))
        return entries

    def each(self) -> list[Node]:
        """The entries of a TOML list, or a list of a value that stands alone; [] where it is missing."""
        if isinstance(self.value, list) or self.value is None:
            return self.entries()
        return [self]

    def schema(self, number: int) -> None:
        """Check that `schema` in this table, the version of the file's form, is `number`."""
        version = self["schema"]
        if isinstance(version.value, bool) or version.value != number:
            raise version.error(f"`schema` must be {number}, the form that this eprof reads, not {version.value!r}.")

    def text(self, default: str | None = None) -> str:
        """A text in a TOML file that is not blank."""
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.wrong("a text")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """A list of texts in a TOML file."""
        return tuple(entry.text() for entry in self.entries("a list of texts"))

    def choice(self, allowed: Collection[str], default: str | None = None) -> str:
        """One of the words allowed in a TOML file."""
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, str) or self.value not in allowed:
            state = mapped(repr, self.value) or "missing"
            raise self.error(f"`{self.name}` is {state}; use one of: {', '.join(allowed)}.")
        return self.value

    def truth(self, default: bool | None = None) -> bool:
        """True or false in a TOML file."""
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def number(self, least: float = -math.inf, most: float = math.inf) -> float:
        """A number in a TOML file; an integer that no float can hold is infinite."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf if self.value > 0 else -math.inf
        is_bounded = math.isfinite(least) or math.isfinite(most)
        if is_bounded and not least <= number <= most:
            raise self.wrong(f"a number from {least:g} to {most:g}")
        return number

    def formula(self, known: Collection[str], besides: tuple[str, ...] = ()) -> Formula:
        """A formula in a TOML file whose names are all `known`. besides: as `Formula.parse`."""
        if not isinstance(self.value, str):
            raise self.wrong("a formula, written as a text")
        try:
            formula = Formula.parse(self.value, besides)
        except ValueError as err:
            raise self.error(f"{err}.") from err
        for name in sorted(formula.names):
            if name not in known:
                words = ", ".join(sorted(known)) or "(none)"
                raise self.error(f"the formula uses `{name}`, which is not defined here; known: {words}.")
        return formula


def _integers(value: Any) -> Iterator[int]:
    """All integers in TOML data, at any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _integers(entry)
    elif isinstance(value, int):
        yield value


def quoted(words: str) -> str:
    """A text in quotes as TOML has it, on one line."""
    return '"' + printable(" ".join(words.split())).replace("\\", "\\\\").replace('"', '\\"') + '"'


def line_of(text: str, *keys: str | int) -> int:
    """The line of the TOML entry reached through `keys`, or the nearest one above it (1 if none is found).

    tomllib gives no lines after parsing. This looks for the table header that covers most of `keys`, then for the next
    key below it; inline tables are searched on the line of their parent. A number among `keys` is an entry of a list.
    """
    lines = [when(not line.lstrip().startswith("#"), line) for line in text.split("\n")]
    place, used = 0, 0
    for number, line in enumerate(lines):
        header = line.lstrip()
        if header.startswith("[") and "]" in header:
            parts = [part.strip().strip("\"'") for part in header.lstrip("[").partition("]")[0].split(".")]
            if tuple(parts) == keys[: len(parts)] and len(parts) > used:
                place, used = number, len(parts)
    for key in keys[used:]:
        if isinstance(key, int):
            # An entry of a list begins with its `[[header]]`, or its `{`.
            opening = (*re.findall(r"^\s*(\[\[[^\]]*\]\])", lines[place]), "{")[0]
            seen = accumulate(line.count(opening) for line in lines[place:])
            place = next((number for number, entries in enumerate(seen, place) if entries > key), place)
        else:
            sets_key = re.compile(rf"(^|[\s{{,.])[\"']?{re.escape(key)}[\"']?\s*[=.]")
            headers = (number for number in range(place + 1, len(lines)) if lines[number].lstrip().startswith("["))
            below = range(place, next(headers, len(lines)))
            place = next((number for number in below if sets_key.search(lines[number])), place)
    return place + 1
