"""`Profile`: what a program did, counted. `Energy`: a profile with prices on it, and its document `eprof.profile/1`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, Columns, Floats, Ints, Texts
from eprof.base.brief import Brief, Result, brief
from eprof.base.cpus import UNNAMED, nearest_costs
from eprof.base.errors import CostError, LogError, MeterError, UsageError
from eprof.base.gpus import capability_of_label
from eprof.base.known import mapped, only
from eprof.base.marks import Mark, names
from eprof.base.nouns import Nouns
from eprof.base.text import few, listed, phrase, printable, when
from eprof.base.vocabulary import COUNTS, CPU, PARTS, RANDOM
from eprof.costs import ESTIMATED, NONE, Costs, CostTable, for_device
from eprof.costs import load as load_costs
from eprof.costs.datasheets import example
from eprof.counts import checks, counters, counts, times
from eprof.counts.counts import Counts
from eprof.counts.definition import SM_COUNT, Definition, common, without_counters
from eprof.counts.shapes import with_traces
from eprof.energy.attribution import FAMILIES, Split, unpriced
from eprof.energy.clocks import Clocks, clocks_of, with_active_cycles
from eprof.energy.clocks import priced as priced_at
from eprof.energy.limits import Limits
from eprof.energy.limits import priced as within_limits
from eprof.energy.metering import SAME, Metered
from eprof.energy.simulated import Modelled, has_modelled_time, model_time
from eprof.logs.join.ranks import PARTS as GROUPED_PARTS
from eprof.logs.rows.log import CORES, SOCKETS, Idle, KernelRows, Launches, Log, TableRows
from eprof.logs.runs import Measured, Run, metered_in
from eprof.profile.components import time_by_component
from eprof.profile.device import Device, capabilities_of, device_of
from eprof.profile.grouping import Grouping, merged, parse
from eprof.profile.rooflines.work import intensity_of
from eprof.profilers import advice, signs_of

if TYPE_CHECKING:
    import pandas as pd

    from eprof.profile.whatif import Answer

SCHEMA = "eprof.profile/1"


class Counted(Brief, Struct, frozen=True, eq=False):
    """One device's launches with the definition that reads them."""

    device: Device
    launches: Launches
    definition: Definition
    time_from: str | None
    warnings: tuple[str, ...]


class Profile(Result, Struct, frozen=True, eq=False):
    """Counts and times of one program, from one or more logs. `energy` puts prices on it.

    total_s: the time of all kernels together, where `--time SECONDS` tells it and nothing tells how they share it.
    whole: whether all kernels of the logs are looked at. timeline: the launches one by one, where a log tells when each
    ran. parts: what rows were split by ("rank", "stream", "nvtx"); None: nothing, or by operator, as the log has it.
    idle: how long no kernel ran between the first and the last of the only trace; None: no log tells it of all.
    copies_s: how long copies took, of the only log that tells it; 0: none does, or several. has_given_time: whether the
    user gave times, which tell nothing of clocks.
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
    _books: dict[str, Counts] = field(default_factory=dict)

    def counts(self, books: str = "served") -> Counts:
        """Instructions by class and bytes by level, (n_kernels, n_classes), in the books "served" or "accessed"."""
        if books not in self._books:
            parts = [counts.count(part.launches, part.definition, books) for part in self.counted]
            self._books[books] = with_traces(counts.concat(parts), self.logs)
        return self._books[books]

    def energy(
        self,
        costs: str | CostTable | None = None,
        setting: str | None = None,
        efficiency: float | None = None,
        to_meter: bool | None = None,
        metered_j: float | None = None,
        by_component: bool = False,
        estimate: bool = True,
    ) -> "Energy":
        """The profile priced with a cost table (a name, a file or a loaded one) at a DVFS setting ("852/924", MHz).

        Without `costs`, the table that is made for the profiled GPU is taken; if there is none, the estimate of its
        data sheet, unless `estimate` is False. "none": nothing is priced and every energy is unknown. Where logs are of
        several GPUs, each has its own prices (`Energy.gpus`). Without
        `setting`, it is that nearest to the clocks of the run, if these are known and the table serves this GPU, else
        the table's default. `efficiency`: the fraction of the peak that kernels on a
        simulated device are taken to reach (`simulated`). by_component: also model each kernel's time by component,
        which then is the time of kernels that have none (`energy/components.py`).

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
                self._check_metered(metered_j)
            made = [
                gpu.energy(costs, setting, efficiency if gpu.is_simulated else None, False, estimate=estimate)
                for gpu in gpus
            ]
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

    def _check_metered(self, metered_j: float | None) -> None:
        from eprof.profile.metering import meter_of

        meter_of(self, metered_j)

    def _to_meter(self, predicted: "Energy", metered_j: float | None = None) -> "Energy":
        from eprof.profile.metering import held_to, meter_of, shape_of

        meter = meter_of(self, metered_j)
        if predicted.costs is None:
            predicted = self._predicted(shape_of(self, meter), None, None)
        return held_to(predicted, meter)

    def _to_meter_by_default(self, predicted: "Energy") -> "Energy":
        """The profile scaled if no table is made for its GPU and a meter was read; as it is where that cannot be."""
        has_own_table = predicted.table is not None and self.is_served_by(predicted.table)
        if has_own_table or self.measured is None:
            return predicted
        try:
            return self._to_meter(predicted)
        except (CostError, MeterError) as err:
            return replace(predicted, notes=(*predicted.notes, f"Not scaled to the meter: {err}"))

    def _predicted(
        self, costs: str | CostTable | None, setting: str | None, efficiency: float | None, by_component: bool = False
    ) -> "Energy":
        if costs is None and self.priced_as is not None:
            costs, setting = self.priced_as.pricing("costs"), setting or self.priced_as.pricing("setting")
        if efficiency is None and self.priced_as is not None:
            efficiency = self.priced_as.pricing("efficiency")
        table = self._table(costs)
        table = None if table is None else table.in_sockets(self.sockets or self.socket_share(table) or 1)
        if table is None and setting is not None:
            raise UsageError(f"--setting {setting} is one of a cost table, and none is chosen: name it with --costs.")
        if table is None and by_component:
            raise UsageError("--time components needs a cost table that describes the GPU: name it with --costs.")
        if table is None:
            counted = counts.with_accessed(self.counts(), self.counts("accessed"))
            return Energy(self, None, counted.chosen(_order(counted.rows, None)), None, total_s=self.total_s)
        priced = self.for_this_gpu(self._at(table, setting), table)
        counted, modelled, notes, total_s = self._timed(priced, efficiency, by_component)
        counts_alone = Energy(
            self, None, counted, None, modelled, tuple(notes), table, total_s=total_s, by_component=by_component
        )
        return counts_alone.priced(priced)

    def _timed(
        self, priced: Costs, efficiency: float | None, by_component: bool
    ) -> tuple[Counts, Modelled | None, Sequence[str], float | None]:
        """The profile's counts with modelled times, what was modelled, notes, and the total time if no share is
        known.

        Where every kernel has a time then, the modelled ones are made to add up to what the total leaves for them.
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
        name = _gpu_of(self.counted[0])
        return for_device(name) if name else None

    def estimated(self) -> CostTable:
        """The estimated cost table for the GPU of the profile; that of its compute capability where it has no name.

        Raises CostError: the logs tell neither, or no data sheet of that GPU is known.
        """
        from eprof.costs.estimate import estimated, of_capability

        gpu = self.counted[0].device
        if gpu.name is not None and capability_of_label(gpu.name) is None:
            return estimated(gpu.name)
        if gpu.capability is not None:
            return of_capability(gpu.capability, gpu.name, gpu.sms)
        raise CostError(
            "--costs estimated is for one GPU, and the logs do not name the GPU; name it, such as "
            '--costs "estimated:RTX 4090".'
        )

    def _estimated_by_default(self) -> CostTable | None:
        """The estimated table where no table is made for the profile's GPU; None where nothing tells what it is."""
        from eprof.costs.estimate import of_capability

        if self.is_of_cpu:
            # What a meter saw is better known than how another CPU's prices would split it.
            return None if self.measured else mapped(load_costs, nearest_costs(UNNAMED))
        gpu = self.counted[0].device
        with suppress(CostError):
            return self.estimated()
        with suppress(CostError):
            return of_capability(gpu.capability or "", gpu.name, gpu.sms)
        return None

    def on_this_gpu(self, table: CostTable) -> CostTable:
        """The cost table as it holds on the profile's board."""
        return table.on(_gpu_of(self.counted[0]))

    def by_gpu(self) -> tuple["Profile", ...]:
        """The profile of each GPU, with what its own logs tell; the profile itself where it is of one, or all alike."""
        gpus: dict[tuple[str | None, str | None], list[Counted]] = {}
        for part in self.counted:
            gpus.setdefault((part.device.name, part.device.capability), []).append(part)
        return tuple(map(self._of, gpus.values())) if len(gpus) > 1 else (self,)

    def _of(self, counted: Sequence[Counted]) -> "Profile":
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
                is_own = np.array([label in own for label in counted_there.rows.device], dtype=bool)
                books[name] = counted_there.chosen(np.flatnonzero(is_own))
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
        """The words for what ran in the profile."""
        return self.counted[0].definition.nouns

    def slowed(self, factor: float) -> "Profile":
        """The same counts in other times: each kernel's times `factor`."""
        counted = []
        for part in self.counted:
            rows = replace(part.launches.rows, time_s=factor * part.launches.rows.time_s)
            counted.append(replace(part, launches=replace(part.launches, rows=rows)))
        total_s = None if self.total_s is None else factor * self.total_s
        return replace(self, counted=tuple(counted), total_s=total_s, _books={})

    def is_of(self, table: CostTable) -> bool:
        """Whether a table was made for the profiled GPU."""
        return all(part.device.name is not None and table.is_for(part.device.name) for part in self.counted)

    def is_served_by(self, table: CostTable) -> bool:
        """Whether a table was made for the profiled GPU, or lists it among the boards that it serves too."""
        return all(map(table.serves, map(_gpu_of, self.counted)))

    def _at(self, table: CostTable, setting: str | None) -> Costs:
        if setting is not None or self.clocks is None or not self.is_served_by(table):
            return table.at(setting)
        return priced_at(table, self.clocks)

    def for_this_gpu(self, priced: Costs, table: CostTable) -> Costs:
        """The costs as they are for the GPU they were made for; on another, every price is ASSUMED, with a note."""
        profiled = self.counted[0].device.name or f"a {self.nouns.processor} that the logs do not name"
        if self.sockets is None and (share := self.socket_share(table)):
            whole_w = priced.constant_power_w / share
            shared = (
                f"Constant power is {priced.constant_power_w:.3g} W, the share of {self.cores:.3g} of "
                f"{table.constant.cores} cores in the {whole_w:.3g} W of the socket: assumed, as if others kept "
                "the rest busy."
            )
            if share > 1:
                shared = (
                    f"Constant power is {priced.constant_power_w:.3g} W, {share:.3g} times that of a socket of "
                    f"{table.constant.cores} cores, as {self.cores:.3g} CPUs were busy: assumed, for the log does not "
                    "tell its sockets."
                )
            marks = priced.constant_marks | Mark.ASSUMED
            priced = replace(priced, constant_marks=marks, notes=(*priced.notes, shared))
        elif table.constant.is_per_socket and self.sockets is None:
            whole = "Nothing tells how many sockets were in use: constant energy is that of one, with all of its cores."
            marks = priced.constant_marks | Mark.ASSUMED
            priced = replace(priced, constant_marks=marks, notes=(*priced.notes, whole))
        if table.is_for(profiled):
            return priced
        note = table.assumption or (
            f"The costs are those of {table.device}, the counts are from {profiled}: "
            f"every energy rests on the assumption that {SAME}."
        )
        if self.is_of_cpu:
            note += f" Constant energy is the {priced.constant_power_w:g} W of the one times the time of the other."
        paying = {name: charge for name, charge in priced.charges.items() if charge.pays}
        charges = {name: replace(charge, marks=charge.marks | Mark.ASSUMED) for name, charge in paying.items()}
        return replace(
            priced,
            marks=priced.marks | Mark.ASSUMED,
            constant_marks=priced.constant_marks | Mark.ASSUMED,
            charges={**priced.charges, **charges},
            notes=(*priced.notes, note),
        )

    @property
    def measured(self) -> Measured | None:
        """What a meter saw of the profiled run: in a run directory, or in the logs; None where none was read."""
        seen = mapped(Run.measured, self.run)
        return seen or metered_in([part.launches for part in self.counted])

    @property
    def limit_w(self) -> float | None:
        """The power limit of the profiled boards, as their run directory or the program's output tells it."""
        told = {log.limit_w for log in self.logs if log.limit_w}
        return mapped(attrgetter("limit_w"), self.run) or only(told)

    @property
    def sockets(self) -> int | None:
        """How many processors the profiled program used, as its logs tell; None: they do not."""
        told = self._told(SOCKETS)
        return int(told[0].max()) if told else None

    @property
    def cores(self) -> float | None:
        """How many cores the profiled program kept busy: as a bare run measured or its logs tell; None: they do not.

        In a simulation that is one.
        """
        measured = self.run.cores if self.run is not None else None
        simulated = 1.0 if signs_of(self.counted[0].definition.profiler).runs_one_core else None
        if measured or simulated:
            return measured or simulated
        numbers, time_s = self._told(CORES) or (np.empty(0), np.empty(0))
        is_timed = time_s > 0
        return float(np.average(numbers[is_timed], weights=time_s[is_timed])) if is_timed.any() else None

    def _told(self, counter: str) -> tuple[Floats, Floats] | None:
        """What the profile's logs have for a counter of processors or cores, and each row's seconds; None: nothing."""
        parts = [part.launches for part in self.counted if counter in part.launches.counters]
        if not parts:
            return None
        numbers = np.concatenate([part.counters[counter] for part in parts])
        time_s = np.concatenate([part.rows.time_s for part in parts])
        is_told = numbers > 0
        return (numbers[is_told], time_s[is_told]) if is_told.any() else None

    def socket_share(self, table: CostTable) -> float | None:
        """The share of a socket that the program kept busy; None where the whole socket is known to be its own.

        Of a metered program it is: the meter sees the socket.
        """
        if not table.constant.is_per_socket or not table.constant.cores or not self.cores or self.measured is not None:
            return None
        return self.cores / table.constant.cores

    @property
    def is_of_cpu(self) -> bool:
        """Whether a CPU was profiled, and no GPU."""
        return self.counted[0].definition.processor == CPU

    def is_named_otherwise(self, table: CostTable) -> bool:
        """Whether the profile's logs name a GPU that the cost table does not serve. Logs of ncu in CSV name none."""
        named = [part.device for part in self.counted if capability_of_label(part.device.label or "") is None]
        return any(device.name is not None and not table.serves(device.name) for device in named)

    def __repr__(self) -> str:
        """What it is about; `energy` puts prices on it."""
        kernels = sum(len(part.launches.rows) for part in self.counted)
        devices = listed(
            list(dict.fromkeys(part.device.name or f"a {self.nouns.processor} not named" for part in self.counted))
        )
        return brief(Profile, f"of {self.title!r}: {kernels} {self.nouns.kernels} on {devices}")


def _gpu_of(counted: Counted) -> str:
    """The name of the profile's GPU that tables go by: "CC 8.0" where its log does not name it; else empty."""
    device = counted.device
    return device.name or phrase("CC {}", device.capability)


def build(
    logs: Sequence[Log],
    launches: Launches,
    *,
    capability: str | None = None,
    time: Sequence[str] = (),
    profiler: str | None = None,
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

    capability: overrides what the device names say ("3.5"). profiler: whose counters they are; None: as their names
    tell, device by device. time: `--time` values, "SECONDS" or "KERNEL=SECONDS". whole: whether these are all kernels.
    program_s: the time of the program without a profiler, which did `everything`: of these launches, if it is None.
    Raises DefinitionError if a device's capability is not known or has no definition, LogError if there is no kernel.
    """
    if not len(launches.rows):
        raise LogError("No kernel is left to report on: the logs hold none, or -k/--kernel-name matches none.")
    launches = times.given(launches, time)
    labels = list(dict.fromkeys(launches.rows.device))
    counted = [
        _counted(launches.chosen(launches.rows.device == label), label, capability, profiler) for label in labels
    ]
    if len(counted) == 1 and (whole_s := times.total(time) or program_s):
        counted = [_by_share(counted[0], whole_s, launches if times.total(time) else everything or launches)]
    shared, total_s = _share(counted, times.total(time), time)
    idle = [log.idle for log in logs if log.idle is not None and whole]
    copies_s = [log.copies_s for log in logs if log.copies_s and whole]
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
        idle=only(idle),
        copies_s=only(copies_s) or 0.0,
    )


def _by_share(counted: Counted, whole_s: float, everything: Launches) -> Counted:
    """The profile with times that are parts of the program's, where the definition tells how to share that out."""
    launches, share = times.by_share(counted.launches, counted.definition, whole_s, everything)
    if share is None:
        return counted
    how = f"{whole_s:.4g} s of the whole program, run without a profiler, shared out by {share}"
    return replace(counted, launches=launches, time_from=how)


def _share(
    counted: Sequence[Counted], total_s: float | None, specs: Sequence[str]
) -> tuple[tuple[Counted, ...], float | None]:
    """Share `total_s` out over the profile's kernels, if the user gave it; returned too where nothing tells how to.

    Raises UsageError: several devices, as nothing tells whose time it is, or a total that contradicts other times.
    """
    if total_s is None:
        return tuple(counted), None
    if len(counted) > 1:
        raise UsageError("--time SECONDS: the logs are of several devices; give --time KERNEL=SECONDS, or a trace.")
    only = counted[0]
    launches, how = times.share(only.launches, total_s, specs, only.time_from)
    time_from = how or f"given by --time for all {only.definition.nouns.kernels} together"
    return (replace(only, launches=launches, time_from=time_from),), (None if how else total_s)


def _profile_title(logs: Sequence[Log]) -> str:
    commands = list(dict.fromkeys(log.command for log in logs if log.command))
    if len(commands) == 1:
        return commands[0]
    if commands:
        return few(commands, 1)
    return ", ".join(log.path.rpartition("/")[2] for log in logs[:3]) + when(len(logs) > 3, " ...")


def _counted(launches: Launches, label: str | None, capability: str | None, profiler: str | None) -> Counted:
    known = np.asarray(~np.isnan(launches.counters.values).all(axis=0))
    names = list(compress(launches.counters.names, known))
    profiler = profiler or _profiler_of(launches, names)
    device = replace(device_of(label, capability, names, profiler), sms=_multiprocessors(launches))
    launches = replace(launches, marks=_marks(launches, profiler, device))
    definition = _definition(device, profiler) if names else without_counters()
    timed, time_from, warnings = times.recover(launches, definition)
    if time_from is None and np.isnan(timed.rows.time_s).any():
        from eprof.costs.estimate import sm_cycles_per_s

        timed, time_from = times.by_cycles(timed, definition, mapped(sm_cycles_per_s, device.name))
    messages = [
        *warnings,
        *checks.check(timed, definition),
        *_unread(launches, names, profiler),
        *_unused(definition, names, profiler),
        *_open(device, definition.processor == CPU),
    ]
    return Counted(device, timed, definition, time_from, tuple(messages))


def _multiprocessors(launches: Launches) -> int | None:
    """How many multiprocessors the device of these launches has, as its log tells; None: it does not."""
    if SM_COUNT not in launches.counters:
        return None
    numbers = launches.counters[SM_COUNT] / launches.rows.launches  # counters are added up over launches
    return only({round(number) for number in numbers[~np.isnan(numbers)].tolist()})


def _definition(device: Device, profiler: str) -> Definition:
    """What a profiler's counters mean on a device; what is common to those that it may be, where it is not known."""
    if device.may_be:
        return common([counters.find(profiler, capability) for capability in device.may_be])
    return counters.find(profiler, device.capability) if device.capability else without_counters()


def _unread(launches: Launches, counter_names: Sequence[str], profiler: str) -> Iterator[str]:
    """What a profile does not count: one definition reads one profiler, as names may mean another thing elsewhere."""
    others = sorted({launches.profilers[name] for name in counter_names} - {profiler})
    if others:
        yield (
            f"Only the counters of {profiler} are counted, and those of {listed(others)} are not; report on logs of "
            "different profilers one by one."
        )


def _unused(definition: Definition, counter_names: Sequence[str], profiler: str) -> Iterator[str]:
    """What a CPU counted, and no word of its definition is made of; and which definitions would use most of it."""
    known = counters.names_in_use(profiler).intersection(counter_names) if definition.processor == CPU else frozenset()
    unused = known - definition.counted
    if not unused:
        return
    of_profiler = [each for each in counters.definitions() if each.profiler == profiler]
    uses = {each.capabilities[0]: len(unused & each.counted) for each in of_profiler}
    most = max(uses.values())
    best = [capability for capability, number in uses.items() if number == most > 0]
    names = few([f"`{name}`" for name in sorted(unused)], 3, "events")
    remedy = phrase(" If this CPU is such a one, --capability uses most of it: {}.", few(best, 4))
    yield f"Counted, and not used with {definition.name}: {names}.{remedy}"


def _open(device: Device, of_cpu: bool) -> Iterator[str]:
    """That only what is counted alike on several processors is known, and how to say which it is."""
    if not device.may_be:
        return
    alike = f"{listed(device.may_be, 'or')}: what these count alike is counted. Say which it"
    told = f"--capability {device.may_be[0]}"
    if of_cpu:
        yield f"The logs do not name the CPU, which may be one of {alike} is ({told})."
        return
    numbers = [float(capability) for capability in device.may_be]
    yield (
        f"The logs do not name the GPU, which may have compute capability {alike} has ({told}), and for joules what it "
        f'is (--costs "estimated:{example(min(numbers), max(numbers))}").'
    )


def _profiler_of(launches: Launches, counter_names: Sequence[str]) -> str:
    """The profiler that counted most of these counters; "" if there are none."""
    profilers = Counter(launches.profilers[name] for name in counter_names)
    return max(profilers, key=profilers.__getitem__, default="")


def _marks(launches: Launches, profiler: str, device: Device) -> Columns:
    """The marks of counters, with those that the profiler and the device give to all of them."""
    lower_bounds = signs_of(profiler).lower_bounds
    marks = launches.marks if lower_bounds is None else lower_bounds(launches)
    if device.capability != counters.SIMULATED:
        return marks
    return Columns(marks.names, marks.values | np.int8(Mark.SIMULATED))


class Energy(Result, Struct, frozen=True, eq=False, dict=True):
    """A profile priced at one setting; kernels with the most energy (else time) come first.

    `costs`, `split` and `table` are None where no cost table is in force. modelled: how the times of simulated kernels
    were. questions, grouping: what `asking` and `grouped` added to the document. total_s: the time of all kernels,
    where it is known of them together only; those without a time took what it leaves of it. metered: how the table was
    scaled to a meter, if it was. by_component: whether time by component was asked for. gpus: where logs are of several
    GPUs, the profile of each at its own prices, the largest energy first; `costs` and `table` are None then.
    """

    profile: Profile
    costs: Costs | None
    counts: Counts
    split: Split | None
    modelled: Modelled | None = None
    notes: tuple[str, ...] = ()
    table: CostTable | None = None
    questions: tuple[str, ...] = ()
    grouping: Grouping | None = None
    total_s: float | None = None
    metered: Metered | None = None
    by_component: bool = False
    gpus: tuple["Energy", ...] = ()

    def __repr__(self) -> str:
        """What it is about, with its joules; `to_frame` shows those of each kernel."""
        tables = [f"{gpu.costs.name} at {gpu.costs.setting.label}" for gpu in self.each if gpu.costs is not None]
        table = ", ".join(tables) or "no cost table"
        joules = phrase("{:.3g} J, ", self.energy_j)
        kernels = f"{len(self.counts.rows)} {self.counts.nouns.kernels}"
        return brief(Energy, f"of {self.profile.title!r}: {joules}{kernels}, {table}")

    @property
    def each(self) -> tuple["Energy", ...]:
        """The priced profile of each GPU with prices of its own; the profile itself, where it has one table."""
        return self.gpus or (self,)

    def check_one_gpu(self, command: str) -> None:
        """Raises UsageError: GPUs have prices of their own, and `command` is of one."""
        if self.gpus:
            names = listed(list(dict.fromkeys(str(part.device.name) for part in self.profile.counted)))
            raise UsageError(f"{command} is of one GPU, and these logs are of {names}: give the logs of one of them.")

    def places_of(self, gpu: "Energy") -> Ints:
        """Where the rows of one of `each` are; they have the same order there."""
        own = set(gpu.counts.rows.device.tolist())
        return np.flatnonzero([label in own for label in self.counts.rows.device.tolist()])

    @property
    def paying(self) -> frozenset[str]:
        """The words that cost something on some GPU of the profile."""
        tables = [gpu.costs for gpu in self.each if gpu.costs is not None]
        return frozenset(word for costs in tables for word, charge in costs.charges.items() if charge.pays)

    @property
    def energy_j(self) -> float | None:
        """All energy of the kernels that is known, in J: a lower bound where `lacks_some`. None: nothing is known."""
        from eprof.profile.totals import joules_of

        return joules_of(self)["total"]

    @property
    def time_s(self) -> float | None:
        """The time of all kernels in s, as far as it is known; None: of none."""
        from eprof.profile.totals import time_of

        return time_of(self)

    def what_if(self, question: str) -> "Answer":
        """A modelled answer to "pi0=0.5", "setting=612/924,dram=-20%", "race"... (whatif.py). Raises EprofError."""
        from eprof.profile.whatif import ask

        return ask(self, question)

    def asking(self, *questions: str) -> "Energy":
        """The priced profile with what-if questions, whose answers stand in its document. Raises EprofError."""
        for question in questions:
            self.what_if(question)
        return replace(self, questions=(*self.questions, *questions))

    def grouped(self, *rules: str) -> "Energy":
        """The priced profile with its kernels in groups: "REGEX=NAME" each, or "device", "rank", "stream", "nvtx"...

        "rank", "stream", "nvtx" and "mark" are for logs that were loaded with `parts`. Raises UsageError.
        """
        grouping = parse(rules)
        if grouping is not None and grouping.by in GROUPED_PARTS and self.counts.rows.part is None:
            raise UsageError(f'To group by {grouping.by}, load the logs with parts="{grouping.by}".')
        return replace(self, grouping=grouping)

    def by(self, *rules: str) -> "Energy":
        """The priced profile with a row for each group in the place of kernels, as `grouped`; without rules, itself."""
        grouping = self.grouped(*rules).grouping
        if grouping is None:
            return self
        counted, split, _ = merged(self.counts, self.split, grouping.names(self.counts.rows))
        nouns = replace(counted.nouns, kernel="group")
        return replace(self, counts=replace(counted, nouns=nouns), split=split, grouping=None)

    def whole(self) -> tuple["Energy", np.ndarray]:
        """The priced profile with the parts (ranks, streams, ranges) of each kernel added up, and where rows went."""
        if self.counts.rows.part is None:
            return self, np.arange(len(self.counts.rows))
        counted, split, codes = merged(self.counts, self.split)
        order = _order(counted.rows, split)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        split = mapped(Split.chosen, split, order)
        gpus = tuple(gpu.whole()[0] for gpu in self.gpus)
        return replace(self, counts=counted.chosen(order), split=split, grouping=None, gpus=gpus), place[codes]

    def priced(self, costs: Costs) -> "Energy":
        """The same profile with other prices, held to what its boards may draw."""
        made = replace(self, costs=costs)
        split, held_costs = within_limits(self.counts, costs, made.limits)
        order = _order(self.counts.rows, split)
        return replace(made, costs=held_costs, counts=self.counts.chosen(order), split=split.chosen(order))

    @cached_property
    def limits(self) -> Limits:
        """What the boards of the profile's kernels may draw."""
        from eprof.profile.totals import limits_of

        return limits_of(self)

    def only(self, places: np.ndarray) -> "Energy":
        """The priced profile of some kernels, by their places."""
        return replace(
            self,
            counts=self.counts.chosen(places),
            split=mapped(Split.chosen, self.split, places),
            grouping=None,
            questions=(),
            total_s=self._total_of(places),
            metered=None,
            gpus=tuple(gpu.only(_among(places, self.places_of(gpu))) for gpu in self.gpus),
        )

    def _total_of(self, places: np.ndarray) -> float | None:
        """What the total leaves to some kernels; not known where one without a time is not among them."""
        times_s = np.delete(self.counts.rows.time_s, places)
        if self.total_s is None or np.isnan(times_s).any():
            return None
        return self.total_s - float(times_s.sum())

    @property
    def shares_socket(self) -> bool:
        """Whether constant power is the share of the cores that the program kept busy, which is assumed."""
        return self.table is not None and self.profile.socket_share(self.table) is not None

    @property
    def is_timed(self) -> bool:
        """Whether the profile's time of all kernels is known in full: of each of them, or of all together."""
        rows = self.counts.rows
        lacks = np.isnan(rows.time_s) | ((rows.time_marks & int(Mark.MISSING)) != 0)
        return self.total_s is not None or not lacks.any()

    @property
    def lacks_some(self) -> bool:
        """Whether some work of the priced profile was not counted, or has no price."""
        return self.split is not None and bool((self.split.row_marks & int(Mark.MISSING)).any())

    @property
    def measured(self) -> Measured | None:
        """What a meter saw while the profiled program ran; None where none was read."""
        return self.profile.measured

    @property
    def measured_j(self) -> float | None:
        """The joules that a meter saw, or that the user says it saw."""
        if self.metered is not None:
            return self.metered.meter.joules
        return None if self.measured is None else self.measured.joules

    @property
    def time_from(self) -> str | None:
        """Where the profile's times come from, in words; None if they are those of the logs."""
        sources = [*(part.time_from for part in self.profile.counted), self.modelled and self.modelled.how]
        return "; ".join(dict.fromkeys(source for source in sources if source)) or None

    @cached_property
    def warnings(self) -> list[str]:
        """Everything the user should know of the profile, once each: from logs, counts, checks and costs."""
        from eprof.profile.totals import held_notes

        sentences = []
        if self.measured is not None and self.metered is None:
            sentences.append(self._against(self.measured))
        for gpu in self.each:
            sentences += gpu._of_prices(self.gpus)
        if np.isnan(self.counts.rows.time_s).any():
            sentences.append(self._no_time())
        sentences += self._time_in_part()
        if self.grouping is not None and (unused := self.grouping.unused(self.counts.rows)):
            sentences.append(f"No {self.counts.nouns.kernel} is in the group {listed(unused, 'or')} of --group.")
        # What bears on every number stands first: a terminal shows only the first few.
        for part in self.profile.counted:
            sentences += part.warnings
        sentences += held_notes(self)
        return list(dict.fromkeys([*sentences, *self.notes, *self.counts.warnings, *self.profile.warnings]))

    def _against(self, measured: Measured) -> str:
        if self.split is None:
            return f"Measured: {measured.words}."
        return f"Measured: {measured.words}. It may differ from the prediction: {measured.reasons()}."

    def _of_prices(self, gpus: Sequence["Energy"]) -> list[str]:
        """What the profile's prices rest on and lack. gpus: those beside which it stands, with prices of their own."""
        if self.costs is not None:
            return [*self.costs.notes, *self._unpriced()]
        if not gpus:
            return [self._no_costs()]
        names = listed(
            sorted({part.device.name or f"a {self.profile.nouns.processor}" for part in self.profile.counted})
        )
        return [
            f"No cost table and no data sheet is known for {names}: its energy is missing, and totals are lower bounds."
        ]

    def _no_costs(self) -> str:
        known = {part.device.name for part in self.profile.counted if part.device.name}
        if self.profile.is_of_cpu:
            why = "No cost table is made for this CPU" if known else "The logs do not name the CPU"
            return (
                f"{why}, so no energy is predicted: name a table with --costs (sapphirerapids or icelake-sp), or make "
                "one (eprof calibrate --cpu, eprof fit)."
            )
        named = {name for name in known if capability_of_label(name) is None}
        nouns = self.profile.nouns
        unnamed = f"The logs do not name the {nouns.processor}"
        whose = f"No cost table is made for {listed(sorted(known))}" if known else unnamed
        estimate = "--costs estimated" if named else '--costs "estimated:RTX 4090", with the name of the GPU'
        return (
            f"{whose}, so no energy is shown. Three ways to joules: a table of its own (eprof calibrate or eprof fit); "
            "joules that a meter saw, split by the counts (--energy 12J, or eprof run and --to-meter); a rough "
            f"estimate ({estimate})."
        )

    def _no_time(self) -> str:
        rows = self.counts.rows
        unknown = rows.chosen(np.isnan(rows.time_s)).n_kernels
        kernels = self.counts.nouns.kernels
        if self.total_s is not None:
            return (
                f"--time {self.total_s:g} is the time of all {kernels} together, and nothing tells how {unknown} of "
                "them share it: their own time and constant energy are not known; give --time KERNEL=SECONDS, or a "
                "trace."
            )
        devices = [counted.device for counted in self.profile.counted]
        known = [(device.capability,) if device.capability else capabilities_of(device.label) for device in devices]
        ways = "perf stat -e duration_time, or LIKWID"
        if not self.profile.is_of_cpu:
            ways = advice.commands(advice.TIMES, chain.from_iterable(known))
        whose = f"{unknown} of {rows.n_kernels} {kernels} is not known, nor is their"
        if rows.n_kernels == 1:
            whose = f"the {self.counts.nouns.kernel} is not known, nor is its"
        bound = when(self.split is not None, ", and nothing bounds the total")
        return f"The time of {whose} constant energy{bound}; give times along with the log ({ways}), or --time."

    def _time_in_part(self) -> list[str]:
        """Why no interval has an end where a log has no time of some launches of a kernel."""
        rows = self.counts.rows
        lacks = ~np.isnan(rows.time_s) & ((rows.time_marks & int(Mark.MISSING)) != 0)
        lacks &= ~has_modelled_time(self.counts)
        if self.split is None or not lacks.any():
            return []
        nouns = self.counts.nouns
        whose = few(list(map(printable, rows.kernel[lacks].tolist())), 1, nouns.kernels)
        return [
            f"Some {nouns.launches} of {whose} have no time in the log: nothing bounds their energy, nor the total."
        ]

    def _unpriced(self) -> list[str]:
        """One sentence for the classes that were counted without a price and one for those priced but not counted."""
        assert self.split is not None
        costs = self.costs
        assert costs is not None
        sentences: list[str] = []
        words = self.counts.amounts.names
        number = self.counts.amounts.values
        some = (~np.isnan(number) & (number != 0)).any(axis=0).tolist()
        unpriced = [word for word, there in zip(words, some, strict=True) if there and word not in costs.charges]
        nouns = self.counts.nouns
        if unpriced:
            sentences.append(
                f"{costs.name} has no price for {_labels(unpriced, nouns)}: that energy is missing, {self._bounded}."
            )
        marked = (self.counts.amount_marks.values & int(Mark.MISSING)) != 0
        lost = dict(zip(words, (np.isnan(number) & marked).any(axis=0).tolist(), strict=True))
        paying = [word for word, charge in costs.charges.items() if charge.pays]
        if RANDOM in paying and lost.get(RANDOM, False):
            sentences.append(
                "Accesses of DRAM at random are not told apart here: their bytes pay as those that stream."
            )
        uncounted = [word for word in paying if lost.get(word, False) and word != RANDOM]
        if set(uncounted) >= {*paying} - {RANDOM}:
            sentences.append(f"No instruction and no byte was counted in these logs; {self._bounded}.")
        elif uncounted:
            sentences.append(
                f"Not counted here, though {costs.name} prices them: {_labels(uncounted, nouns)}; {self._bounded}."
            )
        return sentences

    @property
    def _bounded(self) -> str:
        return "totals are lower bounds" if self.metered is None else "only the metered total has it"

    def to_frame(self) -> "pd.DataFrame":
        """A row a kernel, largest energy first; columns carry units: `time_s`, `total_j`, `fp64_fma` (instructions)...

        `X` is the count (instructions or bytes), `X_j` its energy; `marks` are words joined by spaces. NaN = not known.
        """
        import pandas as pd

        marks = self.split.row_marks if self.split is not None else self.counts.rows.time_marks
        words = [" ".join(names(mark)) for mark in marks.tolist()]
        return pd.DataFrame({**self.sums(), "marks": words, **self._cells()})

    def sums(self) -> dict[str, Array]:
        """The first columns of `to_frame`: each kernel, its launches, time, energies, power and intensity."""
        rows = self.counts.rows
        split = self.split
        joules = dict.fromkeys((*FAMILIES, "total"), np.full(len(rows), np.nan))
        if split is not None:
            parts = (split.computation_j, split.data_j, split.constant_j, split.total_j)
            joules = dict(zip(joules, parts, strict=True))
        # Energy over a time that is a lower bound would bound the power on neither side.
        is_whole = (rows.time_marks & int(Mark.MISSING)) == 0
        return {
            "device": rows.device,
            "kernel": rows.kernel,
            **({} if rows.part is None else {"part": rows.part}),
            "launches": rows.launches,
            "time_s": rows.time_s,
            **{f"{family}_j": values for family, values in joules.items()},
            "power_w": joules["total"] / np.where(is_whole & (rows.time_s > 0), rows.time_s, np.nan),
            "intensity_flop_per_byte": intensity_of(self.counts.whole),
        }

    def _cells(self) -> dict[str, Array]:
        columns: dict[str, Array] = {}
        for word in self.listed:
            columns[word] = self.counts.amounts[word]
            if self.split is not None and word in self.split.joules:
                columns[f"{word}_j"] = self.split.joules[word]
        return columns

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """The words in the profile's document: counted in some kernel, or priced but missing."""
        counts = self.counts
        is_counted = ~np.isnan(counts.amounts.values).all(axis=0)
        is_lost = (np.bitwise_or.reduce(counts.amount_marks.values, axis=0) & int(Mark.MISSING)) != 0
        paying = self.paying - {RANDOM}
        is_paying = np.array([word in paying for word in counts.amounts.names], dtype=np.bool_)
        return tuple(compress(counts.amounts.names, is_counted | (is_lost & is_paying)))

    def document(self) -> dict[str, Any]:
        """The profile as the plain data of `docs/profile-json.md`: what is saved, and what every report is made of."""
        from msgspec import to_builtins

        from eprof.profile.document import document

        data: dict[str, Any] = to_builtins(document(self))
        return data


def beside(profile: Profile, gpus: Sequence[Energy]) -> Energy:
    """The profile of several GPUs, priced as each of them is alone."""
    gpus = sorted(gpus, key=lambda gpu: -(gpu.energy_j or 0.0))
    books = {gpu.counts.books for gpu in gpus if gpu.costs is not None}
    counted = counts.concat([replace(gpu.counts, books=gpus[0].counts.books) for gpu in gpus])
    split = Split.below([gpu.split or unpriced(gpu.counts) for gpu in gpus])
    order = _order(counted.rows, split)
    notes = [note for gpu in gpus for note in gpu.notes]
    if len(books) > 1:
        notes.append("Bytes of caches are counted as each GPU's prices want them: sums over GPUs mix both ways.")
    modelled = next((gpu.modelled for gpu in gpus if gpu.modelled is not None), None)
    return Energy(
        profile,
        None,
        counted.chosen(order),
        split.chosen(order),
        modelled,
        tuple(dict.fromkeys(notes)),
        gpus=tuple(gpus),
    )


def _among(places: Ints, own: Ints) -> Ints:
    """Where those of some places that are a GPU's `own` stand among these."""
    place_of = {place: number for number, place in enumerate(own.tolist())}
    return np.array([place_of[place] for place in places.tolist() if place in place_of], dtype=np.int64)


def _order(rows: KernelRows, split: Split | None) -> Ints:
    """Places of the profile's kernels: most energy first, then most time, then by name; unknown ones last."""
    joules = np.full(len(rows), np.nan) if split is None else split.total_j
    # The last key counts first.
    keys = np.stack([_ranks(rows.device), _ranks(rows.kernel), -rows.time_s, -joules])
    return np.lexsort(keys)


def _ranks(texts: Texts) -> Floats:
    """The places of some texts in alphabetical order; None is last."""
    rank: dict[str | None, int] = {
        text: place for place, text in enumerate(sorted({text for text in texts if text is not None}))
    }
    return np.array([rank.get(text, len(rank)) for text in texts], dtype=np.float64)


def _labels(words: Sequence[str], nouns: Nouns) -> str:
    """The profile's words in the user's terms, all parts of a class named as one: "FP64", "FP32 other", "Integer"."""
    complete = {part: whole for whole, parts in PARTS.items() if set(parts) <= set(words) for part in (whole, *parts)}
    labels = [nouns.group(COUNTS[complete[word]].group) if word in complete else nouns.label(word) for word in words]
    return listed(list(dict.fromkeys(labels)))
