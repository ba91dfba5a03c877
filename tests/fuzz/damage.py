"""Ways to spoil a log, as disks, networks, editors, scripts and enemies do; each is told by a seed."""

import random
import re
from collections.abc import Callable, Sequence

Damage = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
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


def values(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A value of TOML or JSON is of another type, endless, deep, or there twice."""
    found = list(_VALUES.finditer(data))
    if not found:
        return hostile(data, chance, others)
    one = chance.choice(found)
    if chance.random() < 0.1:
        return data[: one.end()] + b"\n" + one[0] + data[one.end() :]
    return data[: one.start(2)] + chance.choice(VALUES) + data[one.end(2) :]


def formulas(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """An operator or a number of a formula is another, or many."""
    found = list(_OPERANDS.finditer(data))
    if not found:
        return hostile(data, chance, others)
    one = chance.choice(found)
    return data[: one.start()] + chance.choice(OPERANDS) + data[one.end() :]


def lengthen(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A line is very long: a pattern that tries every place of it over and over would take hours."""
    place = chance.randrange(len(data) + 1)
    piece = chance.choice(FILLERS) if chance.random() < 0.7 else data[place : place + chance.randrange(1, 12)]
    return data[:place] + (piece or b" ") * (LONG // max(len(piece), 1)) + data[place:]


LONG = 40_000
FILLERS = (
    b" ", b"\t", b",", b'"', b'"",', b"1", b"9,", b"a", b"A ", b"(", b")", b"[", b"]", b"=", b"==1== ", b".", b";", b"; ",
    b" - ", b"_", b"_Z", b"<", b"a,", b" 1", b"  1", b"a: 1; ", b"1 ", b"\\", b"'", b"K", b"%", b"\xc3\xa9", b"\xff", b"x.", b"int ",
)  # fmt: skip
_VALUES = re.compile(rb"([\w\"]+\s*[=:]\s*)([^\n]*?)(?=,?\n|[\]}],?\n)")
VALUES = (
    b"0", b"-1", b"-0.0", b"1e308", b"1e-320", b"-1e308", b"nan", b"inf", b"-inf", b"NaN", b"Infinity", b"1e999", b"9" * 400,
    b"9" * 5000, b"true", b"null", b'""', b'"a"', b'" "', b"[]", b"{}", b"[[]]", b"[1]", b'["a"]', b'[""]', b"[true]", b"[nan]",
    b'{"a": 1}', b"{ a = 1 }", b"1979-05-27", b"07:32:00", b"1979-05-27T07:32:00Z", b"0x7fffffffffffffff", b"1_000",
    b'"\\u0000"', b'"\\ud800"', b'"\\u001b[31m"', b'"a\\nb"', b'"""\na\nb"""', b"[" * 3000, b"[" * 200 + b"]" * 200,
    b'{"a":' * 3000, b"{a=" * 150 + b"1" + b"}" * 150, b'"1/0"', b'"a ** b"', b'"__import__"', b'"a + a"', b'"852/924"',
)  # fmt: skip
_OPERANDS = re.compile(rb"[-+*/()]|\d+(?:\.\d+)?(?:e\d+)?|[a-z_]\w*")
OPERANDS = (
    b"+", b"-", b"*", b"/", b"**", b"//", b"%", b"(", b")", b" if ", b" or ", b"lambda: ", b".real", b"[0]", b"()", b"~", b"@",
    b"(" * 90, b"(" * 300, b"a+" * 120, b"a+" * 900, b"-" * 300, b"1e999", b"9" * 400, b"9" * 5000, b"0", b"1j", b"True",
    b"None", b"...", b"'a'", b"0x10", b"1_0", b"0777", b"a", b"__import__('os')", b"\n", b"#", b"\\", b";", b":=", b"\0",
    "\u00b2".encode(), "\u00aa".encode(), b"1if 1else 2", b"f'{a}'",
)  # fmt: skip
ALL = (cut, behead, drop_lines, swap_lines, flip_bits, other_locale, mix, repeat, hostile, numbers, fields)
# After these a total cannot be higher than before, unless a sentence says so.
ONLY_LESS = (cut, behead, drop_lines)


# For files that are no logs: their form is narrow, so most damages keep it.
OF_FORM = (
    values,
    values,
    values,
    values,
    numbers,
    numbers,
    fields,
    flip_bits,
    hostile,
    cut,
    drop_lines,
    mix,
    swap_lines,
)
VERY_LONG = (lengthen,)
OF_FORMULAS = (formulas, formulas, formulas, formulas, hostile, repeat, cut)


def damaged(data: bytes, seed: int, others: Sequence[bytes], ways: Sequence[Damage] = ALL) -> bytes:
    """`data` after one to three damages."""
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 4)):
        data = chance.choice(ways)(data, chance, others)
    return data
