"""How well measurements determine a fit: `Quality`, with intervals, collinear terms, errors on rows left out, ranges.

Intervals come from a bootstrap over benchmarks, not over rows: the settings of one benchmark err together, so rows
drawn one by one would promise far too much.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import pandas as pd
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.text import brief, counted
from eprof.base.vocabulary import CPU
from eprof.lab.fitting import cross_validation
from eprof.lab.fitting.cross_validation import BASELINES_WITHOUT_COUNTS, LINEAR_BASELINE, Model, Progress, Report
from eprof.lab.fitting.solve import CONSTANTS, Fit, Form, Layout, Settings, far_off, fit, pooled, rows_of, scales
from eprof.lab.measurements.values import Measurements

FIRST = "No better than a plain mean"


def no_better(where: str, ours: float | None, others: Mapping[str, float | None]) -> str | None:
    """A warning if a baseline (`others`: name -> error in %) predicts power no worse than eprof (`ours`); else None."""
    known = [(error, name) for name, error in others.items() if error is not None and np.isfinite(error)]
    error, name = min(known, default=(np.inf, ""))
    if ours is None or not np.isfinite(ours) or error > ours:
        return None
    end = "What energies add to it does not show in these rows."
    if name == LINEAR_BASELINE and "kernels" not in where:
        end = "That mean knows each kernel's own measured power; counts are for kernels without."
    return f"{FIRST} {where}: {name} is {error:.1f} % off there, eprof {ours:.1f} %. {end}"


REPLICAS = 40
_MIDDLE = (0.05, 0.95)  # of what replicas say: the interval, NaN where none says anything
_PRIOR_SPREAD = float(np.log(2.0))  # of the logarithm: how far energies of one GPU are from those of another
_COLLINEAR = 30.0  # condition index above which columns are said to be collinear (Belsley, Kuh, Welsch 1980)
_SINGULAR = 1e12  # no column is better known than this: exactly collinear
_SHARE = 0.5  # of a coefficient's variance along such a direction
_FEW = 3  # energies to compare with those of other GPUs
_SUSPICIOUS = 30.0  # times those, up or down: generations of GPUs differ by less than ten
_LITTLE = 0.05  # of the power
_TELLS = 3.0  # an energy is told if its interval spans no more than this factor
TOLD, LOOSE, UNTOLD = "told", "loosely", "not told"


class Quality(Struct, frozen=True, eq=False):
    """How well a fit is determined. Intervals are the middle 90 % of replicas, which are fits to resampled benchmarks.

    replicas: (r, terms + constants), as in `Fit`; NaN: no benchmark in it has the term. `constant_w` at the
    reference setting. intervals: by coefficient, low and high, of the replicas that know it. status: by term, whether
    the data tell it. condition: of the columns at unit length. collinear: columns that cannot be told apart. errors:
    protocol -> mean absolute relative error in %. plain: the same of what names and clocks alone predict, by model.
    within: the factor, up or down, that nine of ten predictions of kernels left out are right to; NaN: none was.
    """

    replicas: pd.DataFrame
    intervals: pd.DataFrame
    constant_w: tuple[float, float, float]
    status: pd.Series
    condition: float
    collinear: tuple[tuple[str, ...], ...]
    ranges: pd.DataFrame
    errors: dict[str, float]
    notes: tuple[str, ...]
    plain: dict[str, dict[str, float]] = field(default_factory=dict)
    within: float = float("nan")


def examine(
    measurements: Measurements,
    fitted: Fit,
    replicas: int = REPLICAS,
    leaving_out: Iterable[str] = ("setting", "benchmark"),
    progress: Report | None = None,
) -> Quality:
    """The `Quality` of a fit, by refits to resampled benchmarks, and without each setting or benchmark (`leaving_out`).

    progress: called with (what is done, k, n).
    """
    again = bootstrap(measurements, fitted.form, replicas, progress)
    values = [[*replica.prices_pj, *(replica.constants[name] for name in CONSTANTS)] for replica in again]
    table = pd.DataFrame(values, columns=[*measurements.terms, *CONSTANTS], dtype=np.float64)
    intervals = table.quantile(_MIDDLE).T.set_axis(["low", "high"], axis=1)
    condition, together = collinearity(measurements, fitted)
    errors = {"fit": error(fitted.predict(measurements), measurements.power_w)}
    plain: dict[str, dict[str, float]] = {}
    notes: list[str] = []
    factor = float("nan")
    number = measurements.rows["benchmark"].nunique()
    for by in leaving_out:
        several = {"setting": len(measurements.settings), "benchmark": number}[by]
        if several < 2 or (measurements.own and by == "benchmark"):
            continue  # there is no other to predict it from
        report = progress and partial(progress, f"leave one {by} out")
        predicted = left_out(cross_validation.of_form(replace(fitted.form, starts=1)), measurements, by, report)
        name, known = f"leave_one_{by}_out", ~np.isnan(predicted)
        errors[name] = error(predicted, measurements.power_w)
        by_mean = {model.name: left_out(model, measurements, by) for model in BASELINES_WITHOUT_COUNTS}
        plain[name] = {mean: error(watts[known], measurements.power_w[known]) for mean, watts in by_mean.items()}
        if unknown := int((~known).sum()):
            notes.append(
                f"{unknown} rows could not be predicted with their {by} left out, and are in no error: nothing else "
                "tells."
            )
        if by == "benchmark":
            factor = within(predicted, measurements)
            # The few whose power, at most settings, is far from what all the others say.
            far = far_off(measurements, predicted)
            if len(far):
                worst = list(far.items())[:4]
                named = ", ".join(f"{brief(str(kernel), 40)} ({ratio:.2g} times)" for kernel, ratio in worst)
                notes.append(
                    f"{len(far)} of {number} kernels do not go with the others: left out, their power is predicted as "
                    f"{named} the measured one. Either they do what was not counted, or the meter saw them idle; their "
                    "rows are used."
                )
    not_better = [no_better(cross_validation.LEFT_OUT[name], errors[name], simple) for name, simple in plain.items()]
    watts = pd.Series([replica.constant_w((1.0, 1.0), fitted.reference) for replica in again], dtype=np.float64)
    low_w, high_w = watts.quantile(_MIDDLE)
    return Quality(
        replicas=table,
        intervals=intervals,
        constant_w=(fitted.constant_w((1.0, 1.0), fitted.reference), low_w, high_w),
        status=certainty(intervals.loc[fitted.prices_pj.index]),
        condition=condition,
        collinear=together,
        ranges=ranges(measurements),
        errors=errors,
        notes=(*filter(None, not_better), *notes, *_doubts(measurements, fitted)),
        plain=plain,
        within=factor,
    )


def left_out(model: Model, measurements: Measurements, by: str, progress: Progress | None = None) -> Floats:
    """Each row's power in W, (n,), by a model trained without its setting, or benchmark, of which there are several."""
    folds = cross_validation.folds(f"leave_one_{by}_out", measurements.rows)
    return cross_validation.cross_validate(model, measurements, folds, processes=1, progress=progress)


def certainty(intervals: pd.DataFrame) -> pd.Series:
    """How well the data determine each energy of a fit, by its interval: TOLD (well), LOOSE or UNTOLD (not at all)."""
    status = pd.Series(LOOSE, index=intervals.index, dtype=object)
    status[intervals["high"] <= _TELLS * intervals["low"]] = TOLD
    status[~(intervals["low"] > 0)] = UNTOLD
    return status


def too_few_rows(measurements: Measurements, form: Form) -> str | None:
    """A sentence if rows are fewer than the unknowns of `form`: energies that vary, parts of constant power, volts."""
    rows, energies = len(measurements), len(measurements.terms)
    if not measurements.own:
        energies = int((measurements.rates.nunique() > 1).sum())
    levels = [measurements.rows[name].nunique() - 1 for name in ("core_mhz", "memory_mhz")]
    constants = 1 + (1 + form.clock_tree) * sum(number > 0 for number in levels)
    volts = (form.voltages == "estimated") * sum(levels)
    unknowns = energies + constants + volts
    if rows >= unknowns:
        return None
    return (
        f"{counted(rows, 'row')} cannot tell {unknowns} unknowns ({energies} energies, {constants} of constant power, "
        f"{volts} voltages)"
    )


def error(predicted: Floats, measured: Floats) -> float:
    """The mean absolute relative error of predicted power in %, over the rows that have one; NaN if none has."""
    off = np.abs(predicted / measured - 1)
    known = off[~np.isnan(off)]
    return float(100 * known.mean()) if len(known) else float("nan")


def within(predicted_w: Floats, measurements: Measurements) -> float:
    """The factor, up or down, within which nine of ten predictions of new kernels are; NaN if there are none.

    Of k kernels that were left out the share (k + 1) / k of nine tenths is taken, so that the next one is in it.
    """
    off = np.abs(np.log(predicted_w / measurements.power_w))
    known = ~np.isnan(off)
    if not known.any():
        return float("nan")
    number = measurements.rows["benchmark"][known].nunique()
    return float(np.exp(np.quantile(off[known], min(1.0, 0.9 * (number + 1) / number))))


def bootstrap(measurements: Measurements, form: Form, number: int, progress: Report | None = None) -> list[Fit]:
    """Fit `number` times to benchmarks drawn with replacement, and to a prior varied at random; [] without counts.

    The price of a term that no benchmark drawn has is NaN there: such a fit tells nothing of it, and it is not 0.
    """
    if measurements.own:
        return []
    random = np.random.default_rng(0)
    codes, names = pd.factorize(measurements.rows["benchmark"])
    members = [np.flatnonzero(codes == code) for code in range(len(names))]
    quick = replace(form, starts=1)
    fits = []
    for done in range(number):
        if progress:
            progress("bootstrap", done + 1, number)
        drawn = random.integers(0, len(names), len(names))
        rows = measurements.take(np.concatenate([members[code] for code in drawn]))
        prior = form.prior
        if prior is not None:
            # As another GPU might have given it: intervals must not be narrow for want of data.
            prior = {term: float(pj * np.exp(_PRIOR_SPREAD * random.normal())) for term, pj in prior.items()}
        again = fit(rows, replace(quick, prior=prior))
        is_seen = (rows.rates > 0).any().to_numpy()
        fits.append(replace(again, prices_pj=again.prices_pj.where(is_seen)))
    return fits


def collinearity(measurements: Measurements, fitted: Fit) -> tuple[float, tuple[tuple[str, ...], ...]]:
    """The condition number of a fit's weighted columns at unit length, and groups of columns not to be told apart."""
    if measurements.own:
        return float("nan"), ()
    settings = Settings.of(measurements)
    layout = Layout.of(measurements.domains, fitted.form.clock_tree, settings.sizes)
    curves = zip(fitted.volts.values(), settings.of_domain, strict=True)
    volts = np.concatenate([curve.reindex(settings.levels[levels]).to_numpy() for curve, levels in curves])
    scale = scales(layout, settings, volts)[settings.row]
    design = rows_of(measurements)[:, :-1][:, layout.column] * scale / measurements.power_w[:, None]
    length = np.linalg.norm(design, axis=0)
    names = [name for name, size in zip(layout.names, length, strict=True) if size > 0]
    unit = design[:, length > 0] / length[length > 0]
    _, values, vectors = np.linalg.svd(unit, full_matrices=False)
    values = np.maximum(values, 1e-15)
    parts = (vectors / values[:, None]) ** 2
    shares = parts / parts.sum(axis=0)
    groups = []
    for index, row in zip(values[0] / values, shares, strict=True):
        group = tuple(name for name, share in zip(names, row, strict=True) if share > _SHARE)
        if index > _COLLINEAR and len(group) > 1:
            groups.append(group)
    return min(float(values[0] / values[-1]), _SINGULAR), tuple(groups)


def ranges(measurements: Measurements) -> pd.DataFrame:
    """A table of the least and the largest measured clock, power and rate (1e9 a second): columns low and high."""
    clocks = ["core_mhz", "memory_mhz"] if measurements.is_clocked and measurements.processor != CPU else []
    seen = measurements.rows[[*clocks, "power_w"]]
    if not measurements.own:
        seen = seen.join(measurements.rates)
    return pd.DataFrame({"low": seen.min(), "high": seen.max()}, dtype=np.float64)


def _doubts(measurements: Measurements, fitted: Fit) -> Iterator[str]:
    """Warnings of a fit: on energies that look like a wrong unit or time, and on intervals from few benchmarks."""
    others, prices = pooled(measurements) or {}, fitted.prices_pj
    ratios = [prices[term] / pj for term, pj in others.items() if pj > 0 and term in prices and prices[term] > 0]
    middle = float(np.exp(np.median(np.log(ratios)))) if len(ratios) >= _FEW else 1.0
    counted_share = 1.0
    if not measurements.own and len(measurements.terms):
        parts = fitted.parts(measurements)
        counted_share = float((parts[list(measurements.terms)].sum(axis=1) / parts.sum(axis=1)).median())
    if counted_share < _LITTLE:
        yield (
            f"What was counted takes {100 * counted_share:.2g} % of the predicted power in the middle row, the rest is "
            "constant: these kernels do little, or the time is not that of one launch, as counts are, or in another "
            "unit (ms, s)."
        )
    elif not 1 / _SUSPICIOUS < middle < _SUSPICIOUS:
        yield (
            f"Energies are {middle:.2g} times those of other GPUs: is the time that of one launch, as counts are, and "
            "in the unit that the mapping says (ms against s)?"
        )
    number = measurements.rows["benchmark"].nunique()
    if number < 10 and not measurements.own:
        note = f"There are {number} benchmarks: intervals from so few are rough, most likely too narrow."
        if fitted.form.prior is not None:
            note += " Energies lean on the prior, and intervals show the draw, not its error: see --prior none."
        yield note
