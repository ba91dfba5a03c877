"""Advice where a report's logs tell too little: what to count next, by which command, and how to price it."""

from eprof.base.cpus import is_unlike
from eprof.base.gpus import capability_of_label, data_sheet, example
from eprof.base.optional import only
from eprof.base.text import pattern, phrase, when
from eprof.commands.report.advice.loops import SHORT_RUN_S, seems_to_wait
from eprof.commands.report.trust import lacks_most
from eprof.commands.report.view import DRAM, View, time_of
from eprof.counts.definition import ANY
from eprof.logs.log import HARDLY_WORKED, NOT_IN_TABLE, WHOLE_MACHINE
from eprof.profile import schema
from eprof.profile.device import capabilities_of
from eprof.profilers import advice, signs_of
from eprof.show.amounts import SIMULATED
from eprof.show.numbers import LITTLE, quantity

_NOTHING = "give the machine more to do at a time, or let it sleep: hardly anything worked"
_COUNT_STALLS = "perf stat -e cycles,instructions,stalled-cycles-backend,stalled-cycles-frontend"
_MANY_LAUNCHES = 1000  # our choice: profilers replay each several times, so that more of them take minutes to days
_LONG_S = 10.0  # our choice: a launch that takes so long is worth a smaller run before it is replayed
_LONGEST_COMMAND, _LONGEST_NAME = 60, 30  # of a command that is printed whole, and of a name that selects a kernel
_FUNCTION = pattern(r"\b([A-Za-z_]\w*+)\s*+(?:[<(]|$)")


def lacks_counts(view: View) -> bool:
    """Whether an unpriced log has no counts, or no times; for AMD GPUs also whether it lacks instructions or bytes."""
    if view.time.value is None or not any(word.value.value for word in view.words.values()):
        return True
    dram = view.summed(view.document, DRAM)
    is_told = view.instructions(view.document).value and dram.value is not None and not dram.lower
    return view.is_of_amd and not is_told


def how_to_price(view: View) -> str:
    """Advice: what gives joules to counts, or to the work of a machine whose meter was read."""
    if view.nouns.is_of_cpu:
        executed = view.instructions(view.document).value
        if view.document.energy_j.measured is not None and not executed:
            return (
                "count what took the joules: `perf stat -a -e "
                "power/energy-pkg/,cycles,instructions PROGRAM`, or `eprof run PROGRAM`"
            )
        if view.document.energy_j.measured is not None and view.document.energy_j.total is None:
            # The joules of work from those drawn without: by a second log of the machine, when idle.
            logs = [log.path.rpartition("/")[2] for log in view.document.inputs]
            count = "perf stat -a -o {} -e power/energy-pkg/,cycles,instructions {}"
            if len(logs) == 2:
                both = f"`eprof diff {' '.join(logs)}`"
                return f"tell work from idle power, if one of the two is of the idle machine: {both}"
            if _is_idle(view.document):
                count = count.format("work.txt", "PROGRAM")
                return f"{_NOTHING}; tell work from idle power: `{count}`, then `eprof diff {logs[0]} work.txt`"
            count = count.format("idle.txt", "sleep 20")
            return f"tell work from idle power: `{count}` on the idle machine, then `eprof diff idle.txt {logs[0]}`"
        if is_unlike(view.document.device.name):
            return "give the joules that a meter saw, and prices to split them by: --energy 12J --costs icelake-sp"
        return "make this processor's prices: eprof calibrate --cpu (another's, --costs, may be several times off)"
    device = view.document.device
    name = device.name or when(view.is_of_radeon, "AMD Radeon NAME") or None
    if name is None and view.is_of_amd:
        return 'name the GPU, as in --costs "MI250X" (tables of `rocprof-compute profile` tell it)'
    if name is None or capability_of_label(name) is not None:
        # As an example a GPU of the logs' compute capability, else one that their profiler can profile.
        ranges = [signs_of(log.format.partition("-")[0]).capabilities for log in view.document.inputs]
        if device.capability is not None:
            ranges = [(float(device.capability), float(device.capability))]
        likely = example(max(lowest for lowest, _ in ranges), min(highest for _, highest in ranges))
        return f'name the GPU, as in --costs "{likely}"'
    if data_sheet(name) is not None:
        return "price it by its data sheet: --costs estimated"
    return f'make its prices from its power limit: eprof costs --estimate "{name}" --tdp-w WATTS -o mine.toml'


def _is_idle(document: schema.Profile) -> bool:
    return any(HARDLY_WORKED in note for note in document.warnings)


def how_to_count_longer(view: View) -> str:
    """Advice where the counters of a CPU ran for so short that they tell nothing else; "" elsewhere."""
    # Where caches are simulated, counts are exact however short a program is.
    is_simulated = view.amount(view.document, "dram_read").marks & SIMULATED
    is_short = "retired" in view.words and 0 < view.time.or_zero <= SHORT_RUN_S
    if not view.nouns.is_of_cpu or is_simulated or not is_short:
        return ""
    short = f"the {quantity(view.time.or_zero, 's')} that were counted are too short to tell"
    return f"repeat the work between start and stop of the counters, or take more of it: {short}"


def how_to_count(view: View, has_advice: bool) -> str:
    """Advice: the command that counts what is not known yet; "" if none helps. has_advice: a change is told, too."""
    is_counted = any(word.value.value for word in view.words.values())
    rest = when(view.above.value is not None or is_counted and view.is_of_amd, " the rest")
    if view.nouns.is_of_cpu and is_unlike(view.document.device.name):
        return ""  # `eprof run` counts on no such CPU
    if view.nouns.is_of_cpu and "retired" in view.words:
        formats = {log.format.partition("-")[0] for log in view.document.inputs}
        more = "`eprof run PROGRAM` (all that this CPU counts, and its joules)"
        if formats == {"likwid"} and (groups := _groups_of_likwid(view)):
            more = " and ".join(f"`likwid-perfctr -g {group}`" for group in groups)
        is_priced = view.instructions(view.document).value and view.above.value is not None
        is_of_machine = all(kernel.name == WHOLE_MACHINE for kernel in view.kernels)
        is_little = is_of_machine and is_priced and view.above.or_zero < LITTLE * view.everything
        if is_little or _is_idle(view.document) and not has_advice:
            return f"{_NOTHING}; `eprof run PROGRAM` counts a program at work"
        if why := seems_to_wait(view):
            return f"count cycles and stalls, for cores seem to wait ({why}): `{_COUNT_STALLS} {program(view)}`"
        is_said = has_advice and not (formats <= {"likwid", "perf"} and lacks_most(view))
        return when(not is_said, f"count the rest: {more}")
    if view.nouns.is_of_cpu:
        return f"count{rest} with `eprof run PROGRAM`"
    device = view.document.device
    if view.is_of_amd:
        return _how_on_amd(view, rest)
    capabilities = capabilities_of(device.name)
    if device.capability:
        capabilities = (device.capability,)
    # Where several can do it on this GPU, the newest one; where nothing tells which GPU it is, each says for which, and
    # that of the log may do it.
    commands = advice.commands(advice.COUNTS, capabilities).split(" or ")
    own = tuple(log.format.partition("-")[0] for log in view.document.inputs)
    likely = (command for command in commands if None in capabilities and command.startswith(own))
    command, bracket, which = next(likely, commands[-1]).partition(" (")
    lacks_time = view.is_of_a_second or view.time.value is None and view.costs is None and is_counted
    if lacks_time and command.startswith("nvprof"):  # whose counts come without
        return f"give times along with it: `{advice.trace('nvprof')} {program(view)}`"
    complete = [log for log in view.document.inputs if log.format in signs_of(log.format.partition("-")[0]).complete]
    told = [kernel for kernel in view.kernels if kernel.name != NOT_IN_TABLE]
    launches = sum(kernel.launches for kernel in told)
    of_which = ""
    is_nvprof = command.startswith("nvprof")
    if complete or launches > _MANY_LAUNCHES:
        command, bracket, which = "eprof run", "", ""  # which knows the fewest counters that price all
    if launches > _MANY_LAUNCHES:
        most = max(told, key=lambda kernel: (view.timed(kernel), time_of(kernel).or_zero, kernel.launches))
        or_more = when(len(told) < len(view.kernels), " or more")
        which_kernel = when(view.saved_unit, "what takes most") or "one kernel"
        of_which = f" in {which_kernel} (all {launches:,}{or_more} launches would be replayed several times)"
        command += phrase(" -k regex:{}", _plain_name(most.name))
        if most.launches > _MANY_LAUNCHES:
            of_which = f" in a few of {most.launches:,} launches"
            command += " --launch-count 100"
            if is_nvprof:  # it counts a launch by its number alone
                of_which = f" in the first of {most.launches:,} launches"
                command = f'nvprof --kernels "::{_plain_name(most.name)}:1" --metrics all --csv --log-file counts.csv'
    return f"count{rest}{of_which} with `{command} {program(view)}`{bracket}{which}{_on_less(view)}"


def _on_less(view: View) -> str:
    """Words for a program of which a launch takes so long that profilers, which replay it, should get a smaller one."""
    longest_s = max((view.each_s(kernel) for kernel in view.kernels), default=0.0)
    if longest_s < _LONG_S or view.is_modelled:
        return ""
    return f" on a smaller size (a {view.nouns.launch} of {quantity(longest_s, 's')} would be replayed several times)"


def _how_on_amd(view: View, rest: str) -> str:
    """Advice on how to count what is not known yet, `rest`, on a GPU of AMD; on times first, where there are none."""
    if view.time.value is None:
        return f"give times along with it: `{advice.TIMES_ON_AMD}`"
    if beside := only({advice.counts_beside(log.path) for log in view.document.inputs}):
        return f"give {beside}, which has all counts, instead"
    command = when(view.is_of_radeon, advice.COUNTS_ON_RADEON) or advice.COUNTS_ON_AMD
    return f"count{rest} with `{command}`{_on_less(view)}"


def _plain_name(kernel: str) -> str:
    """The name of a kernel's function, without its namespace, template and parameters; "" where it has none."""
    name = _FUNCTION.search(kernel)
    return name[1][:_LONGEST_NAME] if name else ""


def program(view: View) -> str:
    """The command line of the only program, where the logs tell all of it and it is short; else "PROGRAM"."""
    told = {log.command: log.format for log in view.document.inputs if log.command}
    command = only(told) or ""
    is_whole = " " in command or told.get(command, "").startswith("nvprof")  # others may tell the first word alone
    return when(is_whole and len(command) <= _LONGEST_COMMAND, command) or "PROGRAM"


def _groups_of_likwid(view: View) -> list[str]:
    """The groups of LIKWID that count what a log lacks and the CPU has an event for, as far as eprof knows the CPU."""
    if view.document.device.capability == ANY:
        return []
    lacks = {
        group: any(way.formula for way in word.how) or not word.how
        for group, name in (("MEM", "dram_read"), ("FLOPS_DP", "fp64"))
        if (word := view.words.get(name)) and word.value.value is None
    }
    return [group for group, can_be in lacks.items() if can_be]
