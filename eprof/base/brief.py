"""A `repr` that fits a line, for structures that hold whole logs and tables."""

from collections.abc import Sized
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from eprof.base.text import cut, printable

_WIDTH = 79
_LONGEST = 30
_LEAST = 12  # that is left of a title


class Brief:
    """A mixin for structs: its `repr` shows words and numbers, and of all else how much there is."""

    __slots__ = ()
    __struct_fields__: tuple[str, ...]

    def __repr__(self) -> str:
        """The fields that are known, as many as fit a line."""
        fields = [(name, getattr(self, name)) for name in self.__struct_fields__ if not name.startswith("_")]
        return brief(type(self), ", ".join(f"{name}={_short(value)}" for name, value in fields if value is not None))


class Result(Brief):
    """A mixin for results that notebooks show at the end of a cell. _notebook: the module whose `html` draws them."""

    __slots__ = ()
    _notebook: ClassVar[str] = "eprof.commands.report.files"

    def _repr_html_(self) -> str | None:
        """A result in a notebook, briefly: headline, bar and table; None where the command's folder is gone."""
        if find_spec(self._notebook.rpartition(".")[0]) is None:
            return None
        html: str = import_module(self._notebook).html(self)
        return html


def brief(kind: type, about: str, title: str = "") -> str:
    """`<Kind about>` in one line of a terminal, or `<Kind of 'title': about>`, whose title is cut before the rest."""
    room = _WIDTH - len(kind.__name__) - 3
    if title:
        left = max(room - len(f"of : {about}"), _LEAST)
        about = f"of {cut(repr(title), left)}: {about}"
    about = printable(about)
    if len(about) > room:
        about = about[: room - 1] + "…"
    return f"<{kind.__name__} {about}>"


def _short(value: Any) -> str:
    """A value of a `repr` where it is short; else its kind, and how many it holds."""
    if isinstance(value, str | int | float | Brief) and len(text := repr(value)) <= _LONGEST:
        return text
    if isinstance(value, str):
        return repr(value[: _LONGEST - 3] + "…")
    kind = type(value).__name__
    if isinstance(value, Sized):
        kind += f"[{len(value)}]"
    return kind
