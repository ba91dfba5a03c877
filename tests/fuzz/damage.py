"""Ways to spoil a log, as disks, networks, editors, scripts and enemies do; each is told by a seed."""

import random

LOCALES = ((b".", b","), (b",", b";"), (b"\n", b"\r\n"))


def cut(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Ends anywhere."""
    return data[: chance.randrange(len(data) + 1)]


def behead(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Begins anywhere."""
    return data[chance.randrange(len(data) + 1) :]


def drop_lines(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Some lines are lost."""
    lines = data.splitlines(keepends=True)
    return b"".join(line for line in lines if chance.random() > 0.1)


def swap_lines(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Two lines change places."""
    lines = data.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def flip_bits(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Some bits are wrong."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 8)):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def other_locale(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Points become commas, commas semicolons, line ends those of Windows."""
    before, after = chance.choice(LOCALES)
    return data.replace(before, after)


def mix(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """A piece of another log stands in the middle, as where two programs write one file."""
    other = chance.choice(others)
    place, start = chance.randrange(len(data) + 1), chance.randrange(len(other) + 1)
    return data[:place] + other[start : start + chance.randrange(1, 400)] + data[place:]


def repeat(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Appended to itself, or a line many times."""
    lines = data.splitlines(keepends=True)
    if lines and chance.random() < 0.5:
        place = chance.randrange(len(lines))
        return b"".join([*lines[:place], *([lines[place]] * chance.randrange(1, 50)), *lines[place:]])
    return data + data


def hostile(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Odd bytes and odd numbers in some place."""
    odd = [
        b'"',
        b'""',
        b"\0",
        b"\xff",
        b"\n\n",
        b"==1== ",
        b"1e999",
        b"-1",
        b"nan",
        b"9" * 400,
        b"<OVERFLOW>",
        b"\xef\xbb\xbf",
        b",," * 20,
    ]
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(odd) + data[place + chance.randrange(3) :]


ALL = (cut, behead, drop_lines, swap_lines, flip_bits, other_locale, mix, repeat, hostile)
# After these a total cannot be higher than before, unless a sentence says so.
ONLY_LESS = (cut, behead, drop_lines)


def damaged(data: bytes, seed: int, others: list[bytes]) -> bytes:
    """`data` after one to three damages."""
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 4)):
        data = chance.choice(ALL)(data, chance, others)
    return data
