"""A profile by instruction address becomes one by function and class: `python -m eprof.profilers.callgrind.decode FILE`.

A profile holds no machine code, only the names of the program and its libraries. So it is decoded right after the run,
while they are those that ran; what is printed is a profile of functions in the same format (`costs.py`).
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Array, Columns, Floats, Ints, group_sums, numbers_of
from eprof.base.errors import LogError
from eprof.profilers.callgrind.costs import Costs, parse
from eprof.profilers.callgrind.machine_code import MISC, Code, Instruction, classes
from eprof.profilers.callgrind.signs import UNDECODED

# Of the instructions that touched memory, so many may have no operand in memory, for callgrind may name their neighbour;
# of another program's code, a third has none.
_FEW, _TOLERANCE = 2, 0.05


def decoded(costs: Costs, beside: Path) -> tuple[Costs, list[str]]:
    """The costs of functions, their instructions by class where they can be decoded, and sentences on where not.

    beside: a folder where objects may be that are not where they were.
    """
    notes = []
    own = costs.own
    if not costs.has_addresses or "Ir" not in own:
        notes.append("it was made without --dump-instr=yes, so its instructions have no classes")
    else:
        by_class, notes = _by_class(costs, beside)
        if by_class is not None:
            own = Columns((*own.names, *by_class.names), np.hstack([own.values, by_class.values]))
    used, codes = np.unique(costs.places, return_inverse=True)
    sums = Columns(own.names, group_sums(own.values, codes))
    return replace(costs, places=used, addresses=used, own=sums, has_addresses=False), notes


def _by_class(costs: Costs, beside: Path) -> tuple[Columns | None, list[str]]:
    """The instructions of each row by class, and the bytes that they moved; None if not one can be decoded."""
    object_of = numbers_of(function.object for function in costs.functions)[costs.places]
    names = list(dict.fromkeys(function.object for function in costs.functions))
    moved = costs.own.only(("Dr", "Dw")).any(axis=1)
    found: list[Instruction | None] = [None] * len(object_of)
    notes = []
    for number, name in enumerate(names):
        rows = np.flatnonzero(object_of == number)
        try:
            instructions = _instructions(name, costs.addresses[rows], moved[rows], beside)
        except (OSError, ValueError, LogError) as err:
            reason = err.strerror if isinstance(err, OSError) else err
            notes.append(f"{name}: {reason}, so its {len(rows):,} instructions have no class")
            continue
        for row, address in zip(rows.tolist(), costs.addresses[rows].tolist(), strict=True):
            found[row] = instructions.get(address)
    return (_counted(costs.own, found) if any(found) else None), notes


def _instructions(name: str, addresses: Ints, moved: Array, beside: Path) -> dict[int, Instruction]:
    """The instructions of an object by address. Raises LogError if it is not the one that ran."""
    place = next((path for path in (Path(name), beside / Path(name).name) if path.is_file()), None)
    if place is None or not len(addresses):
        raise LogError("is not here")
    instructions = Code(place).instructions(np.unique(addresses).tolist())
    wrong = {address for address in addresses.tolist() if address not in instructions}
    wrong |= {address for address in addresses[moved].tolist() if address not in wrong and not instructions[address].access_bytes}
    if len(wrong) > max(_FEW, _TOLERANCE * len(addresses)):
        raise LogError("is not the file that ran: its instructions do not fit the profile")
    return instructions


def _counted(own: Columns, found: Sequence[Instruction | None]) -> Columns:
    """A column a class of instruction, then bytes, then the executions that were not decoded: (n_rows, n)."""
    names = (*classes(), UNDECODED)
    nothing = Instruction(UNDECODED, 1, 0)
    known = [instruction or nothing for instruction in found]
    executed = own["Ir"]
    counts = np.zeros((len(known), len(names)))
    column_of = {name: column for column, name in enumerate(names)}
    columns = [column_of[instruction.count] for instruction in known]
    counts[np.arange(len(known)), columns] = executed * [instruction.lanes for instruction in known]
    moved: dict[str, Floats] = {}
    for event, name in (("Dr", "load"), ("Dw", "store")):
        if event in own:
            # Callgrind counts the operand of a vector multiply-add once a lane.
            moved[f"{name}s"] = np.minimum(own[event], executed)
            accesses = np.where([instruction.each for instruction in known], own[event], moved[f"{name}s"])
            moved[f"{name}_bytes"] = accesses * [instruction.access_bytes for instruction in known]
    touches = own.only(("Dr", "Dw")).any(axis=1)
    # A move from or to memory is a load or a store, and no more.
    counts[touches, column_of[MISC]] = 0
    return Columns((*names, *moved), np.column_stack([counts, *moved.values()]))


def main(arguments: Sequence[str]) -> int:
    """Decode a profile and print it."""
    path = Path(arguments[0])
    with path.open(encoding="utf-8", errors="replace") as lines:
        costs, notes = decoded(parse(line.rstrip("\n") for line in lines), path.parent)
    sys.stderr.writelines(f"{note}\n" for note in notes)
    sys.stdout.writelines(f"{line}\n" for line in costs.text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
