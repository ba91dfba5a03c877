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
from eprof.profilers.callgrind.file_format import Costs, parse
from eprof.profilers.callgrind.machine_code import MISC, Code, Instruction, classes
from eprof.profilers.callgrind.signs import MACHINE, STUBS, UNDECODED

# Of the instructions that touched memory, so many may have no operand there: callgrind may name a neighbour. Of another
# program's code, a third has none.
_FEW, _TOLERANCE = 2, 0.05
# Code that callgrind finds in no file: the linker's stubs, as long as it is no more than this share of what ran.
_NO_OBJECT, _MOST_STUBS = "???", 1e-3
_STUB = Instruction(STUBS, 1, 0)


def decoded(costs: Costs, beside: Path, written_s: float = math.inf) -> Costs:
    """A callgrind profile with instructions by class where these can be decoded; its `notes` say where not.

    beside: a folder where objects may be that are not where they were. written_s: when the profile was written, in s
    since the epoch; an object that is newer is not the one that ran.
    """
    own = costs.own
    if not costs.has_addresses or "Ir" not in own:
        notes = ["it was made without --dump-instr=yes, so its instructions have no classes"]
    else:
        by_class, notes = _by_class(costs, beside, written_s)
        if by_class is not None:
            own = Columns((*own.names, *by_class.names), np.hstack([own.values, by_class.values]))
    used, codes = np.unique(costs.places, return_inverse=True)
    sums = Columns(own.names, group_sums(own.values, codes))
    return replace(costs, places=used, addresses=used, own=sums, has_addresses=False).with_notes(notes)


def _by_class(costs: Costs, beside: Path, written_s: float) -> tuple[Columns | None, list[str]]:
    """The instructions of a callgrind profile's rows by class, and the bytes that they moved; None if none is
    decoded.
    """
    object_of = numbers_of(function.object for function in costs.functions)[costs.places]
    names = list(dict.fromkeys(function.object for function in costs.functions))
    moved: Bools = np.any(costs.own.only(("Dr", "Dw")), axis=1)
    executed = costs.own["Ir"]
    found: list[Instruction | None] = [None] * len(object_of)
    notes = []
    for number, name in enumerate(names):
        rows = np.flatnonzero(object_of == number)
        is_small = executed[rows].sum() < _MOST_STUBS * executed.sum()
        try:
            _check_age(Path(name), written_s)
            instructions = _instructions(name, costs.addresses[rows], moved[rows], beside, is_small)
        except (OSError, ValueError, LogError) as err:
            reason = err.strerror if isinstance(err, OSError) else err
            notes.append(f"{name}: {reason}, so its {len(rows):,} instructions have no class")
            continue
        for row, address in zip(rows.tolist(), costs.addresses[rows].tolist(), strict=True):
            found[row] = instructions.get(address)
    is_decoded = any(instruction not in (None, _STUB) for instruction in found)
    return (_counted(costs.own, found) if is_decoded else None), notes


def _check_age(place: Path, written_s: float) -> None:
    """Raise LogError if an object file was built again since callgrind ran: another build may have the same layout."""
    if place.is_file() and place.stat().st_mtime > written_s:
        raise LogError("was changed after the profile was written")


def _instructions(name: str, addresses: Ints, moved: Array, beside: Path, is_small: bool) -> dict[int, Instruction]:
    """The decoded instructions of an object file by address. Raises LogError if it is not the one that ran."""
    if name == _NO_OBJECT and is_small:
        return dict.fromkeys(addresses.tolist(), _STUB)
    place = next((path for path in (Path(name), beside / Path(name).name) if path.is_file()), None)
    if place is None or not len(addresses):
        raise LogError("is not here")
    instructions = Code(place).instructions(np.unique(addresses).tolist())
    without_operand = {address for address, known in instructions.items() if not known.access_bytes}
    wrong = set(addresses.tolist()) - instructions.keys()
    wrong |= without_operand.intersection(addresses[moved].tolist())
    if len(wrong) > max(_FEW, _TOLERANCE * len(addresses)):
        raise LogError("is not the file that ran: its instructions do not fit the profile")
    return instructions


def _counted(own: Columns, found: Sequence[Instruction | None]) -> Columns:
    """Callgrind's counts: a column a class of instruction, then bytes, then what was not decoded, (n_rows, n)."""
    names = (*classes(), STUBS, UNDECODED)
    nothing = Instruction(UNDECODED, 1, 0)
    known = [instruction or nothing for instruction in found]
    # There are some hundred kinds of instructions, and a hundred thousand rows.
    kinds = {id(instruction): instruction for instruction in known}
    place_of = {kind: place for place, kind in enumerate(kinds)}
    kind_of = np.array([place_of[id(instruction)] for instruction in known])
    column_of = {name: column for column, name in enumerate(names)}
    columns = np.array([column_of[kind.counted_as] for kind in kinds.values()])[kind_of]
    lanes, access_bytes, each = np.array([kind[1:] for kind in kinds.values()])[kind_of].T
    executed = own["Ir"]
    counts = np.zeros((len(known), len(names)))
    counts[np.arange(len(known)), columns] = executed * lanes
    moved: dict[str, Floats] = {}
    for event, name in (("Dr", "load"), ("Dw", "store")):
        if event in own:
            # Callgrind counts the operand of a vector multiply-add once a lane.
            moved[f"{name}s"] = np.minimum(own[event], executed)
            moved[f"{name}_bytes"] = np.where(each, own[event], moved[f"{name}s"]) * access_bytes
    touches = own.only(("Dr", "Dw")).any(axis=1)
    # A move from or to memory is a load or a store, and no more.
    counts[touches, column_of[MISC]] = 0
    return Columns((*names, *moved), np.column_stack([counts, *moved.values()]))


def main(arguments: Sequence[str]) -> int:
    """Decode a callgrind profile, of a processor that may be named, and print it."""
    path = Path(arguments[0])
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            costs = parse(line.rstrip("\n") for line in lines)
    except (OSError, LogError) as err:
        sys.stderr.write(f"{path.name}: {err}\n")
        return 1
    if arguments[1:]:
        costs.descriptions[MACHINE] = arguments[1]
    sys.stdout.writelines(f"{line}\n" for line in decoded(costs, path.parent).text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
