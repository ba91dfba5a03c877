"""A profile by address becomes one by function and class: `python -m eprof.profilers.callgrind.decode FILE`.

A profile holds no machine code, only the names of the program and its libraries. So it is decoded right after the run,
while they are those that ran; what is printed is a profile of functions in the same format (`costs.py`).
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Array, Bools, Columns, Floats, Ints, group_sums, numbers_of
from eprof.base.errors import LogError
from eprof.profilers.callgrind.collector import lost_before, other_program
from eprof.profilers.callgrind.file_format import LOST, Costs, parse
from eprof.profilers.callgrind.in_python import in_python
from eprof.profilers.callgrind.machine_code import MISC, Code, Instruction, classes
from eprof.profilers.callgrind.signs import ASTRAY, MACHINE, STUBS, UNDECODED

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
_NOWHERE = np.iinfo(np.int64).max


def decoded(costs: Costs, beside: Path, written_s: float = math.inf) -> Costs:
    """A callgrind profile by function and line, with instructions by class where these can be decoded.

    Its `notes` say where they cannot.

    beside: a folder where objects may be that are not where they were. written_s: when the profile was written, in s
    since the epoch; an object that is newer is not the one that ran.
    """
    own, totals = costs.own, costs.totals
    if not costs.has_addresses or "Ir" not in own:
        notes = ["it was made without --dump-instr=yes, so its instructions have no classes"]
    else:
        found, notes = _found(costs, beside, written_s)
        if any(instruction not in (None, _STUB) for instruction in found):
            own, astray = _with_lanes(costs, found)
            if astray:
                notes.append(
                    f"masked moves end blocks of valgrind's, which then counts up to {astray:,} executions too many "
                    "somewhere else; counts of their functions are estimated"
                )
            by_class = _counted(own, found)
            if totals is not None:
                totals = np.hstack([totals + own.values.sum(axis=0) - costs.sums, by_class.values.sum(axis=0)])
            own = Columns((*own.names, *by_class.names), np.hstack([own.values, by_class.values]))
    costs = in_python(replace(costs, own=own, totals=totals))
    rows = np.column_stack([costs.places, costs.spot_of])
    used, codes = np.unique(rows, axis=0, return_inverse=True)
    sums = Columns(own.names, group_sums(own.values, codes.ravel()))
    lines = np.array([spot.line for spot in costs.spots])[used[:, 1]]
    return replace(
        costs, places=used[:, 0], spot_of=used[:, 1], addresses=lines, own=sums, has_addresses=False
    ).with_notes(notes)


def _found(costs: Costs, beside: Path, written_s: float) -> tuple[list[Instruction | None], list[str]]:
    """The instruction of each row of a callgrind profile, None where it is not decoded; and why it is not."""
    object_of = numbers_of(function.object for function in costs.functions)[costs.places]
    names = list(dict.fromkeys(function.object for function in costs.functions))
    moved: Bools = np.any(costs.own.only(("Dr", "Dw")), axis=1)
    executed = costs.own["Ir"]
    found: list[Instruction | None] = [None] * len(object_of)
    notes = []
    for number, name in enumerate(names):
        rows = np.flatnonzero(object_of == number)
        if not len(rows):
            continue
        is_small = executed[rows].sum() < _MOST_STUBS * executed.sum()
        try:
            # Another build may have the same layout.
            if Path(name).is_file() and Path(name).stat().st_mtime > written_s:
                raise LogError("was changed after the profile was written")
            instructions = _instructions(name, costs.addresses[rows], moved[rows], beside, is_small)
        except (OSError, ValueError, LogError) as err:
            if executed[rows].sum() < _NEXT_TO_NOTHING * executed.sum():
                for row in rows.tolist():
                    found[row] = _STUB
                continue
            reason = err.strerror if isinstance(err, OSError) else err
            notes.append(f"{name}: {reason}, so its {len(rows):,} instructions have no class")
            continue
        for row, address in zip(rows.tolist(), costs.addresses[rows].tolist(), strict=True):
            found[row] = instructions.get(address)
    return found, notes


def _with_lanes(costs: Costs, found: list[Instruction | None]) -> tuple[Columns, int]:
    """The costs of a callgrind profile's rows with the lanes of masked moves where they belong; and how many are lost.

    Valgrind makes an access a lane of such a move, where its mask has it, and callgrind counts it one place too far: as
    an execution of the instruction behind, which stands in the next row and ran as often as the move. Where the move
    ends a block of valgrind's, its lanes are with an instruction that nobody knows: it counts as ASTRAY then.
    """
    own = Columns(costs.own.names, costs.own.values.copy())
    if "Dr" not in own or "Dw" not in own:
        return own, 0
    executed, astray = own["Ir"], 0
    for row, instruction in enumerate(found):
        if instruction is None or not instruction.masked:
            continue
        lanes = executed[row + 1] - executed[row] if _runs_on(costs, row) else -1
        if not 0 <= lanes <= _MOST_LANES * executed[row]:
            astray += _MOST_LANES * int(executed[row])
            found[row] = _ASTRAY
            continue
        own[instruction.masked][row] = lanes
        executed[row + 1] = executed[row]
        for instructions, data in (("I1mr", "D1m"), ("ILmr", "DLm")):
            if instructions in own:
                missed = min(own[instructions][row + 1], lanes)
                own[instructions][row + 1] -= missed
                own[data + instruction.masked[1]][row] += missed
    return own, astray


def _runs_on(costs: Costs, row: int) -> bool:
    of_function = costs.addresses[costs.places == costs.places[row]]
    behind = of_function[of_function > costs.addresses[row]].min(initial=_NOWHERE)
    return row + 1 < len(costs.places) and bool(costs.addresses[row + 1] == behind)


def _instructions(name: str, addresses: Ints, moved: Array, beside: Path, is_small: bool) -> dict[int, Instruction]:
    """The decoded instructions of an object file by address. Raises LogError if it is not the one that ran."""
    if name == _NO_OBJECT and is_small:
        return dict.fromkeys(addresses.tolist(), _STUB)
    place = next((path for path in (Path(name), beside / Path(name).name) if path.is_file()), None)
    if place is None:
        raise LogError("is not here")
    instructions = Code(place).instructions(np.unique(addresses).tolist())
    without_operand = {address for address, known in instructions.items() if not known.access_bytes}
    wrong = set(addresses.tolist()) - instructions.keys()
    wrong |= without_operand.intersection(addresses[moved].tolist())
    if len(wrong) > max(_FEW, _TOLERANCE * len(addresses)):
        raise LogError("is not the file that ran: its instructions do not fit the profile")
    return instructions


def _counted(own: Columns, found: Sequence[Instruction | None]) -> Columns:
    """Callgrind's counts, (n_rows, n): a column a class of instruction, arithmetic by width, loads, stores and bytes.

    By width as FP_ARITH_INST_RETIRED counts: executions of add, multiply and multiply-add, the last twice.
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
    counts = np.zeros((len(known), len(names)))
    counts[np.arange(len(known)), columns] = executed * lanes
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
    touches = own.only(("Dr", "Dw")).any(axis=1)
    # A move from or to memory is a load or a store, and no more.
    counts[touches, column_of[MISC]] = 0
    more = {**widths, **moved}
    return Columns((*names, *more), np.column_stack([counts, *more.values()]))


def main(arguments: Sequence[str]) -> int:
    """Decode a callgrind profile, of a processor and a started program that may be named, and print it."""
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
