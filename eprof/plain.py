"""Text from logs made safe to show: names in logs may hold escape sequences, on purpose or by accident.

What shows nothing, or turns the text around it (zero width, direction), would make one name look like another; it is
shown as an escape too. Letters that look alike in two scripts are not told apart.
"""

import re

_SPACES = "\n\r\t\u00a0\u202f"
_KEPT = "\n\t\u00a0\u202f"
# Python takes these for printable, but no font shows them.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str) -> str:
    r"""`text` with control and other unprintable characters as visible escapes; new lines become ` `."""
    if text.isprintable() and text.isascii():
        return text
    shown = "".join(char if char.isprintable() else " " if char in _SPACES else _escape(char) for char in text)
    return _UNSEEN.sub(lambda found: _escape(found[0]), shown)


def visible(text: str) -> str:
    """The same for a page, which breaks lines by itself and has spaces that do not break."""
    if text.isprintable() and text.isascii():
        return text
    shown = "".join(char if char.isprintable() or char in _KEPT else _escape(char) for char in text)
    return _UNSEEN.sub(lambda found: _escape(found[0]), shown)


def brief(text: str, most: int) -> str:
    """At most about `most` characters of `text`; what was left out is said."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
