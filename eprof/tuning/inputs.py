"""From what users have to what settings are chosen from: kinds of input, predictions, the setting in force."""

from collections.abc import Mapping
from pathlib import Path

from eprof import costs
from eprof.base.errors import CostError, EprofError
from eprof.costs import CostTable
from eprof.energy.clocks import setting_of
from eprof.fitting.defaults import form_without_prior
from eprof.measurements import Measurements, mapping
from eprof.measurements.files import table as table_in
from eprof.profile.profile import Energy
from eprof.validation import protocols, run
from eprof.validation.models import FormModel
from eprof.validation.priced import price
from eprof.validation.run import Model
from eprof.validation.scores import Floats, score
from eprof.validation.study import Report

_HEAD_ROWS = 50
_TABLES = tuple(f".{kind}{packed}" for kind in ("csv", "tsv") for packed in ("", ".gz", ".bz2", ".zst"))


def is_measurements(path: Path) -> bool:
    """Whether a file holds measured power (a mapping knows its columns), and not what a profiler wrote."""
    if path.is_dir() or not path.exists():
        return False
    name = path.name.lower()
    if name.endswith(".parquet"):
        return True
    if not name.endswith(_TABLES):
        return False
    try:
        mapping.choose(table_in(path, _HEAD_ROWS), str(path))
    except (EprofError, ValueError):
        # A log of a profiler is no table from its first line on; whatever is wrong with it, its reader says it better.
        return False
    return True


def predicted(
    measured: Measurements,
    table: CostTable | None,
    processes: int | None = None,
    report: Report | None = None,
    asked: Measurements | None = None,
) -> tuple[Floats, Mapping[str, object], list[str]]:
    """Power of every row, (n,), W, with what predicted it and notes.

    By `table` as it is; without one by a fit that has not seen the kernel, or, where kernels have unknowns of their
    own, has not seen the setting. asked: the same rows with modelled times, if it is those that are to be predicted.
    Raises EprofError: one kernel only.
    """
    if table is not None:
        priced = price(table, asked or measured)
        return priced.power_w, _about(table, measured, priced.power_w), list(priced.notes)
    if len(measured.settings) < 2:
        raise EprofError("All rows are at one setting, so there is nothing to choose from.")
    protocol = protocols.LEAVE_ONE_SETTING_OUT if measured.own else protocols.LEAVE_ONE_BENCHMARK_OUT
    if not measured.own and measured.rows["benchmark"].nunique() < 2:
        raise EprofError("One kernel only: nothing else to fit a cost table to; name one with --costs.")
    model: Model = FormModel(form_without_prior(measured))
    folds = protocols.folds(protocol, measured.rows)

    def told(done: int, of: int) -> None:
        if report is not None:
            report("fitting without the kernel", done, of)

    watts = run.cross_validate(model, measured, folds, processes=processes, progress=told, asked=asked)
    errors = score(measured.power_w, watts)
    about = {"kind": "refit", "protocol": protocol, "power_error_percent": errors.mean_percent}
    return watts, about, []


def _about(table: CostTable, measured: Measurements, watts: Floats) -> Mapping[str, object]:
    return {
        "kind": "table",
        "name": table.name,
        "device": table.device,
        "source": table.source,
        "power_error_percent": score(measured.power_w, watts).mean_percent,
    }


def table_of(energy: Energy, named: str | None) -> CostTable:
    """The cost table that a profile was priced with."""
    assert energy.costs is not None
    name = named or (energy.profile.priced_as.pricing("costs") if energy.profile.priced_as is not None else None)
    return costs.load(str(name or energy.costs.name))


def setting_in_force(energy: Energy, table: CostTable, given: str | None) -> tuple[str, str]:
    """The setting at which a profile was taken, and a sentence on how it is known.

    In this order: `given`; what the run was told; what its meter or ncu saw; the table's default, an assumption.
    Raises CostError: a table with one setting only.
    """
    if table.default.core_mhz is None:
        raise CostError(f"{table.name} holds at one setting only, so there is nothing to choose from.")
    if given is not None:
        return _checked(given), ""
    told = energy.profile.priced_as.pricing("setting") if energy.profile.priced_as is not None else None
    if told:
        return _checked(str(told)), f"The profile was taken at {told} MHz, as its run directory says."
    seen = energy.profile.clocks
    label = None if seen is None else setting_of(table, seen)
    if seen is not None and label is not None:
        return label, f"The profile was taken at {label} MHz, as {seen.seen_by} saw."
    label = table.default.label
    return (
        label,
        f"The profile is taken to be from {label} MHz, the table's default; say so with --setting if it is not.",
    )


def _checked(label: str) -> str:
    return protocols.label(protocols.parse(label))
