"""What a program used of its CPUs, sockets and busy cores, as logs tell; and what of a cost table it pays for these."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.optional import mapped
from eprof.base.vocabulary import Mark
from eprof.costs import Costs, CostTable
from eprof.logs.log import CORES, CPUS, SOCKETS, Launches
from eprof.logs.runs import Run

_THREADS = 2  # of a core, at most, that Linux shows as CPUs
_IN_USE = {SOCKETS: "sockets", CORES: "cores", CPUS: "cpus"}  # counter of a log -> word of a document


class CpuUse(Struct, frozen=True):
    """The sockets, busy cores and counted CPUs of a profiled program; None: not told.

    cpus: of a log that is of a whole machine, not of a program. is_metered: a meter saw whole sockets, whatever part
    of them was busy. told: the most of "sockets", "cores", "cpus", as far as logs tell, for a document.
    """

    sockets: int | None
    cores: float | None
    cpus: int | None
    is_metered: bool
    told: dict[str, float]

    @classmethod
    def of(
        cls, launches: Sequence[Launches], run: Run | None, saved: Run | None, runs_one_core: bool, is_metered: bool
    ) -> "CpuUse":
        """What logs with these launches tell, or `saved`, a report that was read back; and `run`, of the busy cores.

        runs_one_core: the profiler simulates one core.
        """
        found = {word: _told(launches, saved, counter) for counter, word in _IN_USE.items()}
        told = {word: float(values.max()) for word, (values, _) in found.items() if values.size}
        cores = _busy_cores(run or saved, runs_one_core, *found["cores"])
        if cores is not None:
            told["cores"] = cores
        return cls(mapped(int, told.get("sockets")), cores, mapped(round, told.get("cpus")), is_metered, told)

    def socket_share(self, table: CostTable) -> float | None:
        """The program's busy cores over a socket's; None where not known, or a meter saw the whole socket.

        Above 1 where more cores were busy than a socket of the table has.
        """
        if not table.constant.is_per_socket or not table.constant.cores or not self.cores or self.is_metered:
            return None
        return self.cores / table.constant.cores

    def in_use(self, table: CostTable) -> CostTable:
        """The cost table for as many of its CPU's sockets, or cores of one, as the program used."""
        return table.in_sockets(self.priced_sockets(table))

    def priced_sockets(self, table: CostTable) -> float:
        """The CPU sockets in use, as told; else the busy cores' share; else 1, or the fewest with all counted CPUs."""
        told = self.sockets or self.socket_share(table)
        if told or not table.constant.is_per_socket or not table.constant.cores:
            return told or 1
        return math.ceil((self.cpus or 1) / (_THREADS * table.constant.cores))

    def most_sockets(self, table: CostTable) -> int:
        """The most CPU sockets that the program can have used: as told, else as many as the counted CPUs fill."""
        number = self.priced_sockets(table)
        if self.sockets is None and self.cpus and table.constant.is_per_socket and table.constant.cores:
            number = max(number, self.cpus / table.constant.cores)
        return math.ceil(number)

    def beyond_sockets(self, table: CostTable) -> float:
        """How many times the CPU sockets that are priced the program may have used; 1 where these are told."""
        return self.most_sockets(table) / math.ceil(self.priced_sockets(table))

    def with_assumed_sockets(self, priced: Costs, table: CostTable) -> Costs:
        """The costs `priced`, of `table`, with constant power ASSUMED, and a note, where no log tells the sockets."""
        if self.sockets is not None or not table.constant.is_per_socket:
            return priced
        share, number = self.socket_share(table), self.priced_sockets(table)
        if share is None and number > 1:
            said = (
                f"Nothing tells how many sockets were in use: constant energy is that of {number:g}, as few of "
                f"{table.constant.cores} cores as have the {self.cpus} CPUs that were counted."
            )
        elif share is None:
            said = "Nothing tells how many sockets were in use: constant energy is that of one, with all of its cores."
        elif share > 1:
            said = (
                f"Constant power is {priced.constant_power_w:.3g} W, {share:.3g} times that of a socket of "
                f"{table.constant.cores} cores, as {self.cores:.3g} CPUs were busy: assumed, for the log does not "
                "tell its sockets."
            )
        else:
            whole_w = priced.constant_power_w / share
            said = (
                f"Constant power is {priced.constant_power_w:.3g} W, the share of {self.cores:.3g} of "
                f"{table.constant.cores} cores in the {whole_w:.3g} W of the socket: assumed, as if others kept "
                "the rest busy."
            )
        marks = priced.constant_marks | Mark.ASSUMED
        return replace(priced, constant_marks=marks, notes=(*priced.notes, said))


def _told(launches: Sequence[Launches], saved: Run | None, counter: str) -> tuple[Floats, Floats]:
    """The values above 0 of a counter of sockets, cores or CPUs, and the s of each, both (n,)."""
    if saved is not None:
        number = saved.section("in_use").get(_IN_USE[counter])
        values = np.array([] if number is None else [number], dtype=np.float64)
        return values, np.ones(len(values))
    parts = [part for part in launches if counter in part.counters]
    values = np.concatenate([np.zeros(0), *(part.counters[counter] for part in parts)])
    time_s = np.concatenate([np.zeros(0), *(part.rows.time_s for part in parts)])
    return values[values > 0], time_s[values > 0]


def _busy_cores(run: Run | None, runs_one_core: bool, values: Floats, time_s: Floats) -> float | None:
    """The cores that a program kept busy: as a bare run measured, or else as logs tell, the mean over time."""
    if run is not None and run.cores:
        return run.cores
    if runs_one_core:
        return 1.0
    is_timed = time_s > 0
    if not is_timed.any():
        return None
    return float(np.average(values[is_timed], weights=time_s[is_timed]))
