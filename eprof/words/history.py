"""A history in plain words and tables, for the page, the terminal and Markdown alike."""

from collections.abc import Iterator, Sequence

from eprof.base.kernels import short
from eprof.base.known import growth
from eprof.base.text import listed
from eprof.history.results import REPORT
from eprof.history.schema import Change, History, Kernel, Run
from eprof.history.steps import LEAST
from eprof.words.blocks import Block, Column, Headline, Medium, Notes, Row, Sentence, Table, Tone, numbers, texts
from eprof.words.cells import Cell, Name, Quantity, Share, signed_quantity
from eprof.words.numbers import and_more, percent, quantity, signed_percent, whole
from eprof.words.view import bits

TITLE = "# Energy over time"
_CHANGES, _NOTES, _RUNS = 3, 1, 60
_SPARKS = "▁▂▃▄▅▆▇█"
_PARTS = {"computation": "computation", "data": "data movement", "constant": "constant power"}


def headline(document: History) -> Headline:
    """The headline of a history: the latest change of the whole program, or none; the noise, the last run."""
    number = len(document.runs)
    last = joules(document)[-1]
    steps = of_program(document)
    marks = bits(document.runs[-1].marks)
    if number < 2 * LEAST:
        runs = f"One run, which takes {quantity(last, 'J')}"
        if number > 1:
            runs = f"{whole(number)} runs, of which the last takes {quantity(last, 'J')}"
        return Headline(f"{runs}; changes can be found from four runs on.", "", marks)
    if not steps:
        text = f"No change in {whole(number)} runs that is more than noise; the last takes {quantity(last, 'J')}."
        return Headline(text, f"{_noise(document)} {_outlier(document)}".strip(), marks)
    step = steps[-1]
    verb = "grew" if step.after_j > step.before_j else "fell"
    by = quantity(step.after_j, "J")
    if step.change_share is not None:
        by = percent(abs(step.change_share))
    where = label(document.runs[step.run])
    text = f"Energy {verb} by {by} at {where}, from {quantity(step.before_j, 'J')} to {quantity(step.after_j, 'J')}."
    lead = [_reason(step), _earlier(len(steps) - 1), _noise(document), _outlier(document)]
    return Headline(text, " ".join(filter(None, lead)), marks)


def _earlier(number: int) -> str:
    if number == 1:
        return "One earlier change."
    return f"{number} earlier changes." if number else ""


def of_program(document: History) -> list[Change]:
    """The changes of the whole program in its history."""
    return [change for change in document.changes if change.kernel is None]


def joules(document: History) -> list[float]:
    """The energy of each run of a history."""
    return [run.energy_j["total"] or 0.0 for run in document.runs]


def label(run: Run) -> str:
    """A run of a history by its commit, with + where files differed from it; by its time without a commit."""
    if run.commit is None:
        return _minute(run)
    return run.commit[:9] + ("+" if run.changed else "")


def _reason(change: Change) -> str:
    """The reason of a change in the history."""
    words = []
    if change.because is not None and change.because_j is not None:
        words.append(f"Most of it is {_PARTS[change.because]} ({signed_quantity(change.because_j, 'J')}).")
    if change.also:
        words.append(f"The {listed(change.also)} changed there, too, which may be the reason.")
    return " ".join(words)


def _noise(document: History) -> str:
    """The noise of a history in words."""
    noise = document.noise
    if noise is None:
        return ""
    if noise.share < 1e-12:
        return "Repeats of a commit are identical."
    return f"Repeats of a commit differ by {percent(noise.share)} (standard deviation of {noise.runs} runs)."


def _outlier(document: History) -> str:
    """How far the last run of a history is from those before it, where it is too early to tell a change."""
    energies = joules(document)
    start = max((change.run for change in of_program(document)), default=0)
    before = energies[start:-1]
    mean = sum(before) / len(before) if before else 0.0
    if not mean or min(before) <= energies[-1] <= max(before):
        return ""
    share = signed_percent(energies[-1] / mean - 1)
    off = "the run before it" if len(before) == 1 else f"the mean of the {len(before)} runs before it"
    return f"The last run is {share} off {off}; one more run may tell whether that is a change."


def blocks(document: History, verbose: bool) -> Iterator[Block]:
    """A history, for a terminal and for Markdown; all changes, kernels and runs if `verbose`."""
    yield Sentence(f"{document.title} · {subject(document)}", Tone.QUIET)
    yield headline(document)
    yield Sentence(f"{sparks(joules(document))} energy, run by run")
    if document.changes:
        yield changes(document, None if verbose else _CHANGES)
    if verbose:
        yield kernels(document, None)
        yield runs(document)
    yield Notes(document.warnings if verbose else document.warnings[:_NOTES])


def subject(document: History) -> str:
    """Which runs a history is of, and with which prices."""
    first, last = document.runs[0], document.runs[-1]
    commits = {run.commit for run in document.runs if run.commit}
    of = f" of {whole(len(commits))} commits" if commits else ""
    costs = list(dict.fromkeys(run.costs for run in document.runs))
    of_reports = " (when reported)" if all(run.time_from == REPORT for run in document.runs) else ""
    dates = f"{first.time_utc[:10]} to {last.time_utc[:10]}{of_reports}"
    priced = costs[-1] if len(costs) == 1 else f"{len(costs)} different prices"
    return f"{whole(len(document.runs))} runs{of}, {dates} · costs {priced}"


def sparks(values: Sequence[float | None]) -> str:
    """The last runs of a history as blocks from the least to the largest; a dot where there is none."""
    shown = values[-_RUNS:]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(_SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join("·" if value is None else _SPARKS[round((value - low) * scale)] for value in shown)


def changes(document: History, limit: int | None) -> Table:
    """The changes of a history, those of the whole program first, then those of kernels by their joules."""
    by_size = sorted(document.changes, key=lambda change: -abs(change.after_j - change.before_j))
    ordered = sorted(by_size, key=lambda change: change.kernel is not None)
    shown = ordered[:limit]
    columns = [
        *texts("change of", "at"),
        *numbers("before", "after", "change"),
        Column("most of it", "left", ~Medium.TERMINAL),
        Column("by chance", media=~Medium.TERMINAL),
    ]
    rows = [_history_change(document, change) for change in shown]
    return Table(columns, rows, left_out=and_more(len(ordered) - len(shown), "changes"))


def _history_change(document: History, change: Change) -> Row:
    subject: Cell = "whole program"
    if change.kernel is not None:
        subject = _name(change.kernel)
    cells: list[Cell] = [
        subject,
        label(document.runs[change.run]),
        Quantity(change.before_j, "J"),
        Quantity(change.after_j, "J"),
        Share(change.change_share, signed=True),
        _PARTS.get(change.because or "", ""),
        percent(change.p),
    ]
    return Row(cells, total=change.kernel is None)


def _name(name: str) -> Name:
    return Name(short(name), name)


def kernels(document: History, limit: int | None) -> Table:
    """Each kernel's energies in a history, first and last, with how many changes it has."""
    nouns = document.runs[-1].nouns
    columns = [*texts(nouns.kernel, "run by run"), *numbers("first", "last", "growth", "changes")]
    rows = [_history_kernel(document, kernel) for kernel in document.kernels[:limit]]
    return Table(columns, rows, left_out=and_more(len(document.kernels) - len(rows), nouns.kernels))


def _history_kernel(document: History, kernel: Kernel) -> Row:
    known = [value for value in kernel.energy_j if value is not None]
    first, last = next(iter(known), None), next(reversed(known), None)
    number = sum(change.kernel == kernel.name for change in document.changes)
    amounts: list[Cell] = [Quantity(first, "J"), Quantity(last, "J"), Share(growth(last, first), signed=True)]
    return Row([_name(kernel.name), sparks(kernel.energy_j), *amounts, str(number or "")])


def runs(document: History) -> Table:
    """Each run of a history, the latest first."""
    processor = document.runs[-1].nouns.processor
    columns = [*texts("run", "commit", "time, UTC"), *numbers("energy", "runs for"), *texts(processor)]
    return Table(columns, [_history_run(run) for run in reversed(document.runs)])


def _history_run(run: Run) -> Row:
    commit = "not recorded"
    if run.commit:
        commit = label(run)
    amounts = Quantity(run.energy_j["total"], "J"), Quantity(run.time_s, "s")
    return Row([Name(run.path, run.path), commit, _minute(run), *amounts, run.device])


def _minute(run: Run) -> str:
    return run.time_utc[:16].replace("T", " ")
