"""`Profile`: what a program did, counted, and how it is priced (`Energy`, in `priced.py`)."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, compress
from operator import attrgetter
from statistics import median

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Columns, Floats
from eprof.base.boards import Traits, example, sheets
from eprof.base.brief import Brief, Result, brief
from eprof.base.cpus import UNNAMED, nearest_costs
from eprof.base.errors import CostError, LogError, MeterError, UsageError
from eprof.base.gpus import capabilities, capability_of_label, that_hold
from eprof.base.known import gathered, mapped, only
from eprof.base.marks import MISSING, Mark
from eprof.base.nouns import Nouns
from eprof.base.text import capital, few, listed, phrase, when
from eprof.base.vocabulary import CPU
from eprof.costs import ESTIMATED, NONE, Costs, CostTable, for_device
from eprof.costs import load as load_costs
from eprof.counts import checks, counters, counts, times
from eprof.counts.counts import Counts, Sheet
from eprof.counts.definition import DRAM_CLOCK, DRAM_PEAK, HELD, SM_COUNT, Definition, common, without_counters
from eprof.energy.clocks import Clocks, clocks_of, slowed, with_active_cycles
from eprof.energy.clocks import priced as priced_at
from eprof.energy.metering import SAME
from eprof.energy.simulated import Modelled, model_time
from eprof.logs.rows.gaps import outside
from eprof.logs.rows.log import CORES, CPUS, SOCKETS, UNUSED, Copies, Idle, KernelRows, Launches, Log, TableRows
from eprof.logs.runs import Measured, Run, metered_in
from eprof.profile.components import time_by_component
from eprof.profile.device import Device, device_of
from eprof.profile.priced import Energy, beside, in_order
from eprof.profilers import signs_of

_SLOWEST_MHZ, _FASTEST_MHZ = 100.0, 10_000.0  # of a core that works
_NAMED = 4  # definitions that may be those of a CPU


class Counted(Brief, Struct, frozen=True, eq=False):
    """One device's launches with the definition that reads them."""

    device: Device
    launches: Launches
    definition: Definition
    time_from: str | None
    warnings: tuple[str, ...]


class Profile(Result, Struct, frozen=True, eq=False):
    """Counts and times of one program, from one or more logs. `energy` puts prices on it.

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
    def energy_j(self) -> float | None:
        """All energy of the kernels in J at the default prices, as `energy().energy_j`; None: nothing is known."""
        return self.energy().energy_j

    @property
    def rows(self) -> KernelRows:
        """The kernels in the order of the logs, of whichever books are counted already: it is the same in both."""
        counted = [*self._books.values()] or [self.counts()]
        return counted[0].rows

    def energy(
        self,
        costs: str | CostTable | None = None,
        setting: str | None = None,
        efficiency: float | None = None,
        to_meter: bool | None = None,
        metered_j: float | None = None,
        by_component: bool = False,
        estimate: bool = True,
    ) -> Energy:
        """The profile priced with a cost table (a name, a file or a loaded one) at a DVFS setting ("852/924", MHz).

        Without `costs`, the table that is made for the profiled GPU is taken; if there is none, the estimate of its
        data sheet, unless `estimate` is False. "none": nothing is priced and every energy is unknown. Each of several
        GPUs has its own prices (`Energy.gpus`). Without `setting`, it is that nearest to the clocks of the run, if
        these are known and the table serves this GPU, else the table's default. `efficiency`: the fraction of the peak
        that kernels on a simulated device are taken to reach (`simulated`). by_component: also model each kernel's time
        by component, which then is the time of kernels that have none (`energy/components.py`).

        to_meter: scale the table so that the kernels and idle time take what a meter saw (docs/metered.md): what the
        run directory holds, or `metered_j` joules. None: where the table is not made for this GPU and there are
        metered joules. Raises CostError: no such table, no such setting; UsageError: no such efficiency; MeterError:
        there are no joules to scale to, or they cannot be those of these kernels.
        """
        if metered_j is not None and to_meter is False:
            raise UsageError("--energy scales to a meter, and --no-to-meter does not; give one of the two.")
        if efficiency is not None and not self.is_simulated:
            raise UsageError("--efficiency is for simulated devices, whose time is modelled; these logs are of a GPU.")
        gpus = self.by_gpu()
        if len(gpus) > 1 and costs != NONE:
            if to_meter or metered_j is not None:
                from eprof.profile.metering import meter_of

                meter_of(self, metered_j)  # nothing tells whose joules they are: it raises
            if isinstance(costs, str) and costs != ESTIMATED:
                load_costs(costs)  # what is no table is none for any of them
            made = [gpu._alone(costs, setting, efficiency, estimate) for gpu in gpus]
            if any(energy.split is not None for energy in made):
                together = beside(self, made)
                if by_component:
                    together.check_one_gpu("--time components")
                return together
            costs = NONE
        predicted = self._predicted(costs, setting, efficiency, by_component)
        if to_meter or metered_j is not None:
            return self._to_meter(predicted, metered_j)
        if to_meter is None and costs != NONE:
            predicted = self._to_meter_by_default(predicted)
        if estimate and costs is None and predicted.costs is None and (table := self._estimated_by_default()):
            return self._predicted(table, setting, efficiency, by_component)
        return predicted

    def _alone(
        self, costs: str | CostTable | None, setting: str | None, efficiency: float | None, estimate: bool
    ) -> Energy:
        """The profile of one of several GPUs, priced as if there were no other. Raises EprofError with its name."""
        if not self.is_simulated:
            efficiency = None
        try:
            return self.energy(costs, setting, efficiency, to_meter=False, estimate=estimate)
        except (CostError, UsageError) as err:
            raise type(err)(f"{self.counted[0].device.name or 'A GPU without a name'}: {err}") from err

    def _to_meter(self, predicted: Energy, metered_j: float | None = None) -> Energy:
        from eprof.profile.metering import held_to, meter_of, shape_of

        meter = meter_of(self, metered_j)
        if predicted.costs is None:
            predicted = self._predicted(shape_of(self, meter), None, None)
        return held_to(predicted, meter)

    def _to_meter_by_default(self, predicted: Energy) -> Energy:
        """`predicted` scaled to a meter, if one was read and no table is made for this GPU; else as it is."""
        has_own_table = predicted.table is not None and self.is_served_by(predicted.table)
        if has_own_table or self.measured is None:
            return predicted
        try:
            return self._to_meter(predicted)
        except (CostError, MeterError) as err:
            return replace(predicted, notes=(*predicted.notes, f"Not scaled to the meter: {err}"))

    def _predicted(
        self, costs: str | CostTable | None, setting: str | None, efficiency: float | None, by_component: bool = False
    ) -> Energy:
        if costs is None and self.priced_as is not None:
            costs, setting = self.priced_as.pricing("costs"), setting or self.priced_as.pricing("setting")
        if efficiency is None and self.priced_as is not None:
            efficiency = self.priced_as.pricing("efficiency")
        table = self._table(costs)
        if table is None:
            if setting is not None:
                raise UsageError(
                    f"--setting {setting} is one of a cost table, and none is chosen: name it with --costs."
                )
            if by_component:
                raise UsageError("--time components needs a cost table that describes the GPU: name it with --costs.")
            counted = counts.with_accessed(self.counts(), self.counts("accessed"))
            return Energy(self, None, counted.chosen(in_order(counted.rows, None)), None, total_s=self.total_s)
        table = table.in_sockets(self.sockets or self.socket_share(table) or 1)
        costs_there = table.at(setting)
        if setting is None and self.clocks is not None and self.is_served_by(table):
            costs_there = priced_at(table, self.clocks)
        priced = replace(self.for_this_gpu(costs_there, table), cores_mhz=self.cores_mhz)
        counted, modelled, notes, total_s = self._timed(priced, efficiency, by_component)
        counts_alone = Energy(
            self, None, counted, None, modelled, tuple(notes), table, total_s=total_s, by_component=by_component
        )
        return counts_alone.priced(priced)

    def _timed(
        self, priced: Costs, efficiency: float | None, by_component: bool
    ) -> tuple[Counts, Modelled | None, Sequence[str], float | None]:
        """The counts with modelled times, how these were modelled, notes, and the total time unless it was shared out.

        Where only the total time of some kernels is known, modelled times are scaled to add up to it.
        """
        counted = self.counts(priced.books)
        timed, modelled, notes = model_time(counted, priced, efficiency)
        timed = with_active_cycles(timed, priced, self.cores or 1)
        if by_component:
            # Of simulated kernels the roofline's time stays, whose range the report tells.
            timed, of_cycles, more = time_by_component(timed, priced)
            modelled, notes = modelled or of_cycles, [*notes, *more]
        if self.total_s is None or modelled is None:
            return timed, modelled, notes, self.total_s
        if np.isnan(timed.rows.time_s).any():
            return counted, None, notes, self.total_s
        time_s = counted.rows.time_s
        left_s = self.total_s - float(np.nansum(time_s))
        rows = times.scaled_to(timed.rows, np.isnan(time_s), left_s)
        shared = replace(modelled, how=f"shared out as if {modelled.how}", shares_only=True)
        return replace(timed, rows=rows), shared, notes, None

    def _table(self, costs: str | CostTable | None) -> CostTable | None:
        if isinstance(costs, CostTable):
            return costs
        if costs == NONE:
            return None
        if costs == ESTIMATED:
            return self.estimated()
        if costs is not None:
            return self.on_this_gpu(load_costs(costs))
        return mapped(for_device, _gpu_of(self.counted[0]) or None)

    def estimated(self) -> CostTable:
        """The estimated cost table for the GPU of the profile; that of its compute capability where it has no name.

        Raises CostError: the logs tell neither, or no data sheet of that GPU is known.
        """
        from eprof.costs.estimate import estimated, of_capability

        gpu = self.counted[0].device
        if gpu.name is not None and capability_of_label(gpu.name) is None:
            return estimated(gpu.name)
        if gpu.capability is not None:
            return of_capability(gpu.capability, gpu.name, gpu.told)
        raise CostError(
            '--costs estimated is for one GPU, and the logs do not name the GPU; name it, such as --costs "RTX 4090".'
        )

    def _estimated_by_default(self) -> CostTable | None:
        """The table for a GPU or CPU that no table is made for; None: nothing tells the GPU, or a CPU has a meter."""
        from eprof.costs.estimate import of_capability

        if self.is_of_cpu:
            # What a meter saw is better known than how another CPU's prices would split it.
            return None if self.measured else mapped(load_costs, nearest_costs(UNNAMED))
        gpu = self.counted[0].device
        with suppress(CostError):
            return self.estimated()
        with suppress(CostError):
            return of_capability(gpu.capability or "", gpu.name, gpu.told)
        return None

    def on_this_gpu(self, table: CostTable) -> CostTable:
        """The cost table as it holds on the profile's board."""
        return table.on(_gpu_of(self.counted[0]))

    def by_gpu(self) -> tuple["Profile", ...]:
        """The profile of each GPU, with what its own logs tell; the profile itself where it is of one, or all alike."""
        gpus = gathered(((part.device.name, part.device.capability), part) for part in self.counted)
        if len(gpus) < 2:
            return (self,)
        return tuple(map(self._of_one_gpu, gpus.values()))

    def _of_one_gpu(self, counted: Sequence[Counted]) -> "Profile":
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
            for name, counted_there in self._books.items():
                places = np.flatnonzero([label in own for label in counted_there.rows.device])
                books[name] = counted_there.chosen(places)
        priced_as = self.priced_as
        if priced_as is not None and (of_gpus := priced_as.manifest.get("pricing_of")):
            # A report that was read back tells how it priced each GPU.
            pricing = {"pricing": of_gpus.get(counted[0].device.label, priced_as.section("pricing"))}
            priced_as = replace(priced_as, manifest=pricing)
        clocks = None if self.has_given_time else clocks_of(self.run, logs)
        return replace(self, logs=tuple(logs), counted=tuple(counted), priced_as=priced_as, clocks=clocks, _books=books)

    @property
    def is_simulated(self) -> bool:
        """Whether a device of the profile was simulated, whose time is modelled."""
        return any(part.device.capability == counters.SIMULATED for part in self.counted)

    @property
    def nouns(self) -> Nouns:
        """The words for what ran: "kernel" and "GPU", or "function" and "CPU"."""
        return self.counted[0].definition.nouns

    @property
    def saved(self) -> Run | None:
        """What is known of the run behind a report's JSON that was read back; None where logs were read."""
        is_document = self.priced_as is not None and self.priced_as.path.suffix == ".json"
        return self.priced_as if is_document else None

    def slowed(self, factor: float) -> "Profile":
        """The same counts with all times multiplied by `factor`; so are cycles that were made of time."""
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
        return all(map(table.serves, map(_gpu_of, self.counted)))

    def for_this_gpu(self, priced: Costs, table: CostTable) -> Costs:
        """The costs as on the GPU that `table` was made for; on another, all prices are ASSUMED, with a note."""
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
        """How many processors the profiled program used, as its logs tell; None: they do not."""
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

    def _told(self, counter: str) -> tuple[Floats, Floats] | None:
        """The values above 0 of a counter of sockets or cores, and the s of these rows, each (n,); None: none."""
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
        """The busy cores over those of a socket; None where they are not known, or a meter saw the whole socket.

        Above 1 where more cores were busy than a socket of the table has.
        """
        if not table.constant.is_per_socket or not table.constant.cores or not self.cores or self.measured is not None:
            return None
        return self.cores / table.constant.cores

    def most_sockets(self, table: CostTable) -> int:
        """The most sockets that can have been in use: those that are told, else as many as the counted CPUs fill."""
        told = self._told(CPUS)
        number = self.sockets or self.socket_share(table) or 1
        if self.sockets is None and told is not None and table.constant.is_per_socket and table.constant.cores:
            number = max(number, told[0].max() / table.constant.cores)
        return math.ceil(float(number))

    def beyond_sockets(self, table: CostTable) -> float:
        """How many times the sockets that are priced may have been in use; 1 where these are told."""
        priced = self.sockets or self.socket_share(table) or 1.0
        return self.most_sockets(table) / math.ceil(priced)

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
        return brief(Profile, f"{kernels} {self.nouns.of(kernels)} on {devices}", self.title)


def _gpu_of(counted: Counted) -> str:
    """The name by which to look for a table: the device's, "CC 8.0" where the log has none, or ""."""
    device = counted.device
    return device.name or phrase("CC {}", device.capability)


def build(
    logs: Sequence[Log],
    launches: Launches,
    *,
    capability: str | None = None,
    time: Sequence[str] = (),
    warnings: Sequence[str] = (),
    command_line: Sequence[str] = (),
    run: Run | None = None,
    priced_as: Run | None = None,
    whole: bool = True,
    parts: str | None = None,
    program_s: float | None = None,
    everything: Launches | None = None,
) -> Profile:
    """Make a profile: count what the launches did, device by device.

    capability: overrides what the device names say ("3.5"). time: `--time` values, "TIME" or "KERNEL=TIME". whole:
    whether these are all kernels. program_s: the time of the program without a profiler, which did `everything`: of
    these launches, if it is None.
    Raises DefinitionError if a device's capability is not known or has no definition, LogError if there is no kernel.
    """
    if not len(launches.rows):
        raise LogError("No kernel is left to report on: the logs hold none, or -k/--kernel-name matches none.")
    launches = times.given(launches, time)
    labels = list(dict.fromkeys(launches.rows.device))
    counted = [_counted(launches.chosen(launches.rows.device == label), label, capability) for label in labels]
    if len(counted) == 1 and (whole_s := times.total(time) or program_s):
        counted = [_by_share(counted[0], whole_s, launches if times.total(time) else everything or launches)]
    shared, total_s = _with_total(counted, times.total(time), time)
    idle = only([log.idle for log in logs if log.idle is not None and whole])
    copied = [log for log in logs if log.copies_s and whole]
    copies_s = only([log.copies_s for log in copied]) or 0.0
    copies = only([log.copies for log in copied or logs if log.copies and whole]) or ()
    calls = only([log.calls_of_host for log in logs if log.calls_of_host and whole])
    # Where kernels are missing, others may have run during the calls.
    lacks_kernels = (launches.rows.time_marks & MISSING).any()
    if idle is None and calls and not lacks_kernels:
        comes_again = int(launches.rows.launches.sum()) > len(set(launches.rows.kernel))
        idle = outside(calls, float(launches.rows.time_s.sum()), copies_s, comes_again)
    return Profile(
        title=_profile_title(logs),
        logs=tuple(logs),
        counted=shared,
        warnings=tuple(dict.fromkeys([*warnings, *launches.warnings])),
        command_line=tuple(command_line),
        run=run,
        priced_as=priced_as,
        clocks=None if time else clocks_of(run, logs),
        has_given_time=bool(time),
        total_s=total_s,
        whole=whole,
        timeline=launches.timeline,
        parts=parts,
        idle=idle,
        copies_s=copies_s,
        copies=copies,
    )


def _by_share(counted: Counted, whole_s: float, everything: Launches) -> Counted:
    """For a profile: a device's launches, timed by sharing `whole_s` out, if the definition tells how to share it."""
    launches, share = times.by_share(counted.launches, counted.definition, whole_s, everything)
    if share is None:
        return counted
    how = f"{whole_s:.4g} s of the program, run without a profiler, shared out by {share}"
    return replace(counted, launches=launches, time_from=how)


def _with_total(
    counted: Sequence[Counted], total_s: float | None, specs: Sequence[str]
) -> tuple[tuple[Counted, ...], float | None]:
    """The devices with `total_s` shared out over their kernels, and None; or unshared, and `total_s`.

    Raises UsageError: several devices, as nothing tells whose time it is, or a total that contradicts other times.
    """
    if total_s is None:
        return tuple(counted), None
    if len(counted) > 1:
        raise UsageError("--time TIME: the logs are of several devices; give --time KERNEL=TIME, or a trace.")
    only = counted[0]
    launches, how = times.share(only.launches, total_s, specs, only.time_from)
    if how:
        return (replace(only, launches=launches, time_from=how),), None
    together = f"given by --time for all {only.definition.nouns.kernels} together"
    return (replace(only, launches=launches, time_from=together),), total_s


def _profile_title(logs: Sequence[Log]) -> str:
    if commands := list(dict.fromkeys(log.command for log in logs if log.command)):
        return few(commands, 1)
    return ", ".join(log.path.rpartition("/")[2] for log in logs[:3]) + when(len(logs) > 3, " ...")


def _counted(launches: Launches, label: str | None, capability: str | None) -> Counted:
    known = np.asarray(~np.isnan(launches.counters.values).all(axis=0))
    names = list(compress(launches.counters.names, known))
    of_profilers = Counter(launches.profilers[name] for name in names)
    profiler = max(of_profilers, key=of_profilers.__getitem__, default="")
    device = device_of(label, capability, names, profiler, launches.rows.kernel, _that_hold(launches))
    launches = replace(launches, marks=_marks(launches, profiler, device))
    definition = _definition(device, profiler, names)
    timed, time_from, warnings = times.recover(launches, definition)
    if time_from is None and np.isnan(timed.rows.time_s).any():
        from eprof.costs.estimate import sm_cycles_per_s

        timed, time_from = times.by_cycles(timed, definition, mapped(sm_cycles_per_s, device.name))
    if time_from is None:
        timed, time_from = times.of_a_second(timed, definition)
    messages = [
        *warnings,
        *checks.check(timed, definition),
        *_unread(launches, names, profiler),
        *_unused(definition, names, profiler),
        *_unnamed(device, definition.processor == CPU),
    ]
    device = replace(device, told=_traits(Sheet(timed, definition)))
    return Counted(device, timed, definition, time_from, tuple(messages))


def _that_hold(launches: Launches) -> frozenset[str]:
    """The compute capabilities whose multiprocessors hold what launches say that these do; empty: they do not say.

    Of these those that have a board with as many multiprocessors as the launches tell, if there is one.
    """
    if any(name not in launches.counters for name in HELD):
        return frozenset()
    told = launches.counters.only(HELD) / launches.rows.launches[:, None]
    alike = [that_hold(*row) for row in told.tolist() if all(number > 0 for number in row)]
    may_be = frozenset.intersection(*alike) if alike else frozenset[str]()
    sms = set(launches.counters[SM_COUNT] / launches.rows.launches) if SM_COUNT in launches.counters else set()
    on_boards = (capabilities(sheet.name) for sheet in sheets() if sheet.sms in sms)
    return may_be.intersection(chain.from_iterable(on_boards)) or may_be


def _traits(sheet: Sheet) -> Traits:
    """What counters tell of a device's board: multiprocessors, DRAM's clock, its peak by that, else its utilisation."""
    sms = sheet.multiprocessors()
    at_clock, moved, at_peak_s = map(sheet.look_up, DRAM_PEAK)
    peaks = np.empty(0)
    if at_clock is not None:
        peaks = at_clock.values / 1e9
    elif moved is not None and at_peak_s is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            peaks = moved.values / at_peak_s.values / 1e9
        # Time that some launches do not tell would make a larger peak of the bytes of all.
        peaks = peaks[((moved.marks | at_peak_s.marks) & MISSING) == 0]
    clock = sheet.look_up(DRAM_CLOCK)
    clocks = np.empty(0) if clock is None else clock.values / 1e9
    return Traits(only({round(number) for number in sms[~np.isnan(sms)].tolist()}), _middle(peaks), _middle(clocks))


def _middle(numbers: Floats) -> float | None:
    known = numbers[np.isfinite(numbers)]
    return median(known.tolist()) if len(known) else None  # that of numpy imports numpy.ma


def _definition(device: Device, profiler: str, counter_names: Sequence[str]) -> Definition:
    """What a profiler's counters mean on a device; what is common to those that it may be, where it is not known."""
    if counter_names and device.may_be:
        return _common(profiler, device.may_be)
    if counter_names and device.capability:
        return counters.find(profiler, device.capability)
    return without_counters()


@lru_cache(maxsize=8)
def _common(profiler: str, capabilities: tuple[str, ...]) -> Definition:
    return common([counters.find(profiler, capability) for capability in capabilities])


def _unread(launches: Launches, counter_names: Sequence[str], profiler: str) -> Iterator[str]:
    """Yields a warning if other profilers' counters are in the logs, not read as their names may mean other things."""
    others = sorted({launches.profilers[name] for name in counter_names} - {profiler})
    if others:
        yield (
            f"Only the counters of {profiler} are counted, and those of {listed(others)} are not; report on logs of "
            "different profilers one by one."
        )


def _unused(definition: Definition, counter_names: Sequence[str], profiler: str) -> Iterator[str]:
    """Yields a warning on a CPU's counters that its definition does not use, with the definitions that use most."""
    unused = counters.names_in_use(profiler).intersection(counter_names) - definition.counted
    if definition.processor != CPU or not unused:
        return
    of_profiler = [each for each in counters.definitions() if each.profiler == profiler]
    uses = {each.capabilities[0]: len(unused & each.counted) for each in of_profiler}
    most = max(uses.values())
    if not most:
        return
    best = [capability for capability, number in uses.items() if number == most]
    names = few([f"`{name}`" for name in sorted(unused)], 3, "events")
    remedy = "Say which CPU it is (--capability)."
    if len(best) <= _NAMED:
        remedy = f"If this CPU is such a one, --capability uses most of it: {few(best, _NAMED)}."
    yield f"{capital(UNUSED)} with {definition.name}: {names}. {remedy}"


def _unnamed(device: Device, of_cpu: bool) -> Iterator[str]:
    """Yields a note if the device may be one of several, which says how to name it."""
    if not device.may_be:
        return
    told = f"--capability {device.may_be[0]}"
    if of_cpu:
        yield "The logs do not name the CPU: what all count alike is counted. Say which it is (--capability)."
        return
    alike = f"{listed(device.may_be, 'or')}: what these count alike is counted. Say which it"
    numbers = [float(capability) for capability in device.may_be]
    yield (
        f"The logs do not name the GPU, which may have compute capability {alike} has ({told}), and for joules what it "
        f'is (--costs "{example(min(numbers), max(numbers))}").'
    )


def _marks(launches: Launches, profiler: str, device: Device) -> Columns:
    """The marks of counters: lower bounds as the profiler knows them, and SIMULATED on a simulated device."""
    marks = launches.marks
    if (lower_bounds := signs_of(profiler).lower_bounds) is not None:
        marks = lower_bounds(launches)
    if device.capability == counters.SIMULATED:
        marks = Columns(marks.names, marks.values | np.int8(Mark.SIMULATED))
    return marks
