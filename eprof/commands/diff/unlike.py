"""What is not the same on both sides beside the counts: arguments, GPU, clocks, prices, environment, launches."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable

import numpy as np

from eprof.base.text import listed
from eprof.commands.diff.changes import Changes
from eprof.commands.diff.schema import Unlike
from eprof.commands.diff.side import Side

# Where a run keeps its own files, which are others in any two runs.
_EACH_RUN = ("OCL_", "OCLGRIND_", "LD_PRELOAD", "SLURM_PROCID", "PMI_", "OMPI_COMM_WORLD_")
_SAME_CLOCK = 0.01


def unlike(changes: Changes) -> list[Unlike]:
    """What is unlike on both sides, what bears most on the comparison first.

    What one side does not tell is passed over.
    """
    old, new = changes.old_side, changes.new_side
    before, after = _facts(old), _facts(new)
    is_on_both = np.all(np.array(changes.launches) > 0, axis=0)
    pairs = [
        ("arguments", *_apart(_words(old), _words(new))),
        *((what, before[what], after[what]) for what in before if what in after),
        ("clocks", *_clocks(old, new)),
        ("environment", *_apart(_environment(old), _environment(new))),
        ("launches", *(f"{launches[is_on_both].sum():g}" for launches in changes.launches)),
    ]
    differing = {what: Unlike(what, *texts) for what, *texts in pairs if texts[0] != texts[1]}
    if "costs" in differing:
        differing.pop("setting", None)
    return list(differing.values())


def _apart(old: Iterable[str] | None, new: Iterable[str] | None) -> tuple[str, str]:
    """The words of each side's arguments that the other has not; none where a side does not tell its own."""
    if old is None or new is None:
        return "", ""
    before, after = Counter(old), Counter(new)
    return shlex.join((before - after).elements()), shlex.join((after - before).elements())


def _words(side: Side) -> list[str] | None:
    """The arguments of a side's program; None where nothing tells, or its repeats had several."""
    commands = {log.command for energy in side.energies for log in energy.profile.logs}
    commands = {energy.profile.run.command for energy in side.energies if energy.profile.run} or commands
    command = commands.pop()
    if commands or not command:
        return None
    try:
        return shlex.split(command)[1:]
    except ValueError:
        return command.split()[1:]


def _environment(side: Side) -> list[str] | None:
    run = side.first.profile.run
    if run is None:
        return None
    values = run.section("environment")
    return [f"{name}={value}" for name, value in values.items() if not name.startswith(_EACH_RUN)]


def _clocks(old: Side, new: Side) -> tuple[str, str]:
    """The clocks that both sides ran at, if unlike; nothing where one is not known, or none is more than 1 % off."""
    before, after = old.first.profile.clocks, new.first.profile.clocks
    if before is None or after is None or before.label is None or after.label is None:
        return "", ""
    pairs = ((before.core_mhz, after.core_mhz), (before.memory_mhz, after.memory_mhz))
    if all(math.isclose(first or 0, second or 0, rel_tol=_SAME_CLOCK) for first, second in pairs):
        return "", ""
    return before.label, after.label


def _facts(side: Side) -> dict[str, str]:
    """What may be unlike of a side: its GPU, its prices, and what the modelled time of a simulated device rests on."""
    gpus = sorted({part.device.name for part in side.first.profile.counted if part.device.name})
    facts = {"gpu": listed(gpus) if gpus else ""}
    if side.costs is not None:
        facts |= {"costs": side.costs.name, "setting": side.costs.setting.label}
    if side.efficiency is not None:
        facts["efficiency"] = f"{side.efficiency:g}"
    return {what: fact for what, fact in facts.items() if fact}
