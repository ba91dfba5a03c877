"""A document `eprof.history/1` in words and tables, for the page, the terminal and Markdown alike."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from eprof.base.kernels import short
from eprof.base.optional import growth, mapped, only, ratio
from eprof.base.text import by_sign, counted, listed, when
from eprof.commands.history.document import LEAST, REPORT, Change, History, Kernel, Run
from eprof.show.amounts import bits
from eprof.show.blocks import (
    Block,
    Cell,
    Column,
    Headline,
    Medium,
    Name,
    Notes,
    Point,
    Quantity,
    Sentence,
    Share,
    Table,
    limit,
    signed_quantity,
    table_of,
)
from eprof.show.numbers import and_more, percent, quantity, signed_percent, whole

TITLE = "# Energy over time"
_NARROW = 24  # runs in a row of a table
_SPARKS = "▁▂▃▄▅▆▇█"
_PARTS = {"computation": "computation", "data": "data movement", "constant": "constant power"}


def headline(document: History) -> Headline:
    """The headline of a history: the latest change of the program, or none; then the noise and the last run."""
    number = len(document.runs)
    last = joules(document)[-1]
    steps = of_program(document)
    marks = bits(document.runs[-1].marks)
    if number < 2 * LEAST:
        later = "What is a change, and what is noise, can be told from four runs on."
        if number == 1:
            return Headline(f"The only run takes {quantity(last, 'J')}.", later, marks)
        off = signed_percent(growth(last, joules(document)[-2]) or 0.0)
        text = f"The last of {number} runs takes {quantity(last, 'J')}, {off} against the one before it."
        return Headline(text, later, marks)
    if not steps:
        text = f"No change in {whole(number)} runs that is more than noise; the last takes {quantity(last, 'J')}."
        return Headline(text, f"{_noise(document)} {_outlier(document)}".strip(), marks)
    step = steps[-1]
    verb = by_sign(step.after_j - step.before_j, "fell", "grew")
    by = mapped(lambda share: percent(abs(share)), step.change_share) or quantity(step.after_j, "J")
    where = label(document.runs[step.run])
    text = f"Energy {verb} by {by} at {where}, from {quantity(step.before_j, 'J')} to {quantity(step.after_j, 'J')}."
    earlier = when(len(steps) > 1, f"{len(steps) - 1} earlier changes.")
    if len(steps) == 2:
        earlier = "One earlier change."
    because = also = ""
    if step.because is not None and step.because_j is not None:
        because = f"Most of it is {_PARTS[step.because]} ({signed_quantity(step.because_j, 'J')})."
    if step.also:
        also = f"The {listed(step.also)} changed there, too, which may be the reason."
    lead = [because, also, earlier, _noise(document), _outlier(document)]
    return Headline(text, " ".join(filter(None, lead)), marks)


def of_program(document: History) -> list[Change]:
    """The changes of the whole program's energy, without those of kernels."""
    return [change for change in document.changes if change.kernel is None]


def joules(document: History) -> list[float]:
    """The energy of the whole program in each run of a history, J."""
    return [run.energy_j["total"] or 0.0 for run in document.runs]


def label(run: Run) -> str:
    """How a run is called: by its commit, with + where files differed from that; without a commit by its time."""
    return _minute(run) if run.commit is None else run.commit[:9] + when(run.changed, "+")


def _noise(document: History) -> str:
    """A sentence on how far repeats of a commit differ in energy; empty where nothing was repeated."""
    noise = document.noise
    if noise is None:
        return ""
    if noise.share < 1e-12:
        return "Repeats of a commit are identical."
    return f"Repeats of a commit differ by {percent(noise.share)} (standard deviation of {noise.runs} runs)."


def _outlier(document: History) -> str:
    """A sentence on how far the last run is outside those since the last change; empty if it is among them."""
    energies = joules(document)
    start = max((change.run for change in of_program(document)), default=0)
    before = energies[start:-1]
    mean = ratio(sum(before), len(before))
    if not mean or min(before) <= energies[-1] <= max(before):
        return ""
    share = signed_percent(energies[-1] / mean - 1)
    off = when(len(before) == 1, "the run before it") or f"the mean of the {len(before)} runs before it"
    return f"The last run is {share} off {off}; one more run may tell whether that is a change."


def blocks(document: History, verbose: bool) -> Iterator[Block]:
    """A history, for a terminal and for Markdown; all changes, kernels and runs if `verbose`."""
    if len(document.runs) > 2:
        yield Sentence(f"{sparks(joules(document))} energy, run by run")
    if document.changes:
        yield changes(document, limit(3, verbose))
    if verbose:
        yield kernels(document, None)
        yield runs(document)
        yield from next_step(document)
    yield Notes(document.warnings[: limit(1, verbose)])


def next_step(document: History) -> Iterator[Point]:
    """The command that tells what changed at the latest change of the program; none without a change."""
    if steps := of_program(document):
        before, after = document.runs[steps[-1].run - 1], document.runs[steps[-1].run]
        yield Point("Why", f"`{shlex.join(['eprof', 'diff', before.path, after.path])}` tells what changed there.")


def subject(document: History) -> str:
    """One line on a history: how many runs, of how many commits, their dates and prices."""
    first, last = document.runs[0], document.runs[-1]
    commits = {run.commit for run in document.runs if run.commit}
    of = when(commits, f" of {whole(len(commits))} commits")
    costs = {run.costs for run in document.runs}
    of_reports = when(all(run.time_from == REPORT for run in document.runs), " (when reported)")
    dates = " to ".join(dict.fromkeys(run.time_utc[:10] for run in (first, last))) + of_reports
    priced = only(costs) or f"{len(costs)} different prices"
    return f"{counted(len(document.runs), 'run')}{of}, {dates} · costs {priced}"


def sparks(values: Sequence[float | None]) -> str:
    """The last 60 values as one block character each, from the least to the largest; a dot for None."""
    shown = values[-60:]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = ratio(len(_SPARKS) - 1, high - low) or 0.0
    return "".join("·" if value is None else _SPARKS[round((value - low) * scale)] for value in shown)


def changes(document: History, limit: int | None) -> Table:
    """Table of the changes of energy: of the whole program first, then of kernels, each by joules. limit: of rows."""
    by_size = sorted(document.changes, key=lambda change: -abs(change.after_j - change.before_j))
    ordered = sorted(by_size, key=lambda change: change.kernel is not None)
    shown = ordered[:limit]
    return table_of(
        shown,
        (Column("change of", "left"), lambda change: _name(change.kernel)),
        (Column("at", "left"), lambda change: label(document.runs[change.run])),
        (Column("before"), lambda change: Quantity(change.before_j, "J")),
        (Column("after"), lambda change: Quantity(change.after_j, "J")),
        (Column("change"), lambda change: Share(change.change_share, signed=True)),
        (Column("most of it", "left", ~Medium.TERMINAL), lambda change: _PARTS.get(change.because or "", "")),
        (Column("chance of no change", media=~Medium.TERMINAL), lambda change: percent(change.p)),
        is_total=lambda change: change.kernel is None,
        left_out=and_more(len(ordered) - len(shown), "change"),
    )


def _name(kernel: str | None) -> Cell:
    return mapped(lambda kernel: Name(short(kernel), kernel), kernel) or "whole program"


def kernels(document: History, limit: int | None) -> Table:
    """Table of kernels: the first and the last energy of each, and how many changes it has. limit: of rows."""
    nouns = document.runs[-1].nouns
    shown = document.kernels[:limit]
    changes = Counter(change.kernel for change in document.changes)
    return table_of(
        shown,
        (Column(nouns.kernel, "left"), lambda kernel: _name(kernel.name)),
        (Column("run by run", "left"), lambda kernel: sparks(kernel.energy_j[-_NARROW:])),
        (Column("first"), lambda kernel: Quantity(_known(kernel)[0], "J")),
        (Column("last"), lambda kernel: Quantity(_known(kernel)[-1], "J")),
        (Column("change"), lambda kernel: Share(growth(_known(kernel)[-1], _known(kernel)[0]), signed=True)),
        (Column("changes"), lambda kernel: str(changes[kernel.name] or "")),
        left_out=and_more(len(document.kernels) - len(shown), nouns.kernel),
    )


def _known(kernel: Kernel) -> Sequence[float | None]:
    """The energies of a kernel that are known, in the order of the runs; None alone where none is."""
    return [energy_j for energy_j in kernel.energy_j if energy_j is not None] or [None]


def runs(document: History) -> Table:
    """Table of the runs, the latest first."""
    return table_of(
        reversed(document.runs),
        (Column("run", "left"), lambda run: Name(run.path, run.path)),
        (Column("commit", "left"), lambda run: when(run.commit, label(run)) or "not recorded"),
        (Column("time, UTC", "left"), _minute),
        (Column("energy"), lambda run: Quantity(run.energy_j["total"], "J")),
        (Column("runs for"), lambda run: Quantity(run.time_s, "s")),
        (Column(document.runs[-1].nouns.processor, "left"), lambda run: run.device),
    )


def _minute(run: Run) -> str:
    return run.time_utc[:16].replace("T", " ")
