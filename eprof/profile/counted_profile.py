"""`CountedProfile`: counts and times of a program, by device; no prices."""

import math
from collections.abc import Collection
from functools import cached_property
from operator import attrgetter
from typing import Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base import cpus
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
from eprof.logs.log import Copies, Idle, KernelRows, Launches, Log, TableRows
from eprof.logs.runs import Measured, Run, metered_in
from eprof.profile.cpu_use import CpuUse
from eprof.profile.device import Device
from eprof.profilers import signs_of

_OVERLAPPED = 1.01  # kernels at a time, on average, from which on they are said to overlap
_SLOWEST_MHZ, _FASTEST_MHZ = 100.0, 10_000.0  # of a core that works


class Counted(ShortRepr, Struct, frozen=True, eq=False):
    """One device's launches, the definition of its counters, where times are from (None: its logs), and warnings."""

    device: Device
    launches: Launches
    definition: Definition
    time_from: str | None
    warnings: tuple[str, ...]


class CountedProfile(NotebookResult, Struct, frozen=True, eq=False, dict=True):
    """Counts and times of one program, from one or more logs.

    total_s: the time of all kernels together, where `--time TIME` tells it and nothing tells how they share it.
    whole: whether all kernels of the logs are looked at. timeline: the launches one by one, where a log tells when each
    ran. parts: what rows were split by ("rank", "stream", "nvtx"); None: nothing, or by operator, as the log has it.
    idle: how long no kernel ran between the first and the last of the only trace, or beside the calls of CUDA in the
    only summary of these; None: no log tells it of all.
    copies_s: how long copies took, of the only log that tells it (0: none does, or several); copies: their kinds.
    has_given_time: whether the user gave times, which tell nothing of clocks. kernels_s: as in `Idle`, of all traces.
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
    kernels_s: tuple[tuple[str | None, float, float], ...] = ()
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

    def at_once_on(self, labels: Collection[str | None]) -> float:
        """How many kernels ran at a time on these GPUs while any did, on average, by the traces that tell; else 1."""
        # Databases tell a GPU by its number alone; what names none is of the only one.
        numbers = {str(part.device.index) for part in self.counted if part.device.label in labels}
        names = {*labels, *numbers, None}
        own = [(took_s, ran_s) for label, took_s, ran_s in self.kernels_s if label in names]
        took_s, ran_s = (sum(times) for times in zip((0.0, 0.0), *own, strict=True))
        return took_s / ran_s if took_s > _OVERLAPPED * ran_s else 1.0

    @property
    def at_once(self) -> float:
        """How many kernels ran at a time on a GPU of the profile while any did, on average; they share its power."""
        return self.at_once_on({part.device.label for part in self.counted})

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
        priced = self.cpu_use.with_assumed_sockets(priced, table)
        if table.is_for(profiled):
            return priced
        note = table.assumption or (
            f"The costs are those of {table.device}, the counts are from {profiled}: "
            f"every energy rests on the assumption that {SAME}."
        )
        if self.is_whole_client(table):
            low_w, high_w = cpus.constant_span_w(profiled)
            priced = replace(priced, constant_power_w=math.sqrt(low_w * high_w))
            between = f"between the {low_w:g} and {high_w:g} W of clients"
            note += f" Constant power is {priced.constant_power_w:.3g} W, {between}."
        elif self.is_of_cpu:
            note += f" Constant energy is the {priced.constant_power_w:g} W of the one times the time of the other."
        return replace(priced.marked(Mark.ASSUMED), notes=(*priced.notes, note))

    def is_whole_client(self, table: CostTable) -> bool:
        """Whether a whole client CPU is charged for, whose constant power no server's table tells."""
        is_own = self.is_served_by(table)
        return cpus.is_client(self.counted[0].device.name) and not is_own and self.cpu_use.socket_share(table) is None

    @property
    def measured(self) -> Measured | None:
        """What a meter saw of the profiled run: in a run directory, or in the logs; None where none was read."""
        return mapped(Run.measured, self.run) or metered_in([part.launches for part in self.counted])

    @property
    def metered(self) -> list[Launches]:
        """What of the launches, of each device, a meter saw: the rows whose joules the logs hold."""
        return [part.launches.chosen(own) for part in self.counted if (own := part.launches.is_metered).any()]

    @property
    def limit_w(self) -> float | None:
        """The power limit of the boards in W, as the run directory or the program's output tells; None: not told."""
        told = {log.limit_w for log in self.logs if log.limit_w}
        return mapped(attrgetter("limit_w"), self.run) or only(told)

    @cached_property
    def cpu_use(self) -> CpuUse:
        """How many sockets and cores of its CPUs the program used, as far as its logs tell."""
        return CpuUse.of(
            [part.launches for part in self.counted],
            self.run,
            self.saved,
            runs_one_core=signs_of(self.counted[0].definition.profiler).runs_one_core,
            is_metered=self.measured is not None,
        )

    @property
    def cores_mhz(self) -> float | None:
        """The mean clock of a CPU's busy cores, as their cycles and the time tell; None: not known."""
        if not self.is_of_cpu or not self.cpu_use.cores:
            return None
        counted = self.counts()
        cycles, time_s = counted.amounts.only(["core_active"]), counted.rows.time_s
        if not cycles.size or counted.amount_marks["core_active"].any():
            return None
        mhz = float(cycles.sum() / (self.cpu_use.cores * time_s.sum() * 1e6))
        return mhz if _SLOWEST_MHZ <= mhz <= _FASTEST_MHZ else None

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
