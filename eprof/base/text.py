"""Text: made safe to show, as names in logs may hold escape sequences; put together into phrases; short reprs.

What shows nothing, or turns the text around it (zero width, direction), would make one name look like another; it is
shown as an escape too. Letters that look alike in two scripts look alike here too.
"""

import re
from collections.abc import Iterable, Sequence, Sized
from typing import Any, AnyStr, ClassVar, cast


class _Pattern:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, attribute)
        return attribute


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression compiled when first used: to compile all of them takes a tenth of a small report."""
    return cast(re.Pattern[AnyStr], _Pattern(text, flags))


_SPACES = "\n\r\t\u00a0\u202f"
_KEPT = "\n\t\u00a0\u202f"
# Python takes these for printable, but no font shows them.
_UNSEEN = pattern("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")

_MARKUP = pattern(r"[\\|*\[\]`$]|~{2,}|(?<![^\W_])_+|_+(?![^\W_])")
_OPENS_BLOCK = pattern(r"^\s*(?=>|(?:#{1,6}|[+-]|-{2,}|={2,})(?:\s|$))")
_CALLS = pattern(r"@(?=\w)|(?:https?|ftp|mailto|xmpp):|\bwww\.", re.IGNORECASE)


def printable(text: str) -> str:
    r"""`text` with control and other unprintable characters as visible escapes; new lines and tabs become blanks."""
    if text.isprintable() and text.isascii():
        return text
    return visible(re.sub(f"[{_SPACES}]", " ", text))


def visible(text: str) -> str:
    """`text` with unprintable characters as visible escapes; new lines, tabs and spaces that do not break stay."""
    if text.isprintable() and text.isascii():
        return text
    shown = "".join(char if char.isprintable() or char in _KEPT else _escape(char) for char in text)
    return _UNSEEN.sub(lambda match: _escape(match[0]), shown)


def when(holds: object, text: str) -> str:
    """`text` where `holds` is true, else ""."""
    return text if holds else ""


def phrase(form: str, *values: object) -> str:
    """`form` filled in: (" at {:g} MHz", 852.0), " at 852 MHz"; "" where one of the values is None or ""."""
    is_known = all(value is not None and value != "" for value in values)
    return form.format(*values) if is_known else ""


def by_sign(change: float, falls: str, rises: str) -> str:
    """The word for a change: `falls` below 0, else `rises`."""
    return falls if change < 0 else rises


def counted(number: int, noun: str, several: str = "") -> str:
    """A number of things: "1 note", "3 notes". several: what more than one are called, if not so ("lines are")."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def uncapital(text: str) -> str:
    """`text` with a small first letter, as inside a sentence; "FP64 add" and "L2 read" stay as they are."""
    if text[1:2].isupper() or text[1:2].isdigit():
        return text
    return text[:1].lower() + text[1:]


def capital(text: str) -> str:
    """`text` with a capital first letter, as a sentence starts."""
    return text[:1].upper() + text[1:]


def in_code(text: str) -> str:
    """`text` as code in Markdown, also in a cell of a table: nothing in it is markup."""
    return "`" + (visible(text).replace("`", "").replace("|", "\\|").replace("\n", " ").strip() or " ") + "`"


def in_markdown(text: str) -> str:
    """Text as a line of Markdown, or a cell of a table; what stands between back ticks stays code.

    No HTML, no links (of addresses neither), no pictures, headings or lists, and nobody who is called by an `@`.
    """
    pieces = re.split("(`[^`]*`)", visible(text).replace("\n", " ").replace("\t", " "))
    for number, piece in enumerate(pieces):
        is_code = number % 2 == 1
        if is_code:
            pieces[number] = in_code(piece[1:-1])
            continue
        prose = _MARKUP.sub(lambda match: "".join(f"\\{char}" for char in match[0]), piece)
        prose = re.sub(r"&(?=#?\w+;)", "&amp;", prose).replace("<", "&lt;")
        pieces[number] = _CALLS.sub(r"\g<0><!-- -->", prose)
    return _OPENS_BLOCK.sub(r"\g<0>\\", "".join(pieces))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question with a space in front, about the known word that is most like `word`; "" if none is."""
    import difflib

    return "".join(f" Did you mean `{close}`?" for close in difflib.get_close_matches(word, list(known), n=1))


def brief(text: str, most: int) -> str:
    """The first `most` characters of `text`, and how many more there are: "abc… (12 more characters)"."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def cut(text: str, length: int) -> str:
    """`text` cut to `length` characters, with "…" for its middle, where names that are alike differ least."""
    if len(text) <= length:
        return text
    tail = (length - 1) * 2 // 5
    return f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"


def bracketed(text: str) -> str:
    """`text` in brackets behind a blank: " (8 to 14 J)"; "" where `text` is empty."""
    return phrase(" ({})", text)


def listed(words: Sequence[str], last: str = "and") -> str:
    """Words as a list: "a, b and c"."""
    *first, end = words
    return phrase("{} {} ", ", ".join(first), last) + end


def few(words: Sequence[str], most: int, noun: str = "") -> str:
    """A text of the first `most` words, and how many more: "a, b and 3 more" (`noun`: "and 3 more kernels")."""
    shown = ", ".join(words[:most])
    if len(words) <= most:
        return shown
    rest = len(words) - most
    return f"{shown} and {rest:,} more {noun.removesuffix('s') if rest == 1 else noun}".rstrip()


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# ----------------------------------------------------------------------------------------------------------------------
# A `repr` that fits a line, for structures that hold whole logs and tables.

_REPR_WIDTH = 79
_LONGEST_FIELD = 30
_LEAST_TITLE = 12  # that is left of a title


class ShortRepr:
    """A mixin for structs: its `repr` shows words and numbers, and of all else how much there is."""

    __slots__ = ()
    __struct_fields__: tuple[str, ...]

    def __repr__(self) -> str:
        """A struct's fields that are known, as many as fit a line."""
        fields = [(name, getattr(self, name)) for name in self.__struct_fields__ if not name.startswith("_")]
        known = (f"{name}={_short(value)}" for name, value in fields if value is not None)
        return short_repr(type(self), ", ".join(known))


class NotebookResult(ShortRepr):
    """A mixin for results that notebooks show at the end of a cell. _notebook: the module whose `html` draws them."""

    __slots__ = ()
    _notebook: ClassVar[str] = "eprof.commands.report.files"

    def _repr_html_(self) -> str | None:
        """A result in a notebook, briefly: headline, bar and table; None where the command's folder is gone."""
        from importlib import import_module
        from importlib.util import find_spec

        if find_spec(self._notebook.rpartition(".")[0]) is None:
            return None
        html: str = import_module(self._notebook).html(self)
        return html


def short_repr(kind: type, about: str, title: str = "") -> str:
    """`<Kind about>` in one line of a terminal, or `<Kind of 'title': about>`, whose title is cut before the rest."""
    room = _REPR_WIDTH - len(kind.__name__) - 3
    if title:
        left = max(room - len(f"of : {about}"), _LEAST_TITLE)
        about = f"of {cut(repr(title), left)}: {about}"
    about = printable(about)
    if len(about) > room:
        about = about[: room - 1] + "…"
    return f"<{kind.__name__} {about}>"


def _short(value: Any) -> str:
    """A value of a `repr` where it is short; else its kind, and how many it holds."""
    if isinstance(value, str | int | float | ShortRepr) and len(text := repr(value)) <= _LONGEST_FIELD:
        return text
    if isinstance(value, str):
        return repr(value[: _LONGEST_FIELD - 3] + "…")
    kind = type(value).__name__
    if isinstance(value, Sized):
        kind += f"[{len(value)}]"
    return kind
