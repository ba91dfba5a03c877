"""`CountedProfile`: counts and times of a program, by device, and the CPU cores and sockets in use; no prices."""

import math
from operator import attrgetter
from typing import Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.gpus import capability_of_label
from eprof.base.optional import gathered, mapped, only
from eprof.base.text import NotebookResult, ShortRepr, listed, phrase, short_repr
from eprof.base.vocabulary import CPU, Mark, Nouns
from eprof.costs import Costs, CostTable
from eprof.counts import counts, definition_files
from eprof.counts.counts import Counts
from eprof.counts.definition import Definition
from eprof.energy.clocks import Clocks, clocks_of, slowed
from eprof.energy.meter_factor import SAME
from eprof.logs.log import CORES, CPUS, SOCKETS, Copies, Idle, KernelRows, Launches, Log, TableRows
from eprof.logs.runs import Measured, Run, metered_in
from eprof.profile.device import Device
from eprof.profilers import signs_of

_THREADS = 2  # of a core, at most, that Linux shows as CPUs
_IN_USE = {SOCKETS: "sockets", CORES: "cores", CPUS: "cpus"}  # counter of a log -> word of a document
_SLOWEST_MHZ, _FASTEST_MHZ = 100.0, 10_000.0  # of a core that works


class Counted(ShortRepr, Struct, frozen=True, eq=False):
    """One device's launches, the definition of its counters, where times are from (None: its logs), and warnings."""

    device: Device
    launches: Launches
    definition: Definition
    time_from: str | None
    warnings: tuple[str, ...]


class CountedProfile(NotebookResult, Struct, frozen=True, eq=False):
    """Counts and times of one program, from one or more logs.

    total_s: the time of all kernels together, where `--time TIME` tells it and nothing tells how they share it.
    whole: whether all kernels of the logs are looked at. timeline: the launches one by one, where a log tells when each
    ran. parts: what rows were split by ("rank", "stream", "nvtx"); None: nothing, or by operator, as the log has it.
    idle: how long no kernel ran between the first and the last of the only trace, or beside the calls of CUDA in the
    only summary of these; None: no log tells it of all.
    copies_s: how long copies took, of the only log that tells it (0: none does, or several); copies: their kinds.
    has_given_time: whether the user gave times, which tell nothing of clocks.
    """

    title: str
    logs: tuple[Log, ...]
    counted: tuple[Counted, ...]
    warnings: tuple[str, ...] = ()
    command_line: tuple[str, ...] = ()
    run: Run | None = None
    priced_as: Run | None = None
    clocks: Clocks | None = None
    has_given_time: bool = False
    total_s: float | None = None
    whole: bool = True
    timeline: TableRows | None = None
    parts: str | None = None
    idle: Idle | None = None
    copies_s: float = 0.0
    copies: tuple[Copies, ...] = ()
    _books: dict[str, Counts] = field(default_factory=dict)

    def counts(self, books: str = "served") -> Counts:
        """Instructions by class and bytes by level, (n_kernels, n_classes), in the books "served" or "accessed"."""
        if books not in self._books:
            parts = [counts.count(part.launches, part.definition, books) for part in self.counted]
            self._books[books] = counts.with_traces(counts.concat(parts), self.logs)
        return self._books[books]

    @property
    def rows(self) -> KernelRows:
        """The profile's kernels in the order of the logs, of whichever books are counted: they are the same in both."""
        counted = [*self._books.values()] or [self.counts()]
        return counted[0].rows

    def on_this_gpu(self, table: CostTable) -> CostTable:
        """The cost table as it holds on the profile's board, by the board's name and the clock of its DRAM."""
        return table.on(gpu_of(self.counted[0]), self.memory_mhz)

    @property
    def memory_mhz(self) -> float | None:
        """The clock of the first device's DRAM, as its log tells it; None: not told."""
        return mapped((1e3).__mul__, self.counted[0].device.told.dram_ghz)

    def by_gpu(self) -> tuple[Self, ...]:
        """The profile of each GPU model, with what its own logs tell; the profile itself where all GPUs are of one."""
        gpus = gathered(((part.device.name, part.device.capability), part) for part in self.counted)
        if len(gpus) < 2:
            return (self,)
        profiles = []
        for counted in gpus.values():
            own = {part.device.label for part in counted}
            others = {part.device.label for part in self.counted} - own
            logs = []
            for log in self.logs:
                devices = {label for table in log.tables for label in set(table.rows.device.texts().tolist())}
                if not devices or devices - others:
                    logs.append(replace(log, clocks=tuple(clock for clock in log.clocks if clock.device not in others)))
            books = {}
            if not any(part.launches.counters.names for part in self.counted):
                # Those of a report that was read back have no counters behind them.
                for name, of_all in self._books.items():
                    books[name] = of_all.chosen(np.flatnonzero([label in own for label in of_all.rows.device]))
            made = replace(self, logs=tuple(logs), counted=tuple(counted), _books=books)
            if self.priced_as is not None and (of_gpus := self.priced_as.manifest.get("pricing_of")):
                # A report that was read back tells how it priced each GPU.
                pricing = of_gpus.get(counted[0].device.label, self.priced_as.section("pricing"))
                made = replace(made, priced_as=replace(self.priced_as, manifest={"pricing": pricing}))
            profiles.append(replace(made, clocks=None if self.has_given_time else clocks_of(self.run, logs)))
        return tuple(profiles)

    @property
    def is_simulated(self) -> bool:
        """Whether a device of the profile was simulated, whose time is modelled."""
        return any(part.device.capability == definition_files.SIMULATED for part in self.counted)

    @property
    def nouns(self) -> Nouns:
        """The words for what ran: "kernel" and "GPU", or "function" and "CPU"."""
        return self.counted[0].definition.nouns

    @property
    def saved(self) -> Run | None:
        """What is known of the run behind a report's JSON that was read back; None where logs were read."""
        is_document = self.priced_as is not None and self.priced_as.path.suffix == ".json"
        return self.priced_as if is_document else None

    def slowed(self, factor: float) -> Self:
        """The counted profile with all times multiplied by `factor`; so are cycles that were made of time."""
        counted = []
        for part in self.counted:
            rows = replace(part.launches.rows, time_s=factor * part.launches.rows.time_s)
            counted.append(replace(part, launches=replace(part.launches, rows=rows)))
        total_s = None if self.total_s is None else factor * self.total_s
        # Counts of a report's JSON are nowhere else.
        books = {name: slowed(counts, factor) for name, counts in self._books.items() if self.saved is not None}
        return replace(self, counted=tuple(counted), total_s=total_s, _books=books)

    def is_served_by(self, table: CostTable) -> bool:
        """Whether a table was made for the profiled GPU, or lists it among the boards that it serves too."""
        return all(map(table.serves, map(gpu_of, self.counted)))

    def for_this_gpu(self, priced: Costs, table: CostTable) -> Costs:
        """The costs `priced`, of `table`, all ASSUMED, with a note, where that is not for the profiled GPU or CPU.

        Constant power alone is ASSUMED, with a note, where nothing tells how many sockets of a CPU were in use.
        """
        profiled = self.counted[0].device.name or f"a {self.nouns.processor} that the logs do not name"
        said = ""
        if self.sockets is None and (share := self.socket_share(table)):
            whole_w = priced.constant_power_w / share
            said = (
                f"Constant power is {priced.constant_power_w:.3g} W, the share of {self.cores:.3g} of "
                f"{table.constant.cores} cores in the {whole_w:.3g} W of the socket: assumed, as if others kept "
                "the rest busy."
            )
            if share > 1:
                said = (
                    f"Constant power is {priced.constant_power_w:.3g} W, {share:.3g} times that of a socket of "
                    f"{table.constant.cores} cores, as {self.cores:.3g} CPUs were busy: assumed, for the log does not "
                    "tell its sockets."
                )
        elif table.constant.is_per_socket and self.sockets is None:
            said = "Nothing tells how many sockets were in use: constant energy is that of one, with all of its cores."
            if (number := self.priced_sockets(table)) > 1:
                said = (
                    f"Nothing tells how many sockets were in use: constant energy is that of {number:g}, as few of "
                    f"{table.constant.cores} cores as have the {self.cpus_counted} CPUs that were counted."
                )
        if said:
            marks = priced.constant_marks | Mark.ASSUMED
            priced = replace(priced, constant_marks=marks, notes=(*priced.notes, said))
        if table.is_for(profiled):
            return priced
        note = table.assumption or (
            f"The costs are those of {table.device}, the counts are from {profiled}: "
            f"every energy rests on the assumption that {SAME}."
        )
        if self.is_of_cpu:
            note += f" Constant energy is the {priced.constant_power_w:g} W of the one times the time of the other."
        return replace(priced.marked(Mark.ASSUMED), notes=(*priced.notes, note))

    @property
    def measured(self) -> Measured | None:
        """What a meter saw of the profiled run: in a run directory, or in the logs; None where none was read."""
        return mapped(Run.measured, self.run) or metered_in([part.launches for part in self.counted])

    @property
    def limit_w(self) -> float | None:
        """The power limit of the boards in W, as the run directory or the program's output tells; None: not told."""
        told = {log.limit_w for log in self.logs if log.limit_w}
        return mapped(attrgetter("limit_w"), self.run) or only(told)

    @property
    def sockets(self) -> int | None:
        """How many CPU sockets the profiled program used, as its logs tell; None: they do not."""
        told = self._told(SOCKETS)
        if told is None:
            return None
        return int(told[0].max())

    @property
    def cores(self) -> float | None:
        """How many cores the profiled program kept busy: as a bare run measured or its logs tell; None: they do not.

        In a simulation that is one.
        """
        run = self.run or self.saved
        if run is not None and run.cores:
            return run.cores
        if signs_of(self.counted[0].definition.profiler).runs_one_core:
            return 1.0
        told = self._told(CORES)
        if told is None or not (told[1] > 0).any():
            return None
        is_timed = told[1] > 0
        return float(np.average(told[0][is_timed], weights=told[1][is_timed]))

    @property
    def cpus_counted(self) -> int | None:
        """How many CPUs a log counted that is of a whole machine; None: it is of a program, or does not tell."""
        told = self._told(CPUS)
        return None if told is None else round(float(told[0].max()))

    @property
    def cores_mhz(self) -> float | None:
        """The mean clock of a CPU's busy cores, as their cycles and the time tell; None: not known."""
        if not self.is_of_cpu or not self.cores:
            return None
        counted = self.counts()
        cycles, time_s = counted.amounts.only(["core_active"]), counted.rows.time_s
        if not cycles.size or counted.amount_marks["core_active"].any():
            return None
        mhz = float(cycles.sum() / (self.cores * time_s.sum() * 1e6))
        return mhz if _SLOWEST_MHZ <= mhz <= _FASTEST_MHZ else None

    @property
    def cpu_use(self) -> dict[str, float]:
        """How many "cores", "sockets" and "cpus" a CPU's program used, as far as its logs tell; empty for a GPU's."""
        if not self.is_of_cpu:
            return {}
        told = {word: self._told(counter) for counter, word in _IN_USE.items()}
        most = {word: float(numbers[0].max()) for word, numbers in told.items() if numbers is not None}
        return most if self.cores is None else most | {"cores": self.cores}

    def _told(self, counter: str) -> tuple[Floats, Floats] | None:
        """The values above 0 of a counter of sockets, cores or CPUs, and the s of each, both (n,); None: no values."""
        if self.saved is not None:
            number = self.saved.section("in_use").get(_IN_USE[counter])
            return None if number is None else (np.array([number]), np.ones(1))
        parts = [part.launches for part in self.counted if counter in part.launches.counters]
        if not parts:
            return None
        numbers = np.concatenate([part.counters[counter] for part in parts])
        time_s = np.concatenate([part.rows.time_s for part in parts])
        is_told = numbers > 0
        if not is_told.any():
            return None
        return numbers[is_told], time_s[is_told]

    def socket_share(self, table: CostTable) -> float | None:
        """The program's busy cores over a socket's; None where not known, or a meter saw the whole socket.

        Above 1 where more cores were busy than a socket of the table has.
        """
        if not table.constant.is_per_socket or not table.constant.cores or not self.cores or self.measured is not None:
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
        return math.ceil((self.cpus_counted or 1) / (_THREADS * table.constant.cores))

    def most_sockets(self, table: CostTable) -> int:
        """The most CPU sockets that the program can have used: as told, else as many as the counted CPUs fill."""
        number = self.priced_sockets(table)
        if self.sockets is None and self.cpus_counted and table.constant.is_per_socket and table.constant.cores:
            number = max(number, self.cpus_counted / table.constant.cores)
        return math.ceil(number)

    def beyond_sockets(self, table: CostTable) -> float:
        """How many times the CPU sockets that are priced the program may have used; 1 where these are told."""
        return self.most_sockets(table) / math.ceil(self.priced_sockets(table))

    @property
    def is_of_cpu(self) -> bool:
        """Whether a CPU was profiled, and no GPU."""
        return self.counted[0].definition.processor == CPU

    def is_named_otherwise(self, table: CostTable) -> bool:
        """Whether the profile's logs name a GPU that the cost table does not serve. Logs of ncu in CSV name none."""
        named = [part.device for part in self.counted if capability_of_label(part.device.label or "") is None]
        return any(device.name is not None and not table.serves(device.name) for device in named)

    def __repr__(self) -> str:
        """One line: title, number of kernels, devices."""
        kernels = sum(len(part.launches.rows) for part in self.counted)
        devices = listed(
            list(dict.fromkeys(part.device.name or f"a {self.nouns.processor} not named" for part in self.counted))
        )
        return short_repr(type(self), f"{kernels} {self.nouns.of(kernels)} on {devices}", self.title)


def gpu_of(counted: Counted) -> str:
    """The name by which to look for a device's cost table: its own, "CC 8.0" where the log has none, or ""."""
    device = counted.device
    return device.name or phrase("CC {}", device.capability)
