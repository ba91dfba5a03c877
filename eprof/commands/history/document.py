"""The document `eprof.history/1`, typed: series of energies from a folder's results, their noise, and their steps.

Results are reports in JSON (`eprof.profile/1`) and run directories.

A. J. Scott and M. Knott, A cluster analysis method for grouping means in the analysis of variance, Biometrics 30
(1974): cut where the means of both sides differ most against the noise inside them, and go on in both pieces as long
as that is more than noise: binary segmentation. The t test, with the choice of the best of m cuts paid for by m
(Bonferroni), tells a step from four runs on, where permutations would need ten.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path, PurePath
from shlex import quote
from statistics import fmean
from typing import Any

import numpy as np
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from eprof.base.arrays import Floats, finite
from eprof.base.errors import LogError
from eprof.base.optional import either, growth
from eprof.base.text import counted, few, listed, phrase, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, GROUPS, Nouns, nouns_of
from eprof.lab.welch import t_outside
from eprof.logs import runs
from eprof.profile import api, from_json, schema
from eprof.profile.document import document
from eprof.profile.profile import Energy, Profile
from eprof.profile.schema import Document

SCHEMA = "eprof.history/1"


class Run(Struct, frozen=True, kw_only=True):
    """A run in a history. time_from: "run" (when it ran) or "report" (when its report was made). energy_j: by part.

    commit: of the folder that it ran in, if it was recorded; changed: whether files there differed from that commit.
    """

    path: str
    commit: str | None
    changed: bool
    time_utc: str
    time_from: str
    device: str
    costs: str
    eprof: str
    time_s: float | None
    energy_j: dict[str, float | None]
    marks: list[str]
    processor: str | UnsetType = UNSET

    @property
    def nouns(self) -> Nouns:
        """What a history calls what ran: kernels of a GPU, functions of a CPU."""
        return nouns_of(self.processor)


class Change(Struct, frozen=True, kw_only=True):
    """A step of the energy between two runs. kernel: None for the program; run: number of the first run after it.

    before_j, after_j: means of the runs between this step and its neighbours. p: how likely noise alone looks like a
    step. because: the part of the energy that changed most, and by how much. also: what else differs there.
    """

    kernel: str | None
    run: int
    before_j: float
    after_j: float
    change_share: float | None
    runs_before: int
    runs_after: int
    p: float
    because: str | None
    because_j: float | None
    also: list[str]


class Kernel(Struct, frozen=True, kw_only=True):
    """The energy of a kernel in each run; None where it did not run, or is not known."""

    name: str
    energy_j: list[float | None]


class Noise(Struct, frozen=True, kw_only=True):
    """How far repeats of one commit differ. share: their pooled standard deviation, over the mean.

    commits, runs: how many were repeated.
    """

    share: float
    commits: int
    runs: int


class History(Document, frozen=True, kw_only=True):
    """The document of `eprof history`: runs by time, and changes of the whole program and of its kernels."""

    schema: str = SCHEMA
    level: float
    runs: list[Run]
    noise: Noise | None
    changes: list[Change]
    kernels: list[Kernel]
    warnings: list[str] = field(default_factory=list)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of a history's CSV: one for each run as a whole (kernel ""), one for each of its kernels."""
        for place, run in enumerate(self.runs):
            about = {"run": run.path, "commit": run.commit, "time_utc": run.time_utc}
            yield {**about, "kernel": "", "energy_j": run.energy_j["total"]}
            for kernel in self.kernels:
                yield {**about, "kernel": kernel.name, "energy_j": kernel.energy_j[place]}


RUN, REPORT = "run", "report"
Price = Callable[[Profile], Energy]


class Result(Struct, frozen=True):
    """One result in a history's folder: its report, and when it ran. time_from: `RUN`; `REPORT`: when reported."""

    path: str
    report: schema.Profile
    time_utc: str
    time_from: str

    @property
    def is_run(self) -> bool:
        """Whether a result is a run directory rather than a report in JSON."""
        return Path(self.path).is_dir()


def read(folders: Sequence[str | Path], price: Price) -> list[Result]:
    """The results in a history's folders, by time. price: prices a run directory's profile; a report has its prices.

    Raises LogError: a folder without any, or a report that cannot be read.
    """
    results: list[Result] = []
    for folder in map(Path, folders):
        if not folder.exists():
            raise LogError(f"{folder}: there is no such folder; name one with reports in JSON or run directories.")
        here: list[Result] = []
        for path in [folder] if folder.is_file() or runs.is_run(folder) else sorted(folder.iterdir()):
            if path.is_dir() and runs.is_run(path):
                # Repeats are one run: of them the medians.
                profile = api.load(path)
                report = document(price(profile))
                started_utc = profile.run and profile.run.started_utc
                time_from = REPORT if started_utc is None else RUN
                here.append(Result(str(path), report, started_utc or report.created_utc, time_from))
            elif path.suffix == ".json" and path.is_file() and (saved_report := from_json.read(path)):
                here.append(Result(str(path), saved_report, saved_report.created_utc, REPORT))
        if not here and Path(folder).is_file():
            raise LogError(
                f"{folder}: is no report in JSON; of a profiler's log `eprof report {quote(str(folder))} -o "
                "reports/NAME.json` makes one, and `eprof history reports` reads that folder."
            )
        if not here:
            raise LogError(
                f"{folder}: holds no run directory and no report in JSON; `eprof run -o {folder}/NAME.eprof` and "
                f"`eprof report LOG -o {folder}/NAME.json` put them there."
            )
        results += here
    # A report of a run directory that is here, too, is the same run.
    of_runs = set().union(*(_logs(result) for result in results if result.is_run))
    results = [result for result in results if result.is_run or not _logs(result) <= of_runs]
    return sorted(results, key=lambda result: (result.time_utc, result.path))


def _logs(result: Result) -> set[tuple[object, ...]]:
    """A key for each log of a result, wherever the log lies: commit, name of the run directory, hash."""
    inputs = result.report.inputs
    return {(result.report.commit, Path(log.path).parent.parent.name, log.sha256) for log in inputs}


LEVEL = 0.01
LEAST = 2  # runs on each side: one alone does not tell its noise
_SAME = 1e-12  # of the largest value: sums of the same joules in another order
_PARTS = (COMPUTATION, DATA, CONSTANT)
_DIRTY = "-dirty"
_IDLE = "(no kernel runs)"
_MEANING = {
    "missing": "lower bounds",
    "estimated": "estimated",
    "assumed": "based on assumptions",
    "simulated": "of a simulated device",
}
_MOST_NAMED = 4


class Step(Struct, frozen=True):
    """A step of a series before its value at `place`. p: how likely noise makes as clear a step in this stretch."""

    place: int
    p: float


def history(results: Sequence[Result], title: str, command_line: Sequence[str]) -> History:
    """The document `eprof.history/1` of results in the order of time: those comparable with the last, and changes.

    Raises LogError if no result has an energy.
    """
    known = [result for result in results if result.report.energy_j.total]
    if not known:
        raise LogError(f"None of the {len(results)} results has an energy: make their reports with --costs.")
    left_out = []
    if without := len(results) - len(known):
        verb = {1: "has"}.get(without, "have")
        left_out.append(f"{without} of {len(results)} results {verb} no energy, or 0 J, and cannot be compared.")
    known, unlike = _alike(known)
    runs = []
    for result in known:
        report, commit = result.report, result.report.commit or ""
        run = Run(
            **{name: getattr(result, name) for name in ("path", "time_utc", "time_from")},
            commit=commit.removesuffix(_DIRTY) or None,
            changed=commit.endswith(_DIRTY),
            device=", ".join(dict.fromkeys(device.name or "not named" for device in report.devices)),
            costs=_costs(report),
            eprof=report.eprof,
            time_s=report.time_s,
            energy_j={part: getattr(_with_rest(report), part) for part in (*_PARTS, "total", "measured")},
            marks=report.marks,
            processor=report.device.processor,
        )
        runs.append(run)
    series = _series(known)
    program = series.pop(None)
    last = {name: [joules for joules in own["total"] if not math.isnan(joules)][-1:] for name, own in series.items()}
    names = sorted(series, key=lambda name: -sum(last[name]))
    changes = list(_changes(None, program, runs, LEVEL))
    for name in names:
        changes += _changes(name, series[name], runs, LEVEL / len(names))  # the level is of all kernels

    warnings = [*left_out, *unlike]
    versions = list(dict.fromkeys(run.eprof for run in runs))
    if len(versions) > 1:
        warnings.append(f"The runs have several versions of eprof: {few(versions, _MOST_NAMED)}.")
    marks = [mark for mark in _MEANING if any(mark in run.marks for run in runs)]
    if marks:
        warnings.append(f"Some energies are {listed([_MEANING[mark] for mark in marks])}.")
    by_report = sum(run.time_from == REPORT for run in runs)
    if 0 < by_report < len(runs):
        warnings.append(f"{by_report} of {len(runs)} runs stand at the time of their report, not at that of the run.")
    return History(
        title=title,
        command_line=list(command_line),
        level=LEVEL,
        runs=runs,
        noise=_noise(runs),
        changes=changes,
        kernels=[
            Kernel(name=name or "", energy_j=[finite(joules) for joules in series[name]["total"]]) for name in names
        ],
        warnings=warnings,
    )


def _series(results: Sequence[Result]) -> dict[str | None, dict[str, list[float]]]:
    """Kernel (None: the program) -> part of its energy, or "total" -> J in each result; NaN: not known."""
    series: dict[str | None, dict[str, list[float]]] = {}
    for place, result in enumerate(results):
        energies: dict[str | None, list[schema.Joules]] = {None: [_with_rest(result.report)]}
        if idle_j := _idle_j(result.report):
            energies[_IDLE] = [schema.Joules(0.0, 0.0, idle_j, idle_j)]
        for kernel in result.report.kernels:
            energies.setdefault(kernel.name, []).append(kernel.energy_j)  # of all devices
        for name, here in energies.items():
            own = series.setdefault(name, {part: [math.nan] * len(results) for part in ("total", *_PARTS)})
            for part, joules in own.items():
                known = [getattr(energy_j, part) for energy_j in here]
                joules[place] = math.fsum(either(energy_j, math.nan) for energy_j in known)
    return series


def _alike(results: Sequence[Result]) -> tuple[list[Result], list[str]]:
    """The results that can be compared with the last one, and sentences on why the others cannot."""
    last_report = results[-1].report
    alike = [result for result in results if _is_of_one_program(result.report, last_report)]
    sentences = []
    if number := len(results) - len(alike):
        others = [result.report for result in results if result not in alike]
        titles = dict.fromkeys(next((log.command for log in each.inputs if log.command), each.title) for each in others)
        have = counted(number, "result is", "results are")
        sentences.append(
            f"{have} of another program than the last, or of other arguments, and cannot be compared with it: "
            f"{few(list(titles), _MOST_NAMED)}."
        )
    for difference, fact in _FACTS.items():
        last = fact(alike[-1].report)
        facts = [fact(result.report) for result in alike]
        number = sum(own != last for own in facts)
        if number:
            theirs = set().union(*(own - last for own in facts))
            apart = sorted(theirs or set().union(*(last - own for own in facts)))
            have = counted(number, "result has", "results have")
            names = few(apart, _MOST_NAMED)
            sentences.append(f"{have} {difference} than the last and cannot be compared with it: {names}.")
        alike = [result for result, own in zip(alike, facts, strict=True) if own == last]
    return alike, sentences


def _is_of_one_program(report: schema.Profile, last: schema.Profile) -> bool:
    """Whether two reports are of one command line, wherever its files lie; without one, whether they share a kernel."""
    commands, of_last = _commands(report), _commands(last)
    if commands and of_last:
        # A program alone may be one whose arguments are not known.
        compared = 1 if min(map(len, commands | of_last)) == 1 else None
        return not {words[:compared] for words in commands}.isdisjoint(words[:compared] for words in of_last)
    names, its = ({kernel.name for kernel in each.kernels} for each in (report, last))
    return not (names and its and names.isdisjoint(its))


def _commands(report: schema.Profile) -> set[tuple[str, ...]]:
    """The command lines of a report's logs in words, files without their folders; none where no log tells."""
    told = (log.command.split() for log in report.inputs if log.command)
    return {tuple(PurePath(word).name for word in words) for words in told if words}


def _known_counts(report: schema.Profile) -> set[str]:
    """The labels of what a report knows: counts whose energy is known in full, constant power, time without kernels."""
    known = {
        COUNTS[word].label
        for word, count in report.counts.items()
        if count.energy_j is not None and "missing" not in count.marks
    }
    if report.energy_j.constant is not None and "missing" not in report.energy_marks.constant:
        known.add(GROUPS[CONSTANT])
    if report.gaps or _idle_j(report):
        known.add("time without kernels")
    return known


def _idle_j(report: schema.Profile) -> float:
    """The energy of a GPU while no kernel ran, J, which the totals of a report leave out; 0 where nothing tells."""
    return report.idle_j if report.to_meter is UNSET else report.to_meter.idle_j


def _with_rest(report: schema.Profile) -> schema.RunJoules:
    """The energies of a report, what it took while no kernel ran added to constant power and to the total."""
    joules, idle_j = report.energy_j, _idle_j(report)
    if not idle_j:
        return joules
    return replace(joules, constant=(joules.constant or 0.0) + idle_j, total=(joules.total or 0.0) + idle_j)


_FACTS: dict[str, Callable[[schema.Profile], set[str]]] = {
    "another GPU": lambda report: {device.name or "not named" for device in report.devices},
    "other prices": lambda report: {_costs(report)},
    "another efficiency": lambda report: {f"{each.efficiency:g}" for each in [report.modelled_time] if each},
    "other known counts": _known_counts,
}


def _costs(report: schema.Profile) -> str:
    """The prices of a report in words, "gtx680 at 1006/3004 MHz"."""
    tables = []
    for costs in report.prices:
        core, memory = (costs.setting.get(key) for key in ("core_mhz", "memory_mhz"))
        tables.append(costs.name + phrase(" at {:g}/{:g} MHz", core, memory))
    return (", ".join(tables) or "none") + when(report.to_meter is not UNSET, ", scaled to the meter")


def _changes(
    name: str | None, own: Mapping[str, Sequence[float]], runs: Sequence[Run], level: float
) -> Iterator[Change]:
    """Yield changes of energy of the kernel `name` (None: the program), in the order of runs. own: part -> J by run."""
    places = [place for place, joules in enumerate(own["total"]) if not math.isnan(joules)]
    energies = {part: [joules[place] for place in places] for part, joules in own.items()}
    mine = [runs[place] for place in places]
    # There is no change between repeats of one commit.
    may_cut = [True, *(_key(before) != _key(after) or before.commit is None for before, after in pairwise(mine))]
    clear_steps = steps(energies["total"], may_cut, level)
    edges = [0, *(step.place for step in clear_steps), len(places)]
    for step, (start, middle, end) in zip(clear_steps, zip(edges, edges[1:], edges[2:], strict=False), strict=True):
        means = {part: (fmean(joules[start:middle]), fmean(joules[middle:end])) for part, joules in energies.items()}
        before_j, after_j = means.pop("total")
        # A part that is not known in some run moves nothing.
        moved = {part: finite(new - old) or 0.0 for part, (old, new) in means.items()}
        most = max(moved, key=lambda part: moved[part] * (after_j - before_j))
        is_other_eprof = runs[places[middle - 1]].eprof != runs[places[middle]].eprof
        yield Change(
            kernel=name,
            run=places[middle],
            before_j=before_j,
            after_j=after_j,
            change_share=growth(after_j, before_j),
            runs_before=middle - start,
            runs_after=end - middle,
            p=step.p,
            because=when(moved[most], most) or None,
            because_j=moved[most] or None,
            also=is_other_eprof * ["version of eprof"],
        )


def _key(run: Run) -> tuple[object, ...]:
    """The key that repeats share: commit, device, prices, eprof. Files changed since the commit: a key of its own."""
    return run.commit, when(run.changed, run.path), run.device, run.costs, run.eprof


def _noise(runs: Sequence[Run]) -> Noise | None:
    """The pooled standard deviation of repeats of one commit; None where nothing was repeated."""
    repeats = [[run.energy_j["total"] or 0.0 for run in same] for key, same in groupby(runs, _key) if key[0]]
    repeats = [energies for energies in repeats if len(energies) > 1]
    freedom = sum(len(energies) - 1 for energies in repeats)
    if not freedom:
        return None
    squares = [(energy / fmean(energies) - 1) ** 2 for energies in repeats if fmean(energies) for energy in energies]
    number = sum(map(len, repeats))
    return Noise(share=math.sqrt(math.fsum(squares) / freedom), commits=len(repeats), runs=number)


def steps(values: Sequence[float], may_cut: Sequence[bool] | None = None, level: float = LEVEL) -> list[Step]:
    """The steps of a series that are more than noise, in the order of the series.

    may_cut: before which runs there may be a step; runs of one commit are repeats of each other, and have none between
    them. level: how often, at most, a step is seen in a series of normal, even noise alone.
    """
    series = np.asarray(values, dtype=np.float64)
    cuts = np.asarray(either(may_cut, [True] * len(series)), dtype=bool)
    return _within(series, cuts, 0, len(series), level)


def _within(series: Floats, cuts: np.ndarray, start: int, end: int, level: float) -> list[Step]:
    """The steps of a stretch, from `start` up to `end`: cut where t is largest, if that is clear; then both pieces."""
    places = np.flatnonzero(cuts[start + LEAST : end - LEAST + 1]) + start + LEAST
    if not len(places):
        return []
    t = _t(series[start:end], places - start)
    best = int(np.argmax(t))
    p = min(1.0, len(places) * t_outside(float(t[best]), end - start - 2))
    if p >= level:
        return []
    place = int(places[best])
    before, after = _within(series, cuts, start, place, level), _within(series, cuts, place, end, level)
    return [*before, Step(place, p), *after]


def _t(series: Floats, places: np.ndarray) -> Floats:
    """Student's t of a step at each of `places`, one variance for both sides; 0: no step, infinite: no side varies."""
    number = len(series)
    tolerance = _SAME * np.abs(series).max()
    centred = series - series.mean()
    sums, squares = np.cumsum(centred), np.cumsum(centred**2)
    left, right = sums[places - 1] / places, (sums[-1] - sums[places - 1]) / (number - places)
    inside = squares[-1] - places * left**2 - (number - places) * right**2
    # Neither side of such a place varies.
    varies = [np.maximum.accumulate(side) - np.minimum.accumulate(side) > tolerance for side in (series, series[::-1])]
    is_flat = ~(np.append(False, varies[0]) | np.append(varies[1][::-1], False))
    inside = np.where(is_flat[places], 0.0, np.maximum(inside, 0.0))
    distance = np.where(np.abs(left - right) > tolerance, np.abs(left - right), 0.0)
    error = np.sqrt(inside / (number - 2) * (1 / places + 1 / (number - places)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance > 0, distance / error, 0.0)
