"""A profile by address becomes one by function and class: `python -m eprof.profilers.callgrind.decode FILE`.

A profile holds no machine code, only the names of the program and its libraries. So it is decoded right after the run,
while they are those that ran; what is printed is a profile of functions in the same format (`costs.py`).
"""

import ast
import contextlib
import functools
import linecache
import math
import mmap
import re
import struct
import sys
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Array, Bools, Columns, Floats, Ints, numbers_of
from eprof.base.errors import LogError
from eprof.base.labels import NO_LINE
from eprof.base.optional import only
from eprof.base.resources import folder
from eprof.base.text import cut, pattern
from eprof.base.toml import Document
from eprof.profilers.callgrind import ASTRAY, MACHINE, STUBS, UNDECODED
from eprof.profilers.callgrind.collector import EXTRA, LINES, lost_before, other_program
from eprof.profilers.callgrind.file_format import LOST, SAMPLE, CallgrindProfile, Function, Spot, parse
from eprof.profilers.callgrind.recurrences import PRODUCT, RECURRENCE, Coded, chained

# ----------------------------------------------------------------------------------------------------------------------
# The machine code behind the addresses of a profile: what each instruction does, and how many bytes it moves.
#
# Instructions are decoded by capstone, each address once; `counters/callgrind/mnemonics.toml` says what they count as.

MISC = "misc"
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


class Namesake(NamedTuple):
    """A function in an object file: its addresses, name, and the source file that it is static in ("": it is not)."""

    start: int
    end: int
    name: str
    file: str


class Code:
    """The machine code of an object file, by the addresses at which it is linked."""

    def __init__(self, path: Path) -> None:
        """Raises LogError, without the path, if it is no program or library for x86-64; OSError."""
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._segments = list(_segments(self._bytes))
        try:
            import capstone
        except ImportError as err:
            raise LogError(f"its instructions cannot be decoded without capstone: {EXTRA}") from err
        self._disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._coded: dict[int, Coded] = {}

    def instructions(self, addresses: Ints) -> dict[int, Instruction]:
        """The decoded instruction at each of some addresses, which are sorted; without those that are no code."""
        known: dict[int, Instruction] = {}
        wanted = set(addresses.tolist())
        for close in np.split(addresses, np.flatnonzero(np.diff(addresses) > _GAP) + 1):
            self._decode(int(close[0]), int(close[-1]), wanted, known)
        for address in wanted - known.keys():
            # What lies between the instructions that ran may be data, after which the decoder is out of step.
            self._decode(address, address, wanted, known)
        return known

    def chained(self) -> dict[int, str]:
        """Of the instructions that were decoded, the arithmetic that needs its own result of the turn before."""
        return chained([each for _, each in sorted(self._coded.items())])

    def is_optimised(self) -> bool | None:
        """True if all of an object file was compiled with optimisation, False if none, by gcc's notes; else None."""
        flags = _OF_GCC.findall(_section(self._bytes, b".debug_str") + b"\0")
        told = {_OPTIMISED.search(each) is not None for each in flags}
        return only(told)

    def namesakes(self) -> "list[Namesake]":
        """The functions of an object file of whose name it has several, by address; none where it has no symbols."""
        data, names = _section(self._bytes, b".symtab"), _section(self._bytes, b".strtab")
        file, found = "", list[Namesake]()
        for at, about, _, _, start, size in struct.iter_unpack("<IBBHQQ", data[: len(data) // 24 * 24]):
            is_local, kind = about < 16, about & 15
            if kind == _FILE:
                file = _text_at(names, at)
            elif kind == _FUNCTION and size:
                found.append(Namesake(start, start + size, _text_at(names, at), file if is_local else ""))
        times = Counter(name for _, _, name, _ in dict.fromkeys(found))
        return sorted(each for each in dict.fromkeys(found) if times[each.name] > 1)

    def _decode(self, first: int, last: int, wanted: set[int], known: dict[int, Instruction]) -> None:
        code = b""
        for start, offset, size in self._segments:
            if start <= first < start + size:
                place = offset + first - start
                code = self._bytes[place : min(place + last + _LONGEST - first, offset + size)]
                break
        for address, size, mnemonic, operands in self._disassembler.disasm_lite(code, first):
            if address in wanted:
                known[address] = _instruction(mnemonic, operands)
                self._coded[address] = Coded(address, size, mnemonic, operands)


def _segments(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """(address, place in the file, size in it) of the parts of an ELF file that are loaded as machine code."""
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 62:
        raise LogError("is no program for x86-64")
    (table,) = struct.unpack_from("<Q", data, 32)
    size, number = struct.unpack_from("<HH", data, 54)
    for place in range(table, min(table + size * number, len(data) - 55), size or 1):
        kind, flags, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", data, place)
        if kind == 1 and flags & 1:
            yield address, offset, in_file


_OF_GCC = re.compile(
    rb"GNU (?:C|Fortran|D |Ada)[^\0]* -m[^\0]*(?=\0)"
)  # DW_AT_producer, with what the compiler was told
_OPTIMISED = re.compile(rb" -O(?:[1-9sz]|fast|g)?(?: |$)")
_COMPRESSED = 0x800  # SHF_COMPRESSED: 24 bytes in front of the data


_FUNCTION, _FILE = 2, 4  # STT_FUNC, STT_FILE: the source file of the local symbols behind it


def _text_at(texts: bytes, at: int) -> str:
    return texts[at : texts.find(b"\0", at)].decode(errors="replace")


def _section(data: mmap.mmap, name: bytes) -> bytes:
    """The bytes of a section of an ELF file; none where it has no such section, or is damaged."""
    with contextlib.suppress(struct.error, zlib.error, IndexError):
        (table,) = struct.unpack_from("<Q", data, 40)
        size, number, of_names = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQ", data, table + size * place) for place in range(number)]
        names = headers[of_names][4]
        for place, _, flags, _, offset, length in headers:
            if data[names + place : names + place + len(name) + 1] == name + b"\0":
                found = data[offset : offset + length]
                if flags & _COMPRESSED:
                    return zlib.decompress(found[24:])
                return found
    return b""


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
    lanes = max(width // known.get("lane", width or 1), 1)
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
    """What mnemonics count as (`mnemonics.toml`), each with its pattern, `match`; the first that fits holds."""
    document = Document.read(folder("counters") / "callgrind" / "mnemonics.toml")
    return [{**rule, "match": re.compile(rule["match"])} for rule in document.data["x86-64"]]


def classes() -> tuple[str, ...]:
    """The names of all classes of machine instructions."""
    return tuple(dict.fromkeys([*(rule["count"] for rule in _rules()), MISC]))


# Of the instructions that touched memory, so many may have no operand there: callgrind may name a neighbour. Of another
# program's code, a third has none.
_FEW, _TOLERANCE = 2, 0.05
# Code that callgrind finds in no file: the linker's stubs, as long as it is no more than this share of what ran.
_NO_OBJECT, _MOST_STUBS = "???", 1e-3
# Of what ran, so little in a file that is not at hand is taken for stubs, too.
_NEXT_TO_NOTHING = 1e-5
_STUB = Instruction(STUBS, 1, 0)
_ASTRAY = Instruction(ASTRAY, 1, 0)
_MOST_LANES = 8
_FLOATS = {"fp64": 8, "fp32": 4}  # bytes


def decoded(costs: CallgrindProfile, beside: Path, written_s: float = math.inf) -> CallgrindProfile:
    """A callgrind profile by function and line, with instructions by class where these can be decoded.

    Its `notes` say where they cannot. beside: a folder where objects may be that are not where they were. written_s:
    when the profile was written, in s since the epoch; an object that is newer is not the one that ran.
    """
    if not costs.has_addresses or "Ir" not in costs.own:
        notes = ["it was made without --dump-instr=yes, so its instructions have no classes"]
        return in_python(costs, beside).added().with_notes(notes)
    found, codes, notes = _found(costs, beside, written_s)
    if all(instruction in (None, _STUB) for instruction in found):
        return in_python(costs, beside).added().with_notes(notes)
    kinds = _kinds(costs, codes)
    costs = _told_apart(costs, {name: code.namesakes() for name, code in codes.items()})
    own, astray = _with_lanes(costs, found)
    if astray:
        notes.append(
            f"masked moves end blocks of valgrind's, which then counts up to {astray:,} executions too many "
            "somewhere else; counts of their functions are estimated"
        )
    count = functools.partial(_counted, own, found, kinds)
    counted = in_python(replace(costs, own=own), beside).added(count)
    if costs.totals is not None:
        totals = counted.sums
        totals[: len(own.names)] += costs.totals - costs.sums
        counted = replace(counted, totals=totals)
    return counted.with_notes(notes)


def _kinds(costs: CallgrindProfile, codes: Mapping[str, Code]) -> dict[str, Bools]:
    """The kinds of code that advice is made of, each with the rows of a profile that are of it. codes: of objects."""
    is_optimised = {name: code.is_optimised() for name, code in codes.items()}
    chains = {name: code.chained() for name, code in codes.items()}
    homes = [costs.functions[place].object for place in costs.places.tolist()]
    built = [is_optimised.get(home) for home in homes]
    chain = [chains.get(home, {}).get(address) for home, address in zip(homes, costs.addresses.tolist(), strict=True)]
    is_of_text = [_TEXT.match(function.name) is not None for function in costs.functions]
    return {
        "optimised": np.array([each is True for each in built]),
        "unoptimised": np.array([each is False for each in built]),
        "text": np.array(is_of_text)[costs.places],
        RECURRENCE: np.array([each == RECURRENCE for each in chain]),
        PRODUCT: np.array([each == PRODUCT for each in chain]),
    }


def _found(
    costs: CallgrindProfile, beside: Path, written_s: float
) -> tuple[list[Instruction | None], dict[str, Code], list[str]]:
    """Each row's instruction (None: not decoded); the code of each object that was decoded; notes on failures."""
    object_of = numbers_of(function.object for function in costs.functions)[costs.places]
    names = list(dict.fromkeys(function.object for function in costs.functions))
    moved: Bools = np.any(costs.own.only(("Dr", "Dw")), axis=1)
    executed = costs.own["Ir"]
    found: list[Instruction | None] = [None] * len(object_of)
    codes, notes = dict[str, Code](), list[str]()
    for number, name in enumerate(names):
        rows = np.flatnonzero(object_of == number)
        if not len(rows):
            continue
        is_small = executed[rows].sum() < _MOST_STUBS * executed.sum()
        try:
            # Another build may have the same layout.
            if Path(name).is_file() and Path(name).stat().st_mtime > written_s:
                raise LogError("was changed after the profile was written")
            instructions, code = _instructions(name, costs.addresses[rows], moved[rows], beside, is_small)
            if code is not None:
                codes[name] = code
        except (OSError, ValueError, LogError) as err:
            if executed[rows].sum() < _NEXT_TO_NOTHING * executed.sum():
                for row in rows.tolist():
                    found[row] = _STUB
                continue
            reason = getattr(err, "strerror", None) or err
            notes.append(f"{name}: {reason}, so its {len(rows):,} instructions have no class")
            continue
        for row, address in zip(rows.tolist(), costs.addresses[rows].tolist(), strict=True):
            found[row] = instructions.get(address)
    return found, codes, notes


def _told_apart(costs: CallgrindProfile, namesakes: Mapping[str, Sequence[Namesake]]) -> CallgrindProfile:
    """The profile with functions of one name in one object file told apart: "work (sa.c)", "work (sb.c)".

    Callgrind takes them for one, where it has no debug information, or the one follows the other. Copies of a function
    of a header, one in each file that has it, begin at the same line: they stay one.
    """
    starts = {name: [each.start for each in several] for name, several in namesakes.items()}

    def namesake(place: int, address: int) -> Namesake | None:
        home = costs.functions[place].object
        before = bisect_right(starts.get(home, ()), address)
        last = namesakes[home][before - 1] if before else None
        return last if last and address < last.end else None

    begins: dict[int, dict[Namesake, Spot]] = {}  # of each function: its namesakes that ran, and where each begins
    rows = np.argsort(costs.addresses, kind="stable")
    keys = zip(*(column[rows].tolist() for column in (costs.places, costs.addresses, costs.spot_of)), strict=True)
    for place, address, spot in keys:
        if each := namesake(place, address):
            begins.setdefault(place, {}).setdefault(each, costs.spots[spot])
    number_of = {function: number for number, function in enumerate(costs.functions)}
    place_of: dict[tuple[int, Namesake | None], int] = {}
    for place, spot_of in begins.items():
        first_at = {spot if spot.line else each: each for each, spot in reversed(spot_of.items())}
        files = Counter(each.file for each in first_at.values())
        for each, spot in spot_of.items():
            first = first_at[spot if spot.line else each]
            told = first.file if files[first.file] == 1 else hex(first.start)
            function = costs.functions[place]
            if len(first_at) > 1 and told:
                function = function._replace(name=f"{function.name} ({told})")
            place_of[place, each] = number_of.setdefault(function, len(number_of))

    def placed(place: int, address: int) -> int:
        return place_of.get((place, namesake(place, address)), place)

    calls = (
        call._replace(caller=placed(call.caller, call.source), callee=placed(call.callee, call.target))
        for call in costs.calls
    )
    places = list(map(placed, costs.places.tolist(), costs.addresses.tolist()))
    return replace(costs, functions=tuple(number_of), places=np.array(places, dtype=np.int64), calls=tuple(calls))


def _with_lanes(costs: CallgrindProfile, found: list[Instruction | None]) -> tuple[Columns, int]:
    """Move miscounted lanes of masked moves to where they belong: (costs, how many executions may still be wrong).

    Valgrind makes an access a lane of such a move, where its mask has it, and callgrind counts it one place too far: as
    an execution of the instruction behind, which stands in the next row and ran as often as the move. Where the move
    ends a block of valgrind's, its lanes are with an instruction that nobody knows: it counts as ASTRAY then.
    """
    own = Columns(costs.own.names, costs.own.values.copy())
    masked = {row: each.masked for row, each in enumerate(found) if each is not None and each.masked}
    if not masked or "Dr" not in own or "Dw" not in own:
        return own, 0
    executed, astray = own["Ir"], 0
    # Whether the next row of the profile is the next instruction that ran of the same function.
    addresses, address_of = np.unique(costs.addresses, return_inverse=True)
    in_order = np.unique(costs.places * len(addresses) + address_of, return_inverse=True)[1]
    runs_on = np.append((np.diff(in_order) == 1) & (np.diff(costs.places) == 0), False)
    for row, event in masked.items():
        lanes = executed[row + 1] - executed[row] if runs_on[row] else -1
        if not 0 <= lanes <= _MOST_LANES * executed[row]:
            astray += _MOST_LANES * int(executed[row])
            found[row] = _ASTRAY
            continue
        own[event][row] = lanes
        executed[row + 1] = executed[row]
        for instructions, data in (("I1mr", "D1m"), ("ILmr", "DLm")):
            if instructions in own:
                missed = min(own[instructions][row + 1], lanes)
                own[instructions][row + 1] -= missed
                own[data + event[1]][row] += missed
    return own, astray


def _instructions(
    name: str, addresses: Ints, moved: Array, beside: Path, is_small: bool
) -> tuple[dict[int, Instruction], Code | None]:
    """The decoded instructions of an object file by address, and all of its code; None: of stubs.

    Raises LogError if it is not the one that ran.
    """
    if name == _NO_OBJECT and is_small:
        return dict.fromkeys(addresses.tolist(), _STUB), None
    place = next((path for path in (Path(name), beside / Path(name).name) if path.is_file()), None)
    if place is None:
        raise LogError("is not here")
    code = Code(place)
    instructions = code.instructions(np.unique(addresses))
    without_operand = {address for address, known in instructions.items() if not known.access_bytes}
    wrong = set(addresses.tolist()) - instructions.keys()
    wrong |= without_operand.intersection(addresses[moved].tolist())
    if len(wrong) > max(_FEW, _TOLERANCE * len(addresses)):
        raise LogError("is not the file that ran: its instructions do not fit the profile")
    return instructions, code


def _counted(own: Columns, found: Sequence[Instruction | None], code: Mapping[str, Bools], group_of: Ints) -> Columns:
    """What groups of rows count, (n_groups, n): classes of instruction, arithmetic by width, loads, stores and bytes.

    By width as FP_ARITH_INST_RETIRED counts: executions of add, multiply and multiply-add, the last twice. code: name
    of a kind of code -> rows that are of it. group_of: of each row, from 0.
    """
    names = (*classes(), STUBS, ASTRAY, UNDECODED)
    nothing = Instruction(UNDECODED, 1, 0)
    known = [instruction or nothing for instruction in found]
    # There are some hundred kinds of instructions, and a hundred thousand rows.
    kinds = {id(instruction): instruction for instruction in known}
    place_of = {kind: place for place, kind in enumerate(kinds)}
    kind_of = np.array([place_of[id(instruction)] for instruction in known])
    column_of = {name: column for column, name in enumerate(names)}
    columns = np.array([column_of[kind.counted_as] for kind in kinds.values()])[kind_of]
    lanes, access_bytes, each, steps = np.array([kind[1:5] for kind in kinds.values()])[kind_of].T
    executed, loaded, stored = own["Ir"], np.zeros(len(known)), np.zeros(len(known))
    if "Dr" in own and "Dw" in own:
        loaded, stored = own["Dr"], own["Dw"]
        executed = np.where(steps > 0, np.maximum(loaded, stored) / np.maximum(steps, 1), executed)
    # Arithmetic that writes to memory has read there; callgrind takes both for one write.
    is_changed = (columns == column_of["integer"]) & (stored > 0)
    loaded = np.where(is_changed, np.maximum(loaded, stored), loaded)
    widths: dict[str, Floats] = {}
    for kind, size in _FLOATS.items():
        plain = np.isin(columns, [column_of[f"{kind}_add"], column_of[f"{kind}_mul"]])
        computed = executed * (plain + 2 * (columns == column_of[f"{kind}_fma"]))
        for width, lanes_of in (("scalar", 1), ("128b", 16 // size), ("256b", 32 // size)):
            widths[f"{kind}_{width}"] = computed * (lanes == lanes_of)
    moved: dict[str, Floats] = {}
    for event, name, accesses in (("Dr", "load", loaded), ("Dw", "store", stored)):
        if event in own:
            # Callgrind counts the operand of a vector multiply-add once a lane, and of `bt` one that is not there.
            most = np.where(each, executed * (accesses > 0), np.minimum(accesses, executed))
            moved[f"{name}s"] = most * (access_bytes > 0)
            moved[f"{name}_bytes"] = np.where(each, accesses, most) * access_bytes
    # A move from or to memory is a load or a store, and no more.
    touches = own.only(("Dr", "Dw")).any(axis=1)
    amounts = np.where(touches & (columns == column_of[MISC]), 0, executed * lanes)
    scalar = widths["fp64_scalar"] + widths["fp32_scalar"]
    of_code = {kind: (scalar if kind in (RECURRENCE, PRODUCT) else own["Ir"]) * its for kind, its in code.items()}
    more = {**widths, **moved, **of_code}
    # By the group and the class of each row: a table of rows and classes would have a hundred million cells.
    size = group_of.max() + 1
    counts = np.bincount(group_of * len(names) + columns, amounts, size * len(names)).reshape(size, len(names))
    rest = [np.bincount(group_of, values, size) for values in more.values()]
    return Columns((*names, *more), np.column_stack([counts, *rest]))


def main(arguments: Sequence[str]) -> int:
    """Decode the profile FILE and print it; further arguments: the processor's name, the program that was started."""
    path = Path(arguments[0])
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            costs = parse(line.rstrip("\n") for line in lines)
    except (OSError, LogError) as err:
        sys.stderr.write(f"{path.name}: {err}\n")
        return 1
    if arguments[1:]:
        costs.descriptions[MACHINE] = arguments[1]
    if arguments[2:] and (other := other_program(arguments[2], path)):
        costs.descriptions[LOST] = lost_before(arguments[2], other)
    sys.stdout.writelines(f"{line}\n" for line in decoded(costs, path.parent).text())
    return 0


_FRAME = pattern(r"(?P<file>.*):(?P<line>\d+):(?P<begin>\d*):(?P<end>\d*) (?P<function>.*)")
_OF_STACK = pattern(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')
_INTERPRETER = "Python"
_TEXT = pattern(r"_?(Py_?(Unicode|Bytes|bytes)|unicode_|bytes_|sre_)")
_CALLEE = pattern(r"([A-Za-z_][\w.]*)\(")
_MOST_CHARACTERS = 24  # of an operation that a row is named by


def in_python(costs: CallgrindProfile, beside: Path = Path()) -> CallgrindProfile:
    """A profile of a Python program by what Python called and which library did it, at lines of Python.

    `hook/sitecustomize.py` has callgrind write a part of its profile now and then, and faulthandler tell which line of
    Python ran then, in a file `beside`. So counts are exact, and which line has them is as sure as a sampling profiler.
    A profile of another program stays as it is.
    """
    if not any(spot.frame for spot in costs.spots):
        return costs
    files = beside.glob(f"{LINES}-*-{costs.header.get('pid', '').strip()}.txt")
    sampled = [frame for path in files for frame in _sampled(path.read_text(errors="replace"))]
    frame_of = {f"{SAMPLE} {number}": frame for number, frame in enumerate(sampled, 1)}
    called = [_called(frame_of.get(spot.frame, spot.frame)) for spot in costs.spots]
    libraries = [library(function.object) for function in costs.functions]
    pairs, pair_of = np.unique(costs.places * len(called) + costs.spot_of, return_inverse=True)
    rows = (divmod(pair, len(called)) for pair in pairs.tolist())
    functions = [Function("", f"{called[spot].by(libraries[place])}, {libraries[place]}") for place, spot in rows]
    # Who called whom is told of functions of C, which are no rows any more.
    return replace(
        costs,
        functions=tuple(dict.fromkeys(functions)),
        spots=tuple(each.where._replace(mark=spot.mark) for each, spot in zip(called, costs.spots, strict=True)),
        places=numbers_of(functions)[pair_of],
        calls=(),
    )


def _sampled(text: str) -> Iterator[str]:
    """Yields for each sample in a hook's file the innermost line of the user's own code: "FILE:LINE:: FUNCTION".

    The file has Python's folders, then faulthandler's stack for each sample, behind a form feed; and where Python was
    when it looked, "@FRAME", which is later: the same line only where the sample met a call.
    """
    head, *samples = text.split("\f")
    home, *libraries = head.splitlines() or [""]
    looked = ""
    frames = []
    for sample in reversed(samples):
        looked = next((line[1:] for line in sample.splitlines() if line.startswith("@")), looked)
        stack = [(str(Path(home, file)), *rest) for file, *rest in _OF_STACK.findall(sample) if file[:1] != "<"]
        own = [frame for frame in stack if not _is_of_library(frame[0], tuple(libraries))]
        frame = ""
        for file, line, function in (own or stack)[:1]:
            frame = f"{file}:{line}:: {function}"
            if looked.startswith(f"{file}:{line}:") and looked.endswith(f" {function}"):
                frame = looked
        frames.append(frame)
    yield from reversed(frames)


def _is_of_library(path: str, libraries: tuple[str, ...]) -> bool:
    """Whether a Python file is not the user's own code; the same rule as in the hook."""
    return path.startswith(libraries) or "-packages" in path or path.endswith("eprof/collect/program_marks.py")


class _Called(NamedTuple):
    """What a line of Python has a library do ("np.dot", "a @ b"), the function that it is in, and where it is."""

    operation: str
    function: str
    where: Spot

    def by(self, library: str) -> str:
        """The name for a row of a Python program: the operation that `library` does, or the function."""
        return self.function if library == _INTERPRETER else self.operation


@functools.cache
def _called(frame: str) -> _Called:
    """What the line of Python in `frame` calls, "np.dot", or its operation, "a @ b"; else the function around it."""
    parts = _FRAME.fullmatch(frame)
    if parts is None:
        return _Called(NO_LINE, NO_LINE, Spot("", 0))
    file, line, function = parts["file"], int(parts["line"]), parts["function"]
    if function == "<module>":
        function = Path(file).name
    if parts["begin"] and parts["end"]:
        # Columns are of bytes. What is called ends before the first bracket: "a.dot(b)".
        text = linecache.getline(file, line).encode()[int(parts["begin"]) : int(parts["end"])].decode(errors="replace")
        if callee := _CALLEE.match(text):
            return _Called(callee[1], callee[1], Spot(file, line))
    return _Called(_operations(file).get(line, function), function, Spot(file, line))


@functools.cache
def _operations(file: str) -> dict[int, str]:
    """The outermost operation of each line of a file of Python that has one, by its text: "a @ b", "x[1:]"."""
    text = "".join(linecache.getlines(file))
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    operations: dict[int, str] = {}
    # What is assigned to comes last: x[1:] = a @ b.
    nodes.sort(key=lambda node: isinstance(getattr(node, "ctx", None), ast.Store))
    for node in nodes:
        if isinstance(node, ast.AugAssign | ast.BinOp | ast.Compare | ast.UnaryOp | ast.Subscript):
            words = " ".join(ast.unparse(node).split())
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                operations.setdefault(line, cut(words, _MOST_CHARACTERS))
    return operations


@functools.cache
def library(path: str) -> str:
    """The name of the library in an object file: "OpenBLAS", "numpy", "C library"; the file's own name if not known."""
    for known in Document.read(folder("counters") / "callgrind" / "libraries.toml").data["library"]:
        if match := re.search(known["match"], path):
            return str(known.get("name") or match["name"])
    return Path(path).name


def is_of_library(path: str) -> bool:
    """Whether an object file is a library that is known by name, or one of the system's: not the user's own code."""
    return library(path) != Path(path).name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
