"""The machine code behind the addresses of a profile: what each instruction does, and how many bytes it moves.

Instructions are decoded by capstone, each address once; `counters/callgrind/mnemonics.toml` says what they count as.
"""

import functools
import mmap
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import LogError
from eprof.base.resources import folder
from eprof.base.toml import Document

MISC = "misc"
EXTRA = "pip install capstone"
_LONGEST = 15  # bytes of an instruction
_GAP = 64  # bytes of code that did not run: from so many on, they are not decoded either
_IMPLICIT = ("push", "pop", "call", "ret", "leave", "enter", "xlat")
_SIZES = {"byte": 1, "word": 2, "dword": 4, "fword": 6, "qword": 8, "tbyte": 10, "xword": 10, "xmmword": 16,
          "ymmword": 32, "zmmword": 64}  # fmt: skip
_VECTOR = re.compile(r"\b([xyz]?)mm")
_WIDTHS = {"": 8, "x": 16, "y": 32, "z": 64}
_STACK = 8  # bytes that a push, a pop, a call or a return moves


class Instruction(NamedTuple):
    """What one execution counts: `lanes` of the class `counted_as`, and the bytes of an access to memory (0: none).

    each: one execution has several accesses (gathers, comparisons of strings); else a vector is one, however often it
    was counted. steps: an instruction on strings is executed once for so many accesses, and once more where it ends (0:
    no such instruction). masked: the event of a move of those lanes that a mask selects; "" for others.
    """

    counted_as: str
    lanes: int
    access_bytes: int
    each: bool = False
    steps: int = 0
    masked: str = ""


class Code:
    """The machine code of an object file, by the addresses at which it is linked."""

    def __init__(self, path: Path) -> None:
        """Raises LogError, without the path, if it is no program or library for x86-64; OSError."""
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._segments = list(_segments(self._bytes))
        self._disassembler = _disassembler()

    def instructions(self, addresses: Sequence[int]) -> dict[int, Instruction]:
        """The machine instructions at some addresses, in order; without those that are no code."""
        known: dict[int, Instruction] = {}
        wanted = set(addresses)
        for first, last in _runs(addresses):
            self._decode(first, last, wanted, known)
        for address in wanted - known.keys():
            # What lies between the instructions that ran may be data, after which the decoder is out of step.
            self._decode(address, address, wanted, known)
        return known

    def _decode(self, first: int, last: int, wanted: set[int], known: dict[int, Instruction]) -> None:
        code = b""
        for start, offset, size in self._segments:
            if start <= first < start + size:
                place = offset + first - start
                code = self._bytes[place : min(place + last + _LONGEST - first, offset + size)]
                break
        known |= {
            address: _instruction(mnemonic, operands)
            for address, _, mnemonic, operands in self._disassembler.disasm_lite(code, first)
            if address in wanted
        }


def _segments(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Address, place in the file, and size of the parts of an ELF file that are loaded as machine code."""
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 62:
        raise LogError("is no program for x86-64")
    (table,) = struct.unpack_from("<Q", data, 32)
    size, number = struct.unpack_from("<HH", data, 54)
    for place in range(table, min(table + size * number, len(data) - 55), size or 1):
        kind, flags, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", data, place)
        if kind == 1 and flags & 1:
            yield address, offset, in_file


def _disassembler() -> Any:
    try:
        import capstone
    except ImportError as err:
        raise LogError(f"its instructions cannot be decoded without capstone: {EXTRA}") from err
    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def _runs(addresses: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of addresses of machine code that lie close to each other."""
    first = last = addresses[0]
    for address in addresses:
        if address - last > _GAP:
            yield first, last
            first = address
        last = address
    yield first, last


def _instruction(mnemonic: str, operands: str) -> Instruction:
    has_operand = "[" in operands
    width = max(_WIDTHS[kind] for kind in _VECTOR.findall(operands)) if "mm" in operands else 0
    # "rax, qword ptr [rsp + 8]": without a regular expression, for every instruction comes by here.
    before, pointer, _ = operands.partition(" ptr")
    size = before.rpartition(" ")[2] if pointer and has_operand else ""
    return _known(mnemonic, width, size, has_operand, before == size != "")


@functools.cache
def _known(mnemonic: str, width: int, size: str, has_operand: bool, is_first: bool) -> Instruction:
    """A machine instruction by its mnemonic, the bytes of its widest vector register, and the size of its operand.

    is_first: the operand in memory is the first, where most instructions put what they make.
    """
    repeat, _, plain = mnemonic.rpartition(" ")  # rep, lock, notrack
    if plain == "cmpsd" and not width:
        plain = "cmpsq"  # of strings: of numbers it names registers
    access_bytes = _SIZES.get(size, _STACK) if has_operand or plain.startswith(_IMPLICIT) else 0
    known: dict[str, Any] = next((rule for rule in _rules() if rule["match"].fullmatch(plain)), {"count": MISC})
    lanes = max(width // known["lane"], 1) if "lane" in known else 1
    parts = known.get("access", 0)  # bytes of each access
    return Instruction(
        known["count"],
        lanes,
        parts or (known.get("bytes", access_bytes) if access_bytes else 0),
        each=parts > 0 or known.get("steps") == 2,
        steps=known.get("steps", 0) * repeat.startswith("rep"),
        masked=("Dr", "Dw")[is_first] * known.get("masked", False),
    )


@functools.cache
def _rules() -> list[dict[str, Any]]:
    """What mnemonics count as, the first that fits (`match`)."""
    document = Document.read(folder("counters") / "callgrind" / "mnemonics.toml")
    return [{**rule, "match": re.compile(rule["match"])} for rule in document.data["x86-64"]]


def classes() -> tuple[str, ...]:
    """All classes of machine instructions."""
    return tuple(dict.fromkeys([*(rule["count"] for rule in _rules()), MISC]))
