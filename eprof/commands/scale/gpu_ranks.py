"""Runs on a GPU cluster: the ranks' reports, and what nodes draw beside their GPUs ([S] 5.14 to 5.16, docs/scale.md).

    E(N) = sum over GPUs (computation + data + constant + P_idle (T - t_kernels)) + N (P_host + P_network) T

T: of the whole program where every run tells it, else of the slowest rank's kernels.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.base.optional import gathered, mapped, only
from eprof.base.text import counted, few, listed, pattern
from eprof.base.vocabulary import NONE, Mark, mark_names, marked, marks_of_names
from eprof.clusters.cluster import Beside, Part, Run
from eprof.logs import runs as directories
from eprof.profile import api, from_json, schema
from eprof.profile.document import document as described
from eprof.profile.profile import Energy, Profile

_NAMED = pattern(r"n?([1-9]\d{0,6})=(.+)")
_NUMBER = pattern(r"\d+")
_OF_RANK = pattern(r"rank (\d{1,9})")
_OF_NODES = pattern(r"n([1-9]\d{0,6})")
_MOST_GAPS = 1000
_WORLD = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
SUFFIX = ".json"
_KERNELS = ("computation", "data", "constant")
_GPU = (*_KERNELS, "imbalance", "between", "unused", "metered")
_DEFAULT = "the table's default"


class Reading(NamedTuple):
    """How ranks' logs are read and priced. load: `api.load`, price: `Profile.energy`, with a user's options."""

    beside: Beside = Beside()
    rank: str | None = None
    load: Callable[..., Profile] = api.load
    price: Callable[[Profile], Energy] = Profile.energy


class _Seen(NamedTuple):
    """What the run directories of ranks tell, beside logs, of times, hosts and meters. None: not known.

    ranks: of the whole program. time_s: of the slowest program. gpus_j: by a meter on each GPU. hosts_j: by one on each
    host, of its processor. all_j: of the whole cluster. is_metered: whether a meter saw anything. storage_s: how long
    the busiest storage device of each host worked.
    """

    hosts: int | None = None
    ranks: int | None = None
    time_s: float | None = None
    gpus_j: float | None = None
    hosts_j: float | None = None
    all_j: float | None = None
    storage_s: float | None = None
    is_metered: bool = False


class Report(NamedTuple):
    """A report on all ranks of a run. nodes: their number if the user named it. where: its row in a user's table."""

    path: str
    nodes: int | None
    profile: schema.Profile
    seen: _Seen
    where: str = ""

    @property
    def ranks(self) -> int:
        """The number of ranks in the report; 1 where it is of one program."""
        return int(getattr(self.profile.ranks, "number", 1))

    @property
    def kernels_s(self) -> float | None:
        """The time of the slowest rank's kernels, s; None: not known."""
        return self.profile.ranks.time_s.max if self.profile.ranks else self.profile.time_s


def named(given: str) -> tuple[int | None, str]:
    """(node count, path) of "n4=PATH"; (None, the text itself) without a count, or where such a file exists."""
    match = _NAMED.fullmatch(given)
    if match is None or Path(given).exists():
        return None, given
    return int(match[1]), match[2]


def read(given: str, reading: Reading) -> Report:
    """Read the ranks of one run: a folder of run directories or logs, a run directory, or a report of `--group rank`.

    given: its path, after "n4=" if the user names nodes. Raises LogError: a run is not whole, or nothing can be read;
    UsageError: nothing tells the ranks.
    """
    nodes, name = named(given)
    path = Path(name)
    if not path.is_dir():
        if (saved := from_json.read(path)) is None:
            raise LogError(f"{path}: is no report in JSON; `eprof report --group rank -o` makes them.")
        return _checked(Report(given, nodes, saved, _Seen()), ())
    # The run directories of ranks in a folder, which may be one itself; without any, its files.
    inputs = [path]
    if not directories.is_run(path):
        below = sorted(each for each in path.rglob("*") if not each.name.startswith("."))
        inputs = [each for each in below if each.is_dir() and directories.is_run(each)]
        inputs = inputs or [each for each in below if each.is_file()]
    if not inputs:
        raise LogError(f"{path}: is a folder without run directories or logs.")
    alike = {_NUMBER.sub("#", str(each)) for each in inputs}
    # Ranks are named alike but for numbers; a log of counters and one of times are not.
    are_of_ranks = len(alike) < len(inputs) or len(inputs) > 1 and directories.is_run(inputs[0])
    if reading.rank is not None or are_of_ranks:
        energy = reading.price(reading.load(*inputs, parts="rank", rank=reading.rank)).grouped("rank")
    else:
        energy = reading.price(reading.load(*inputs))
    opened = [directories.open_run(each) for each in inputs if directories.is_run(each)]
    seen = _seen(opened) if len(opened) == len(inputs) else _Seen()
    return _checked(Report(given, nodes, described(energy), seen), opened)


def named_by(run: Run, report: str, folder: Path, reading: Reading) -> Report:
    """Read the report of ranks that a table's row, as `run`, names; nodes, time and metered joules are that row's."""
    ranks = read(str(folder / report), reading)
    seen = ranks.seen._replace(time_s=run.time_s)
    if run.energy_j is not None:
        seen = _Seen(time_s=run.time_s, all_j=run.energy_j)
    return ranks._replace(nodes=run.processors, seen=seen, where=run.where)


def _seen(runs: Sequence[directories.Run]) -> _Seen:
    """What ranks' run directories tell: hosts, time, joules by meters on each GPU (or host), time of storage."""
    hosts = [str(run.section("host").get("name", "")) for run in runs]
    metered = [measured for run in runs if (measured := run.measured())]
    times_s = [each.seconds for each in metered] or [run.program_s for run in runs]
    known_s = [time_s for time_s in times_s if time_s is not None]
    time_s = max(known_s) if len(known_s) == len(runs) else None
    environments = [run.section("environment") for run in runs]
    started = [str(each[key]) for each in environments for key in _WORLD if key in each]
    seen = _Seen(
        hosts=len(set(hosts)) if all(hosts) else None,
        ranks=max((int(number) for number in started if number.isdecimal() and len(number) < 10), default=None),
        time_s=time_s,
        storage_s=_largest_sum(hosts, [run.io.get("device_s") for run in runs]),
        is_metered=bool(metered),
    )
    joules, boards = [each.joules for each in metered], {each.boards for each in metered}
    if len(metered) == len(runs) and boards <= {1}:
        return seen._replace(gpus_j=sum(joules))
    if len(metered) == len(runs) and boards <= {0} and seen.hosts:
        return seen._replace(hosts_j=_largest_sum(hosts, joules))
    return seen


def _largest_sum(hosts: Sequence[str], amounts: Sequence[float | None]) -> float | None:
    """The sum over hosts of the largest amount that a rank saw of its host; None if one rank does not tell."""
    largest: dict[str, float] = {}
    for host, amount in zip(hosts, amounts, strict=True):
        if amount is None:
            return None
        largest[host] = max(largest.get(host, 0.0), amount)
    return sum(largest.values())


def _checked(report: Report, runs: Sequence[directories.Run]) -> Report:
    """A report that is whole. Raises LogError: ranks are missing, or one of its `runs` did not come to its end."""
    partial_runs = [run.path.name for run in runs if run.is_partial]
    if partial_runs:
        raise LogError(f"{report.path}: {few(partial_runs, 3)} did not come to an end; E(N) needs whole runs.")
    if report.seen.ranks is not None and report.seen.ranks > report.ranks:
        raise LogError(
            f"{report.path}: holds {report.ranks} of {report.seen.ranks} ranks; the energy of the others is not known."
        )
    groups = report.profile.groups or []
    matches = [_OF_RANK.fullmatch(group.name) for group in groups if group.stands_for is msgspec.UNSET]
    numbers = {int(match[1]) for match in matches if match}
    # A rank may have a name instead, or not be shown; numbers that begin above 1 are those of processes.
    are_counted = report.profile.ranks is not None and len(groups) == len(numbers) > 0 and min(numbers) <= 1
    absent = (str(number) for number in range(max(numbers, default=0)) if number not in numbers)
    gaps = list(itertools.islice(absent, _MOST_GAPS))
    if report.seen.ranks is None and are_counted and gaps:
        raise LogError(
            f"{report.path}: holds {counted(report.ranks, 'rank')}, counted from 0 without {few(gaps, 3)}; "
            "the energy of missing ranks is not known."
        )
    return report


def runs(reports: Sequence[Report], beside: Beside, notes: list[str]) -> Iterator[Run]:
    """Yield a run for each report of ranks; adds to `notes`. Raises LogError: node count, prices or times not known."""
    is_timed = all(report.seen.time_s is not None for report in reports)
    nodes = [_nodes(report, beside) for report in reports]
    # What the runs have more and more of: nodes, or GPUs if all ran on as many nodes.
    ranks = gathered(zip(nodes, (report.ranks for report in reports), strict=True))
    is_of_nodes = all(len(set(numbers)) == 1 for numbers in ranks.values())
    if not is_of_nodes and len(ranks) > 1:
        raise LogError(
            f"{few([report.path for report in reports], 3)}: runs on as many nodes have different numbers of ranks; "
            "compare them apart, or name node counts, such as n4=FOLDER."
        )
    for report, count in zip(reports, nodes, strict=True):
        # The times of kernels on several GPUs do not add up to their rank's own.
        kernels = report.profile.kernels
        groups = [group.kernels for group in report.profile.groups or () if group.stands_for is msgspec.UNSET]
        for places in groups or [list(range(len(kernels)))]:
            gpus = sorted({kernels[place].device or "" for place in places} - {""})
            if len(gpus) > 1:
                raise LogError(
                    f"{report.path}: a rank runs kernels on {listed(gpus)}, whose times overlap; use one GPU a rank."
                )
        run = _run(report, count, beside, is_timed)
        notes += _beyond_the_meter(report, run)
        given_s, kernels_s = report.seen.time_s, report.kernels_s
        if is_timed and given_s is not None and kernels_s is not None and given_s < kernels_s:
            notes.append(
                f"{report.where or report.path}: its time, {given_s:.4g} s, is less than that of its slowest rank's "
                f"kernels, {kernels_s:.4g} s, which is taken instead."
            )
        yield run if is_of_nodes else replace(run, processors=report.ranks, unit="GPU")
    notes += dict.fromkeys(_notes(reports, beside, is_timed))


def _run(report: Report, nodes: int, beside: Beside, is_timed: bool) -> Run:
    """A run of GPU ranks on `nodes`, its energy by cause: kernels, waiting GPUs, hosts, network, storage, metered rest.

    Raises LogError: no prices, or no times.
    """
    profile, costs = report.profile, report.profile.costs
    if profile.energy_j.total is None and report.seen.gpus_j is None and report.seen.all_j is None:
        raise LogError(f"{report.path}: no cost table is made for its GPU; name one with --costs.")
    of_kernels = {
        family: Part(energy_j=getattr(profile.energy_j, family), marks=getattr(profile.energy_marks, family))
        for family in _KERNELS
    }
    # The time of the whole program; else of the slowest rank's kernels, a lower bound.
    time_s, time_marks = max(report.seen.time_s or 0.0, report.kernels_s or 0.0), NONE
    if not is_timed:
        time_s, time_marks = report.kernels_s or 0.0, marks_of_names(profile.time_marks) | Mark.MISSING
    if not is_timed and not time_s:
        raise LogError(f"{report.path}: the times of its kernels are not known; a log with times, such as a trace, is.")
    # Seconds that all GPUs wait, together: for the slowest rank, between kernels, without a rank.
    ranks, kernels_s, total_s = report.ranks, report.kernels_s, profile.time_s
    waiting_s: dict[str, float | None] = {"imbalance": None, "between": None}
    if kernels_s is not None and total_s is not None:
        waiting_s["imbalance"] = (ranks > 1) * max(ranks * kernels_s - total_s, 0.0)
        if is_timed:
            waiting_s["between"] = ranks * (time_s - kernels_s)
    if beside.gpus is not None:
        waiting_s["unused"] = (nodes * beside.gpus - ranks) * time_s
    # GPUs wait at the power in the cluster's table, else at constant power of their own.
    idle_w, idle_marks = beside.gpu_idle_w, beside.marks
    if idle_w is None and costs is not None:
        idle_w, idle_marks = costs.constant_power_w, marks_of_names(profile.energy_marks.constant) | Mark.ASSUMED
    idle_marks |= marks_of_names(profile.time_marks)
    of_waiting = {cause: _part(idle_w, seconds, idle_marks) for cause, seconds in waiting_s.items()}
    gpus = _metered(of_kernels | of_waiting, report.seen.gpus_j)
    node_s = nodes * time_s
    node_marks = beside.marks | time_marks & Mark.MISSING
    hosts = _part(beside.host_w, node_s, node_marks)
    if beside.host_w is None and report.seen.hosts_j is not None:
        hosts = Part(energy_j=report.seen.hosts_j, marks=mark_names(Mark.MISSING))
    of_nodes = {"host": hosts, "network": _part(beside.network_w, node_s, node_marks)}
    if beside.storage is not None:
        of_nodes["storage"] = _part(beside.storage.busy_w, report.seen.storage_s, beside.marks)
    parts = _metered(gpus | of_nodes, report.seen.all_j)
    # A meter leaves no doubt of what it saw.
    metered = _GPU * (report.seen.gpus_j is not None)
    unseen = [part for cause, part in parts.items() if report.seen.all_j is None and cause not in metered]
    commands = {Path(command.split()[0]).name for command in _commands(profile)}
    # A table's default is no run's clock.
    core_mhz = costs.setting.get("core_mhz") if costs and costs.setting_from != _DEFAULT else None
    return Run(
        program=only(commands) or "program",
        size=None,
        processors=nodes,
        core_mhz=core_mhz,
        time_s=time_s,
        energy_j=sum(part.energy_j for part in parts.values() if part.energy_j is not None),
        marks=reduce(or_, (marks_of_names(part.marks) for part in unseen), NONE),
        time_marks=time_marks,
        parts=parts,
        ranks=report.ranks,
        imbalance=getattr(profile.ranks, "imbalance", None),
    )


def _metered(parts: dict[str, Part], metered_j: float | None) -> dict[str, Part]:
    """The parts, and the part "metered": what a meter saw beyond their sum; without a meter as they are."""
    if metered_j is None:
        return parts
    known_j = sum(part.energy_j for part in parts.values() if part.energy_j is not None)
    marks = reduce(or_, (marks_of_names(part.marks) for part in parts.values())) & ~Mark.MISSING
    return parts | {"metered": Part(energy_j=metered_j - known_j, marks=mark_names(marks))}


def _nodes(report: Report, beside: Beside) -> int:
    """The number of nodes that ranks ran on: the user's, else by hosts, else by GPUs a node. Raises LogError."""
    by_gpus = mapped(lambda gpus: -(-report.ranks // gpus), beside.gpus)
    nodes = report.nodes or report.seen.hosts or (1 if report.ranks == 1 else by_gpus)
    # The node count in the name of a folder or file, such as n4 or n4.json, where no run directory tells the ranks.
    named_after = _OF_NODES.fullmatch(Path(report.path).name.removesuffix(SUFFIX))
    by_name = int(named_after[1]) if named_after and report.seen.ranks is None else None
    if nodes is None:
        raise LogError(
            f"{report.path}: nothing tells on how many nodes its {report.ranks} ranks ran; name it, such as "
            f"n{by_name or report.ranks}={report.path}, or give `gpus` of a node in [node] of the --cluster."
        )
    if report.nodes is not None and report.nodes > report.ranks:
        raise LogError(
            f"{report.path}: holds {counted(report.ranks, 'rank')} for {report.nodes} nodes; the energy of missing "
            "ranks is not known."
        )
    if report.nodes is None and by_name is not None and by_name > report.ranks:
        raise LogError(
            f"{report.path}: is named after {by_name} nodes, but holds {counted(report.ranks, 'rank')}; if none is "
            f"missing, say on how many nodes it ran, such as n{report.ranks}={report.path}."
        )
    if by_gpus is not None and by_gpus > nodes:
        raise LogError(
            f"{report.path}: {report.ranks} ranks on {nodes} x {beside.gpus} GPUs: the energy of ranks that share a "
            f"GPU cannot be told apart. If they ran on more nodes, name them, such as n{by_gpus}=..."
        )
    return nodes


def _part(watts: float | None, seconds: float | None, marks: Mark) -> Part:
    """The part of a run's energy that is watts x seconds; MISSING if either is None, unmarked if it is 0 J."""
    if watts is None or seconds is None:
        return Part(energy_j=None, marks=mark_names(Mark.MISSING))
    energy_j = watts * seconds
    return Part(energy_j=energy_j, marks=mark_names(marked(marks, energy_j)))


def _commands(profile: schema.Profile) -> list[str]:
    return sorted({log.command for log in profile.inputs if log.command and log.command.strip()})


def _notes(reports: Sequence[Report], beside: Beside, is_timed: bool) -> Iterator[str]:
    """Yield sentences on powers that are unknown or assumed, and on how reports differ beside their node count."""
    powers = {"the hosts": beside.host_w, "the network": beside.network_w}
    if unknown := [name for name, watts in powers.items() if watts is None]:
        yield (
            f"The power of {listed(unknown)} is not known, so energies are lower bounds; give it in [node] of a "
            "--cluster, or with --host-power and --network-power."
        )
    if not is_timed:
        yield "Time between kernels is unknown: times and energies are lower bounds."
    if Mark.ASSUMED in beside.marks and beside.name:
        yield f"The powers of {beside.name} are assumed: nobody measured them."
    tables = [report.profile.costs for report in reports if report.profile.costs]
    if beside.gpu_idle_w is None and tables:
        watts = {f"{costs.constant_power_w:.4g} W" for costs in tables}
        yield f"A GPU that waits is taken to draw its constant power, {listed(sorted(watts))}."
    for costs in tables:
        if costs.gpu_match == "other":
            yield f"{costs.name} was made for another GPU: that these cost the same is assumed."
    for report in reports:
        yield from (f"{report.path}: {sentence}" for sentence in _of_report(report, beside))
    profiles = [report.profile for report in reports]
    told = {
        "commands": [", ".join(_commands(profile)) for profile in profiles],
        "GPUs": [listed(sorted({device.name or "not named" for device in profile.devices})) for profile in profiles],
        "cost tables": [getattr(profile.costs, "name", "none") for profile in profiles],
    }
    for what, values in told.items():
        if len(different := list(dict.fromkeys(values))) > 1:
            yield f"The runs differ in their {what}, so more than the node count changes: {few(different, 3)}."


def _of_report(report: Report, beside: Beside) -> Iterator[str]:
    """Yield sentences on one report: logs left out or alike, and what its meters were used for."""
    yield from (warning for warning in report.profile.warnings if "Left out" in warning)
    seen, logs = report.seen, report.profile.inputs
    alike = gathered((log.sha256, Path(log.path).name) for log in logs if log.sha256)
    if twins := next((listed(paths) for paths in alike.values() if len(paths) > 1), ""):
        yield f"{twins} are the same to the byte; ranks are rarely, so one may be a copy."
    if report.ranks == 1 and len(logs) > 1 and seen.hosts is None:
        yield f"its {len(logs)} logs are taken for those of one rank."
    if seen.all_j is not None:
        yield "its energy is metered; how it splits is modelled."
    elif seen.gpus_j is not None:
        yield "the energy of its GPUs is metered; how it splits is modelled."
    elif seen.hosts_j is not None and beside.host_w is None:
        yield "the energy of its hosts is what the meters of their processors saw."
    elif seen.is_metered:
        yield "what meters saw is not used, for it is not that of one GPU a rank."


def _beyond_the_meter(report: Report, run: Run) -> Iterator[str]:
    """Yield a warning if a meter saw fewer joules than are modelled for the run; else nothing."""
    parts = {cause: part.energy_j for cause, part in (run.parts or {}).items() if part.energy_j is not None}
    rest_j = parts.pop("metered", 0.0)
    if rest_j >= 0:
        return
    is_of_all = report.seen.all_j is not None
    modelled_j = sum(joules for cause, joules in parts.items() if is_of_all or cause in _GPU)
    kernels_j = sum(joules for cause, joules in parts.items() if cause in _KERNELS)
    metered_j = modelled_j + rest_j
    more = f"its parts are modelled at {modelled_j:.3g} J"
    if kernels_j > metered_j:
        more = f"its kernels alone are modelled at {kernels_j:.3g} J"
    wrong = "so the prices, the powers or the meter are wrong, and the energy has no shares."
    yield f"{report.path}: the meter saw {metered_j:.3g} J, but {more}, {wrong}"
