"""`Profile`: what a program did, counted, and how it is priced; `Energy`: that priced, and what may be asked of it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import chain, compress
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Columns, Floats
from eprof.base.cpus import UNNAMED, is_unlike, nearest_costs
from eprof.base.errors import CostError, LogError, MeterError, UsageError
from eprof.base.gpus import (
    Traits,
    capabilities,
    capabilities_by_limits,
    capability_of_label,
    example,
    sheets,
    start_of_label,
)
from eprof.base.optional import mapped, only
from eprof.base.text import capital, few, listed, phrase, short_repr, when
from eprof.base.vocabulary import CPU, MISSING, Mark
from eprof.costs import ESTIMATED, NONE, Costs, CostTable, for_device
from eprof.costs import load as load_costs
from eprof.counts import counts, definition_files, times
from eprof.counts.counts import Counts
from eprof.counts.definition import (
    DRAM_PEAK,
    FP64_MOST,
    HELD,
    SM_COUNT,
    Definition,
    common,
    without_counters,
)
from eprof.counts.evaluation import CounterSheet
from eprof.energy.attribution import Split, unpriced
from eprof.energy.clocks import clocks_of, costs_at, with_active_cycles
from eprof.energy.modelled_time import Modelled, model_time
from eprof.energy.time_by_component import time_by_component
from eprof.logs.log import NOT_USED, ON_TOTALS, UNUSED, Launches, Log, idle_of_calls
from eprof.logs.runs import Run
from eprof.profile.counted_profile import Counted, CountedProfile, gpu_of
from eprof.profile.device import device_of
from eprof.profile.priced_profile import PricedProfile, in_order
from eprof.profile.warnings import warnings_of
from eprof.profilers import signs_of

if TYPE_CHECKING:
    from eprof.profile.whatif import Answer

_NAMED = 4  # definitions that may be those of a CPU


class Energy(PricedProfile, frozen=True, eq=False, dict=True):
    """A priced profile for users, with what-if answers, warnings and document; kernels with most energy first."""

    if TYPE_CHECKING:
        profile: "Profile"

    def __repr__(self) -> str:
        """One line: title, joules, number of kernels, cost tables."""
        tables = [f"{gpu.costs.name} at {gpu.costs.setting.label}" for gpu in self.each if gpu.costs is not None]
        table = ", ".join(tables) or "no cost table"
        joules = phrase("{:.3g} J, ", self.energy_j)
        number = len(self.counts.rows)
        kernels = f"{number} {self.counts.nouns.of(number)}"
        return short_repr(Energy, f"{joules}{kernels}, {table}", self.profile.title)

    def what_if(self, question: str) -> "Answer":
        """A modelled answer to "pi0=0.5", "setting=612/924,dram=-20%", "race"... (whatif.py). Raises EprofError."""
        from eprof.profile.whatif import ask

        return ask(self, question)

    def asking(self, *questions: str) -> "Energy":
        """The priced profile with more what-if questions, which its document then answers. Raises EprofError."""
        for question in questions:
            self.what_if(question)
        return replace(self, questions=(*self.questions, *questions))

    def document(self) -> dict[str, Any]:
        """The profile as the plain data of `docs/profile-json.md`: what is saved, and what every report is made of."""
        from msgspec import to_builtins

        from eprof.profile.document import document

        data: dict[str, Any] = to_builtins(document(self))
        return data

    @cached_property
    def warnings(self) -> list[str]:
        """Everything the user should know of the profile, once each: from logs, counts, checks and costs."""
        return warnings_of(self)


def beside(profile: "Profile", gpus: Sequence[Energy]) -> Energy:
    """One priced profile of several GPUs, each of which keeps its own prices. gpus: the priced profile of each."""
    gpus = sorted(gpus, key=lambda gpu: -(gpu.energy_j or 0.0))
    books = {gpu.counts.books for gpu in gpus if gpu.costs is not None}
    counted = counts.concat([replace(gpu.counts, books=gpus[0].counts.books) for gpu in gpus])
    split = Split.below([gpu.split or unpriced(gpu.counts) for gpu in gpus])
    order = in_order(counted.rows, split)
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


class Profile(CountedProfile, frozen=True, eq=False):
    """What a program did, from one or more logs. `energy` puts prices on it."""

    @property
    def energy_j(self) -> float | None:
        """All energy of the kernels in J at the default prices, as `energy().energy_j`; None: nothing is known."""
        return self.energy().energy_j

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
        by component, which then is the time of kernels that have none (`energy/time_by_component.py`).

        to_meter: scale the table so that the kernels and idle time take what a meter saw (docs/metered.md): what the
        run directory holds, or `metered_j` joules. None: where the table is not made for this GPU and there are
        metered joules. Raises CostError: no such table, no such setting; UsageError: no such efficiency; MeterError:
        there are no joules to scale to, or they cannot be those of these kernels.
        """
        if metered_j is not None and to_meter is False:
            raise UsageError("--energy scales to a meter, and --no-to-meter does not; give one of the two.")
        if efficiency is not None and not self.is_simulated:
            raise UsageError("--efficiency is for simulated devices, whose time is modelled; these logs are of a GPU.")
        is_declined = costs == NONE
        gpus = self.by_gpu()
        if len(gpus) > 1 and not is_declined:
            if to_meter or metered_j is not None:
                from eprof.profile.to_meter import meter_of

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
        predicted = replace(self._predicted(costs, setting, efficiency, by_component), is_declined=is_declined)
        if to_meter or metered_j is not None:
            return self._to_meter(predicted, metered_j)
        has_own_table = predicted.table is not None and self.is_served_by(predicted.table)
        if to_meter is None and costs != NONE and not has_own_table and self.measured is not None:
            try:
                predicted = self._to_meter(predicted)
            except (CostError, MeterError) as err:
                predicted = replace(predicted, notes=(*predicted.notes, f"Not scaled to the meter: {err}"))
        if estimate and costs is None and predicted.costs is None and (table := self._estimated_by_default()):
            return replace(self._predicted(table, setting, efficiency, by_component), is_guessed=True)
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
        """`predicted` scaled to what a meter saw; where it has no table, that of `shape_of` is priced first."""
        from eprof.profile.to_meter import held_to, meter_of, shape_of

        meter = meter_of(self, metered_j)
        if predicted.costs is None:
            predicted = self._predicted(shape_of(self, meter), None, None)
        return held_to(predicted, meter)

    def _predicted(
        self, costs: str | CostTable | None, setting: str | None, efficiency: float | None, by_component: bool = False
    ) -> Energy:
        """The profile priced with one table, not scaled to a meter. What is None is as in `priced_as`, if known."""
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
        table = self.cpu_use.in_use(table)
        costs_there = table.at(setting)
        if setting is None and self.clocks is not None and self.is_served_by(table):
            costs_there = costs_at(table, self.clocks)
        priced = replace(self.for_this_gpu(costs_there, table), cores_mhz=self.cores_mhz)
        counted, modelled, notes, total_s = self._timed(priced, efficiency, by_component)
        counts_alone = Energy(
            self, None, counted, None, modelled, tuple(notes), table, total_s=total_s, by_component=by_component
        )
        return counts_alone.priced(priced)

    def _timed(
        self, priced: Costs, efficiency: float | None, by_component: bool
    ) -> tuple[Counts, Modelled | None, Sequence[str], float | None]:
        """(counts with modelled times, how these were modelled, notes, total time in s unless shared out).

        Where only the total time of some kernels is known, modelled times are scaled to add up to it.
        """
        counted = self.counts(priced.books)
        timed, modelled, notes = model_time(counted, priced, efficiency)
        timed = with_active_cycles(timed, priced, self.cpu_use.cores or 1)
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
        """The table that `costs` is or names; without, that made for the profiled GPU. None: none is, or "none"."""
        if isinstance(costs, CostTable):
            return costs
        if costs == NONE:
            return None
        if costs == ESTIMATED:
            return self.estimated()
        if costs is not None:
            return self.on_this_gpu(load_costs(costs))
        return mapped(for_device, gpu_of(self.counted[0]) or None, self.memory_mhz)

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
            # What a meter saw is better known than how another CPU's prices would split it; of some, no prices hold.
            # A report that was read back without prices had such a reason.
            is_metered = self.measured is not None or self.metered or self.saved is not None
            has_none = is_metered or is_unlike(self.counted[0].device.name)
            return None if has_none else mapped(load_costs, nearest_costs(UNNAMED))
        gpu = self.counted[0].device
        with suppress(CostError):
            return self.estimated()
        with suppress(CostError):
            return of_capability(gpu.capability or "", gpu.name, gpu.told)
        return None


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
    """Make a profile of read logs: what each device's launches did, their times, and warnings.

    capability: overrides what the device names say ("3.5"). time: `--time` values, "TIME" or "KERNEL=TIME". whole:
    whether these are all kernels. program_s: the time of the program without a profiler, in which it did
    `everything` (None: these launches).
    Raises DefinitionError if a device's capability is not known or has no definition, LogError if there is no kernel.
    """
    if not len(launches.rows):
        raise LogError("No kernel is left to report on: the logs hold none, or -k/--kernel-name matches none.")
    launches = times.given(launches, time)
    labels = list(dict.fromkeys(launches.rows.device))
    counted = [_counted(launches.chosen(launches.rows.device == label), label, capability) for label in labels]
    total_s = times.total(time)
    if len(counted) == 1 and (whole_s := total_s or program_s):
        of_program = launches if total_s else everything or launches
        timed, share = times.by_share(counted[0].launches, counted[0].definition, whole_s, of_program)
        if share is not None:
            how = f"{whole_s:.4g} s of the program, run without a profiler, shared out by {share}"
            counted = [replace(counted[0], launches=timed, time_from=how)]
    if total_s is not None:
        counted, total_s = _with_total(counted, total_s, time)
    idles = [log.idle for log in logs if log.idle is not None]
    idle = only(idles) if whole else None
    copied = [log for log in logs if log.copies_s and whole]
    copies_s = only([log.copies_s for log in copied]) or 0.0
    copies = only([log.copies for log in copied or logs if log.copies and whole]) or ()
    calls = only([log.calls_of_host for log in logs if log.calls_of_host and whole])
    # Where kernels are missing, others may have run during the calls.
    lacks_kernels = (launches.rows.time_marks & MISSING).any()
    if idle is None and calls and not lacks_kernels:
        comes_again = int(launches.rows.launches.sum()) > len(set(launches.rows.kernel))
        idle = idle_of_calls(calls, float(launches.rows.time_s.sum()), copies_s, comes_again)
    title = ", ".join(log.path.rpartition("/")[2] for log in logs[:3]) + when(len(logs) > 3, " ...")
    if commands := list(dict.fromkeys(log.command for log in logs if log.command)):
        title = few(commands, 1)
    return Profile(
        title=title,
        logs=tuple(logs),
        counted=tuple(counted),
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
        kernels_s=tuple(chain.from_iterable(each.kernels_s for each in idles if not time)),
        copies_s=copies_s,
        copies=copies,
    )


def _with_total(counted: Sequence[Counted], total_s: float, specs: Sequence[str]) -> tuple[list[Counted], float | None]:
    """The devices with `total_s` shared out over their kernels, and None; or unshared, and `total_s`.

    Raises UsageError: several devices, as nothing tells whose time it is, or a total that contradicts other times.
    """
    if len(counted) > 1:
        raise UsageError("--time TIME: the logs are of several devices; give --time KERNEL=TIME, or a trace.")
    only = counted[0]
    launches, how = times.share(only.launches, total_s, specs, only.time_from)
    if how:
        return [replace(only, launches=launches, time_from=how)], None
    together = f"given by --time for all {only.definition.nouns.kernels} together"
    return [replace(only, launches=launches, time_from=together)], total_s


def _counted(launches: Launches, label: str | None, capability: str | None) -> Counted:
    """One device's launches with their times, the definition of its counters, and warnings on both.

    Where nothing tells which of several devices it is, what their definitions have in common is counted.
    """
    known = np.asarray(~np.isnan(launches.counters.values).all(axis=0))
    names = list(compress(launches.counters.names, known))
    of_profilers = Counter(launches.profilers[name] for name in names)
    profiler = max(of_profilers, key=of_profilers.__getitem__, default="")
    device = device_of(label, capability, names, profiler, launches.rows.kernel, _that_hold(launches))
    launches = launches.marked_by_part()
    # Lower bounds, as the profiler knows them.
    if (lower_bounds := signs_of(profiler).lower_bounds) is not None:
        launches = replace(launches, marks=lower_bounds(launches))
    if device.capability == definition_files.SIMULATED:
        marks = Columns(launches.marks.names, launches.marks.values | np.int8(Mark.SIMULATED))
        launches = replace(launches, marks=marks)
    definition = without_counters()
    if names and device.may_be:
        definition = _common(profiler, device.may_be)
    elif names and device.capability:
        definition = definition_files.find(profiler, device.capability)
    timed, time_from, warnings = times.recover(launches, definition)
    if time_from is None and np.isnan(timed.rows.time_s).any():
        from eprof.costs.estimate import sm_cycles_per_s

        timed, time_from = times.by_cycles(timed, definition, mapped(sm_cycles_per_s, device.name))
    if time_from is None:
        timed, time_from = times.of_a_second(timed, definition)
    messages = [*warnings, *counts.check(timed, definition)]
    # The counters of other profilers may mean other things.
    if others := sorted(set(of_profilers) - {profiler}):
        messages.append(
            f"Only the counters of {profiler} are counted, and those of {listed(others)} are not; report on logs of "
            "different profilers one by one."
        )
    messages += _unused(definition, names, profiler, device.name)
    if device.may_be and definition.processor == CPU:
        messages.append(
            "The logs do not name the CPU: what all count alike is counted. Say which it is (--capability)."
        )
    elif device.may_be:
        numbers = [float(may_be) for may_be in device.may_be]
        messages.append(
            f"The logs do not name the GPU, which may have compute capability {listed(device.may_be, 'or')}: what "
            f"these count alike is counted. Say which it has (--capability {device.may_be[0]}), and for joules what it "
            f'is (--costs "{example(min(numbers), max(numbers))}").'
        )
    traits = replace(_traits(CounterSheet(timed, definition)), start=start_of_label(device.label or ""))
    device = replace(device, told=traits)
    return Counted(device, timed, definition, time_from, tuple(messages))


def _that_hold(launches: Launches) -> frozenset[str]:
    """The compute capabilities whose multiprocessors hold as many warps, blocks... as launches tell; empty: untold.

    Of these those that have a board with as many multiprocessors as the launches tell, if there is one.
    """
    if any(name not in launches.counters for name in HELD):
        return frozenset()
    told = launches.counters.only(HELD) / launches.rows.launches[:, None]
    alike = [capabilities_by_limits(*row) for row in told.tolist() if all(number > 0 for number in row)]
    may_be = frozenset.intersection(*alike) if alike else frozenset[str]()
    sms = set(launches.counters[SM_COUNT] / launches.rows.launches) if SM_COUNT in launches.counters else set()
    on_boards = (capabilities(sheet.name) for sheet in sheets() if sheet.sms in sms)
    return may_be.intersection(chain.from_iterable(on_boards)) or may_be


def _traits(sheet: CounterSheet) -> Traits:
    """What counters tell of a device's board: multiprocessors, clocks, DRAM's peak by its clock, else utilisation."""
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
    base_mhz = mapped(float, mapped(round, _middle(sheet.base_hz() / 1e6)))
    number = only({round(number) for number in sms[~np.isnan(sms)].tolist()})
    return Traits(number, _middle(peaks), _middle(sheet.dram_hz() / 1e9), base_mhz)


def _middle(numbers: Floats) -> float | None:
    known = numbers[np.isfinite(numbers)]
    return median(known.tolist()) if len(known) else None  # that of numpy imports numpy.ma


@lru_cache(maxsize=8)
def _common(profiler: str, capabilities: tuple[str, ...]) -> Definition:
    return common([definition_files.find(profiler, capability) for capability in capabilities])


def _unused(
    definition: Definition, counter_names: Sequence[str], profiler: str, device_name: str | None
) -> Iterator[str]:
    """Yields a warning on counters that a definition does not use; of a CPU, with the CPUs whose definitions do."""
    used = definition.counted if definition.processor == CPU else definition.profiler_names
    in_use = definition_files.names_in_use(profiler).intersection(counter_names)
    unused = {name for name in in_use - used if "[" not in name}  # of a metric by opcode, most are of other generations
    if not unused:
        return
    names = few([f"`{name}`" for name in sorted(unused)], _NAMED, "events")
    if definition.processor != CPU:
        yield f"{NOT_USED} {definition.name}: {names}."
        return
    of_profiler = [each for each in definition_files.definitions() if each.profiler == profiler]
    uses = {each.capabilities[0]: len(unused & each.counted) for each in of_profiler}
    most = max(uses.values())
    if not most:
        return
    best = [capability for capability, number in uses.items() if number == most]
    remedy = "Say which CPU it is (--capability)."
    if is_unlike(device_name):
        remedy = "None of the CPUs that use them is this one."
    elif len(best) <= _NAMED:
        remedy = f"If this CPU is such a one, --capability uses most of it: {few(best, _NAMED)}."
    of_any_type = chain.from_iterable(
        definition.counters_of(way.formula) for way in definition.components.get(FP64_MOST, ())
    )
    flops = when(not unused.isdisjoint(of_any_type), f"{ON_TOTALS}flops of a type that the log does not tell, ")
    yield f"{capital(UNUSED)} with {definition.name}: {flops}{names}. {remedy}"
