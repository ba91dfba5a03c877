"""Ways to spoil a log, as disks, networks, editors, scripts and enemies do; each is told by a seed."""

import random
import re
from collections.abc import Sequence

LOCALES = ((b".", b","), (b",", b";"), (b"\n", b"\r\n"))


def cut(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Ends anywhere."""
    return data[: chance.randrange(len(data) + 1)]


def behead(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Begins anywhere."""
    return data[chance.randrange(len(data) + 1) :]


def drop_lines(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Some lines are lost."""
    lines = data.splitlines(keepends=True)
    return b"".join(line for line in lines if chance.random() > 0.1)


def swap_lines(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Two lines change places."""
    lines = data.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def flip_bits(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Some bits are wrong."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 8)):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def other_locale(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Points become commas, commas semicolons, line ends those of Windows."""
    before, after = chance.choice(LOCALES)
    return data.replace(before, after)


def mix(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A piece of another log stands in the middle, as where two programs write one file."""
    other = chance.choice(others)
    place, start = chance.randrange(len(data) + 1), chance.randrange(len(other) + 1)
    return data[:place] + other[start : start + chance.randrange(1, 400)] + data[place:]


def repeat(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Appended to itself, or a line many times."""
    lines = data.splitlines(keepends=True)
    if lines and chance.random() < 0.5:
        place = chance.randrange(len(lines))
        return b"".join([*lines[:place], *([lines[place]] * chance.randrange(1, 50)), *lines[place:]])
    return data + data


def hostile(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Odd bytes and odd numbers in some place."""
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(ODD) + data[place + chance.randrange(3) :]


def numbers(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A number is another one, or none."""
    found = list(_DIGITS.finditer(data))
    if not found:
        return data
    one = chance.choice(found)
    return data[: one.start()] + chance.choice(NUMBERS) + data[one.end() :]


def fields(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A field, a word or a line stands where another did, or also there."""
    sign = chance.choice((b",", b" ", b'"', b"\n"))
    parts = data.split(sign)
    parts[chance.randrange(len(parts))] = chance.choice(parts)
    return sign.join(parts)


_DIGITS = re.compile(rb"\d+")
NUMBERS = (
    b"0", b"-1", b"-0", b"1e999", b"1e308", b"-1e308", b"1e-320", b"nan", b"inf", b"-inf", b"9" * 18, b"9" * 19,
    b"18446744073709551615", b"9" * 30, b"9" * 400, b"9" * 5000, b"1e18", b"0x10", b"1_000", b".", b"1.5.2", b"+1",
    "\u00b2".encode(), "\u0661\u0662".encode(), "\u2460".encode(), b"", b"1,024", b"1.024,5", b"<OVERFLOW>", b"true",
)  # fmt: skip
ODD = (
    *NUMBERS, b'"', b'""', b"\0", b"\xff", b"\n\n", b"\n", b"\r", b"==1== ", b"==PROF== ", b"======== ", b"\xef\xbb\xbf",
    b",," * 20, b";", b"(", b")" * 9, b"[" * 300, b"{}" * 9, b"\x1b[31m", b"\xe2\x80\xae", b"\xed\xa0\x80", b"../", b"%s",
)  # fmt: skip
ALL = (cut, behead, drop_lines, swap_lines, flip_bits, other_locale, mix, repeat, hostile, numbers, fields)
# After these a total cannot be higher than before, unless a sentence says so.
ONLY_LESS = (cut, behead, drop_lines)


def damaged(data: bytes, seed: int, others: Sequence[bytes]) -> bytes:
    """`data` after one to three damages."""
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 4)):
        data = chance.choice(ALL)(data, chance, others)
    return data
