"""Text from logs, made safe for a terminal: names in logs may hold escape sequences, on purpose or by accident."""

_SPACES = "\n\r\t\u00a0\u202f"


def printable(text: str) -> str:
    r"""`text` with control and other unprintable characters as visible escapes; new lines become ` `."""
    return "".join(char if char.isprintable() else " " if char in _SPACES else _escape(char) for char in text)


def _escape(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"
