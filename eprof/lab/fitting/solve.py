"""Fits a form to measurements, evaluates a fit, and chooses the form that `eprof fit` takes by default.

[FMM] eq. 9 with voltages that need not be known. For given voltages the coefficients are a non-negative least-squares
problem, for given coefficients each voltage is the lowest point of a quartic (`search.py` alternates the two and then
goes on with Gauss-Newton steps). Absolute residuals are fitted by squares that are weighed again and again (IRLS).

The default was chosen by leaving benchmarks out of the public measurements (docs/fit.md): least squares; with a prior a
weak ridge and large residuals as absolute ones; least absolute residuals where there are wild rows or kernels.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.gpus import may_be_same
from eprof.base.optional import only
from eprof.base.resources import folder
from eprof.base.toml import Document
from eprof.base.vocabulary import CPU
from eprof.costs.estimate import chips
from eprof.counts.definition_files import capabilities_like
from eprof.lab.fitting.search import (
    CONSTANTS,
    HIGHEST,
    LOWEST,
    WATTS_PER_PJ,
    Form,
    Found,
    Layout,
    Search,
    Settings,
    Volts,
    moments,
    rows_of,
    scales,
    scales_at,
)
from eprof.lab.measurements.values import COUNTED, DOMAINS, MeasurementError, Measurements, wild

# The solver counts clocks in GHz.
_PER_GHZ = dict.fromkeys(CONSTANTS, 1.0) | {name: 1e3 for name in CONSTANTS if "mhz" in name}
_SOFT = 0.05  # relative: residuals well above it count as absolute ones, those well below as squares
_SMALLEST_RESIDUAL = 5e-3  # relative: below it an absolute residual is treated as a square, so that weights stay finite


class Fit(Struct, frozen=True, eq=False):
    """A fitted form.

    prices_pj: term -> pJ at V = 1 (pJ/V^2 where voltages are given); NaN: the energy of a benchmark of which there was
    no row. constants: `CONSTANTS` -> W/V, W, W/(MHz V^2).
    volts: domain -> clock in MHz -> volts, or relative to the reference. objective: the weighted sum of squares.
    """

    form: Form
    prices_pj: pd.Series
    constants: Mapping[str, float]
    volts: Mapping[str, pd.Series]
    domains: Mapping[str, str]
    reference: tuple[float, float]
    objective: float = 0.0
    rounds: int = 0

    def parts(self, measurements: Measurements) -> pd.DataFrame:
        """Watts of each fitted term and constant, (n, p). Raises MeasurementError: the measurements lack a term."""
        missing = [term for term in self.prices_pj.index if term not in measurements.rates]
        if missing:
            raise MeasurementError(f"The measurements have no {', '.join(missing)}, which the fit prices.")
        layout = Layout.of(self.domains, clock_tree=True)
        clocks = measurements.rows[["core_mhz", "memory_mhz"]].to_numpy(dtype=np.float64)
        scale = scales_at(layout, clocks / 1e3, self.voltages(measurements))
        rates = measurements.rates[list(self.prices_pj.index)].to_numpy(dtype=np.float64)
        units = np.column_stack([rates, np.ones((len(rates), len(CONSTANTS)))])
        # What a row does not do costs it nothing, known price or not.
        watts = np.where(units == 0, 0.0, units * scale * self._unknowns())
        return pd.DataFrame(watts, columns=list(layout.names))

    def predict(self, measurements: Measurements) -> Floats:
        """Power predicted by the fit, (n,), W; NaN for a benchmark that has its own energies and had no row."""
        return np.asarray(self.parts(measurements).to_numpy(dtype=np.float64).sum(axis=1))

    def voltages(self, measurements: Measurements) -> Floats:
        """The fit's core and memory voltage of each row, (n, 2); between its levels linear in MHz."""
        by_domain = []
        for domain in DOMAINS:
            volts = level_volts(self.volts[domain], measurements.rows[f"{domain}_mhz"].to_numpy(dtype=np.float64))
            if self.form.voltages == "given":
                own = measurements.rows[f"{domain}_v"].to_numpy(dtype=np.float64)
                volts = np.where(np.isnan(own), volts, own)
            by_domain.append(volts)
        return np.stack(by_domain, axis=1)

    def constant_w(self, volts: tuple[float, float], mhz: tuple[float, float]) -> float:
        """Constant power in W at core and memory voltages and clocks in MHz: what is drawn whatever the kernel does."""
        layout = Layout.of({}, clock_tree=True)
        scale = scales_at(layout, np.array([mhz]) / 1e3, np.array([volts]))
        return float((scale * self._unknowns()[len(self.prices_pj) :]).sum())

    def _unknowns(self) -> Floats:
        constants = [self.constants.get(name, 0.0) for name in CONSTANTS]
        clocked = [value * _PER_GHZ[name] for name, value in zip(CONSTANTS, constants, strict=True)]
        return np.concatenate([self.prices_pj.to_numpy(dtype=np.float64) * WATTS_PER_PJ, clocked])


def level_volts(curve: pd.Series, mhz: Floats) -> Floats:
    """Voltages at clocks in MHz: linear between levels of `curve`, and beyond, to 0.4 or 2 times its ends at most."""
    clocks = curve.index.to_numpy(dtype=np.float64)
    volts = curve.to_numpy(dtype=np.float64)
    between = np.interp(mhz, clocks, volts)
    if len(clocks) < 2:
        return np.asarray(between, dtype=np.float64)
    first = (volts[1] - volts[0]) / (clocks[1] - clocks[0])
    last = (volts[-1] - volts[-2]) / (clocks[-1] - clocks[-2])
    below = np.maximum(volts[0] + first * (mhz - clocks[0]), LOWEST * volts[0])
    above = np.minimum(volts[-1] + last * (mhz - clocks[-1]), HIGHEST * volts[-1])
    return np.select([mhz < clocks[0], mhz > clocks[-1]], [below, above], between)


def fit(measurements: Measurements, form: Form | None = None, seed: int = 0) -> Fit:
    """Fit `form` to all rows; `seed` is of the random starts. Raises MeasurementError for rows that cannot be fitted.

    What is not enough to tell the coefficients apart is fitted all the same (`quality.py` says so): that is no error.
    """
    chosen = form or Form()
    if not len(measurements):
        raise MeasurementError("There are no rows to fit.")
    settings = Settings.of(measurements)
    layout = Layout.of(measurements.domains, chosen.clock_tree, (len(settings.levels[0]), len(settings.levels[1])))
    rows = rows_of(measurements)
    weights = 1.0 / measurements.power_w
    # The levels whose voltage is 1: those of the reference, or the nearest that were measured.
    of_domains = zip(settings.levels, measurements.reference, strict=True)
    core, memory = (int(np.argmin(np.abs(clocks - mhz))) for clocks, mhz in of_domains)
    pins = core, memory
    search = Search(layout, settings, moments(rows, weights, settings), chosen, pins, float(len(rows)))
    best = search.best(_starts(measurements, settings, chosen, pins, seed))
    if chosen.loss != "l2":
        best = _reweighted(rows, weights, search, best)
    values = dict(zip(layout.names, best.unknowns.tolist(), strict=True))
    prices = pd.Series({term: values[term] / WATTS_PER_PJ for term in measurements.terms}, dtype="float64")
    if measurements.own:
        prices = prices.where((measurements.rates > 0).any())
    return Fit(
        form=chosen,
        prices_pj=prices,
        constants={name: values.get(name, 0.0) / _PER_GHZ[name] for name in CONSTANTS},
        volts={
            domain: pd.Series(best.volts[number], index=settings.levels[number], dtype="float64")
            for number, domain in enumerate(DOMAINS)
        },
        domains=dict(measurements.domains),
        reference=(float(settings.levels[0][pins[0]]), float(settings.levels[1][pins[1]])),
        objective=best.objective,
        rounds=best.rounds,
    )


def _reweighted(rows: Floats, weights: Floats, search: Search, best: Found) -> Found:
    """Improve `best` to the least sum of absolute or softened residuals: squares, weighed down where large, again."""
    settings = search.settings
    layout = search.layout
    for _ in range(12):
        scale = scales(layout, settings, best.volts)[settings.row]
        residual = np.abs((rows[:, :-1][:, layout.column] * scale) @ best.unknowns - rows[:, -1]) * weights
        down = np.sqrt(np.maximum(residual, _SMALLEST_RESIDUAL))
        if search.form.loss == "soft":
            down = (1 + (residual / _SOFT) ** 2) ** 0.25
        own = weights / down
        again = Search(layout, settings, moments(rows, own, settings), search.form, search.pins, search.number)
        best = again.descend(best.volts, alternating=0, most=2)
    return best


def _starts(measured: Measurements, settings: Settings, form: Form, pins: tuple[int, int], seed: int) -> list[Volts]:
    """Voltages for the fit to begin from: all 1; proportional to the clock in part and fully; then random, monotone."""
    if form.voltages == "given":
        own = []
        for domain, clocks in zip(DOMAINS, settings.levels, strict=True):
            means = measured.rows.groupby(f"{domain}_mhz")[f"{domain}_v"].mean().reindex(clocks)
            if means.isna().any():
                mhz = float(means.index[means.isna()][0])
                raise MeasurementError(f"The {domain} voltage at {mhz:g} MHz is not given; let voltages be estimated.")
            own.append(means.to_numpy(dtype=np.float64))
        return [(own[0], own[1])]
    if form.voltages == "one":
        return [(np.ones(len(settings.levels[0])), np.ones(len(settings.levels[1])))]
    random = np.random.default_rng(seed)
    slopes = [(0.0, 0.0), (0.5, 0.5), (0.8, 0.1), (0.1, 0.8), *random.uniform(0, 1, (max(form.starts, 1), 2))]
    starts = []
    for pair in slopes[: max(form.starts, 1)]:
        domains = zip(settings.levels, pins, pair, strict=True)
        core, memory = (1 + slope * (clocks / clocks[pin] - 1) for clocks, pin, slope in domains)
        starts.append((np.clip(core, LOWEST, HIGHEST), np.clip(memory, LOWEST, HIGHEST)))
    return starts


_RIDGE = 0.003
_OWN_RIDGE = 0.01  # of energies that belong to one benchmark each
_ENOUGH = 4  # terms that the prior must know
_MANY = 10  # kernels, so that a few of them can be told from the rest
_FAR = 1.8  # times the measured power, or its inverse
_FEW_OF = 0.2  # of the kernels


def form_for(measurements: Measurements, device: str | None = None) -> Form:
    """The default form for these measurements. `device`: their GPU, whose own data the prior then leaves out."""
    if measurements.own:
        return Form(ridge=ridge_for(measurements, None))
    if measurements.processor == CPU or not measurements.is_clocked:
        return Form(voltages="one", clock_tree=False, loss=_loss(measurements), starts=1)
    prior, loss = pooled(measurements, device), _loss(measurements)
    if prior and loss == "l2":
        loss = "soft"
    return Form(loss=loss, ridge=ridge_for(measurements, prior), prior=prior)


def ridge_for(measurements: Measurements, prior: Mapping[str, float] | None) -> float:
    """How strongly the default form draws energies to `prior`, or to zero where nothing was counted; 0: not at all."""
    if measurements.own:
        # Two unknown energies a benchmark: a few rows each tell them badly, and settings that are left out suffer.
        return _OWN_RIDGE
    return _RIDGE * bool(prior)


def form_without_prior(measurements: Measurements) -> Form:
    """The default form without a prior, so that no other GPU's energies can hold what is to be predicted."""
    default = form_for(measurements)
    if default.prior is None:
        return default
    return replace(default, ridge=0.0, prior=None)


def _loss(measurements: Measurements) -> str:
    """The default loss of a fit: "l2", or "l1" where single rows, or a few kernels as a whole, are far off."""
    if wild(measurements).any():
        return "l1"
    if measurements.own or measurements.rows["benchmark"].nunique() < _MANY:
        return "l2"
    steady = fit(measurements, Form(loss="l1", starts=1))
    return "l1" if len(far_off(measurements, steady.predict(measurements))) else "l2"


def far_off(measurements: Measurements, predicted_w: Floats) -> pd.Series:
    """Benchmark -> predicted over measured power (median), for the few off by a factor of 1.8; none if many are."""
    ratios = pd.Series(predicted_w / measurements.power_w).groupby(measurements.rows["benchmark"].to_numpy()).median()
    far = ratios[(ratios > _FAR) | (ratios < 1 / _FAR)].sort_values(ascending=False)
    return far if len(far) <= max(1, _FEW_OF * len(ratios)) else far.iloc[:0]


def prior_may_have_seen(form: Form, device: str | None) -> str | None:
    """A sentence if the prior may have seen the very measurements: nobody said which GPU they are of."""
    if form.prior is None or device is not None:
        return None
    return (
        f"No --device was given, so energies are drawn to those of all GPUs of the prior ({', '.join(known())}). If "
        "these measurements are of one of them, the prior has seen it, and errors of what is left out are too small."
    )


def pooled(measurements: Measurements, device: str | None = None) -> Mapping[str, float] | None:
    """The prior's energy of each term in pJ, the mean over GPUs like `device`; None: it knows fewer than 4 terms."""
    if measurements.kind != COUNTED or measurements.own or measurements.processor == CPU or not measurements.is_clocked:
        return None
    energies = mean([known()[name] for name in alike(known(), device)])
    of_terms = {term: energies[term] for term in measurements.terms if term in energies}
    return of_terms if len(of_terms) >= _ENOUGH else None


def mean(energies: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean energy of each term in pJ, over the GPUs that have it."""
    return {str(term): float(pj) for term, pj in pd.DataFrame(list(energies)).mean().items()}


def alike(names: Collection[str], device: str | None) -> list[str]:
    """The GPUs among `names` of one kind with `device`, without itself; all others where its kind is not known."""
    if device is None:
        return list(names)
    others = [name for name in names if not may_be_same(name, device)]

    def has_full_rate_fp64(name: str) -> bool | None:  # as GPUs for computing have, which are fitted alike
        known = (chips()[capability] for capability in capabilities_like(name) if capability in chips())
        return only({chip.full_rate for chip in known})

    kind = has_full_rate_fp64(device)
    return [name for name in others if has_full_rate_fp64(name) == kind] or others


@cache
def known() -> Mapping[str, Mapping[str, float]]:
    """The prior's energies, GPU -> term -> pJ, from `counters/measurements/priors/energies.toml`."""
    document = Document.read(folder("counters") / "measurements" / "priors" / "energies.toml")
    return {str(gpu["device"]): dict(gpu["pj"]) for gpu in document.data["gpu"]}
