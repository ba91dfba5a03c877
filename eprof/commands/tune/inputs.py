"""From what users have to what settings are chosen from: kinds of input, predictions, the setting in force."""

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import CostError, EprofError, UsageError
from eprof.commands.tune.schema import PowerModel
from eprof.costs import CostTable
from eprof.energy.clocks import setting_of
from eprof.lab.fitting.defaults import form_without_prior
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.reading import is_measurements
from eprof.lab.validation import protocols
from eprof.lab.validation.baselines import of_form
from eprof.lab.validation.cross_validation import Report, cross_validate
from eprof.lab.validation.priced import price
from eprof.lab.validation.scores import score
from eprof.profile.profile import Energy


def are_measurements(names: Iterable[str]) -> bool:
    """Whether the inputs to tune by are measurements and not logs. Raises UsageError: some are, some are not."""
    kinds = {is_measurements(Path(name)) for name in names}
    if len(kinds) > 1:
        raise UsageError("Some inputs are measurements, others are logs; tune one kind at a time.")
    return kinds.pop()


def predicted(
    measured: Measurements,
    table: CostTable | None,
    processes: int | None = None,
    report: Report | None = None,
    tested: Measurements | None = None,
) -> tuple[Floats, PowerModel, list[str]]:
    """Power of every measured row to tune by, (n,), W, with what predicted it and notes.

    By `table` as it is; without one by a fit that has not seen the kernel, or, where kernels have unknowns of their
    own, has not seen the setting. tested: the same rows with modelled times, if it is those that are to be predicted.
    Raises EprofError: one kernel only.
    """
    if table is not None:
        priced = price(table, tested or measured)
        error = score(measured.power_w, priced.power_w).mean_percent
        return priced.power_w, replace(power_model(table), power_error_percent=error), list(priced.notes)

    protocol = _protocol(measured)
    folds = protocols.folds(protocol, measured.rows)

    def progress(done: int, of: int) -> None:
        if report is not None:
            report("fitting without the kernel", done, of)

    model = of_form(form_without_prior(measured))
    watts = cross_validate(model, measured, folds, processes=processes, progress=progress, tested=tested)
    error = score(measured.power_w, watts).mean_percent
    return watts, PowerModel(kind="refit", protocol=protocol, power_error_percent=error), []


def _protocol(measured: Measurements) -> str:
    """By which validation protocol fits have not seen what they predict, for tuning."""
    if len(measured.settings) < 2:
        raise EprofError("All rows are at one setting, so there is nothing to choose from.")
    if measured.own:
        return protocols.LEAVE_ONE_SETTING_OUT
    if measured.rows["benchmark"].nunique() < 2:
        raise EprofError("One kernel only: nothing else to fit a cost table to; name one with --costs.")
    return protocols.LEAVE_ONE_BENCHMARK_OUT


def power_model(table: CostTable) -> PowerModel:
    """A cost table as what predicts the power at every setting."""
    return PowerModel(kind="table", name=table.name, device=table.device, source=table.source, basis=table.basis)


def setting_in_force(energy: Energy, table: CostTable, given: str | None) -> tuple[str, str]:
    """The setting at which a profile was taken, and a sentence on how it is known.

    In this order: `given`; what its run directory says; what its meter or ncu saw; the table's default, an assumption.
    Raises CostError: a table with one setting only.
    """
    if table.default.core_mhz is None:
        raise CostError(f"{table.name} holds at one setting only, so there is nothing to choose from.")
    if given is not None:
        return _checked(given), ""
    run_directory = energy.profile.priced_as
    recorded = str(run_directory.pricing("setting") or "") if run_directory is not None else ""
    if recorded:
        return _checked(recorded), f"The profile was taken at {recorded} MHz, as its run directory says."
    seen = energy.profile.clocks
    if seen is not None and (label := setting_of(table, seen)) is not None:
        return label, f"The profile was taken at {label} MHz, as {seen.seen_by} saw."
    label = table.default.label
    return (
        label,
        f"The profile is taken to be from {label} MHz, the table's default; say so with --setting if it is not.",
    )


def _checked(label: str) -> str:
    return protocols.label(protocols.parse(label))
