"""Fits the form to measurements by alternating non-negative least squares; evaluates a fit.

[FMM] eq. 9 with voltages that need not be known: for given voltages the coefficients are a non-negative least-squares
problem, for given coefficients each voltage is the lowest point of a quartic; the two alternate until nothing moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from eprof.fitting.form import Form
from eprof.fitting.moments import (
    CONSTANTS,
    WATTS_PER_PJ,
    Floats,
    Layout,
    Settings,
    moments,
    rows_of,
    scales,
    scales_at,
)
from eprof.fitting.voltage import HIGHEST, LOWEST, around
from eprof.measurements.values import CORE, DOMAINS, MEMORY, MeasurementError, Measurements

_ROUNDS = 60
_ALTERNATING = 4
_STOP = 1e-7
Volts = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted form.

    prices_pj: term -> pJ at V = 1 (pJ/V^2 where voltages are given). constants: `CONSTANTS` -> W/V, W, W/(MHz V^2).
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
    about: Mapping[str, str] = field(default_factory=dict)

    def parts(self, measurements: Measurements) -> pd.DataFrame:
        """Watts of each term and constant, (n, p). A term that the measurements lack is an error."""
        missing = [term for term in self.prices_pj.index if term not in measurements.rates]
        if missing:
            raise MeasurementError(f"The measurements have no {', '.join(missing)}, which the fit prices.")
        layout = Layout.of(self.domains, clock_tree=True)
        clocks = measurements.rows[["core_mhz", "memory_mhz"]].to_numpy(dtype=np.float64)
        scale = scales_at(layout, clocks / 1e3, self.voltages(measurements))
        rates = measurements.rates[list(self.prices_pj.index)].to_numpy(dtype=np.float64)
        units = np.column_stack([rates, np.ones((len(rates), len(CONSTANTS)))])
        return pd.DataFrame(units * scale * self._unknowns(), columns=list(layout.names))

    def predict(self, measurements: Measurements) -> Floats:
        """Predicted power, (n,), W."""
        return self.parts(measurements).to_numpy(dtype=np.float64).sum(axis=1)

    def voltages(self, measurements: Measurements) -> Floats:
        """(n, 2): core and memory voltage of each row; between the levels of the fit linear in MHz."""
        found = []
        for domain in DOMAINS:
            volts = level_volts(self.volts[domain], measurements.rows[f"{domain}_mhz"].to_numpy(dtype=np.float64))
            if self.form.voltages == "given":
                own = measurements.rows[f"{domain}_v"].to_numpy(dtype=np.float64)
                volts = np.where(np.isnan(own), volts, own)
            found.append(volts)
        return np.stack(found, axis=1)

    def _unknowns(self) -> Floats:
        constants = [self.constants.get(name, 0.0) for name in CONSTANTS]
        clocked = [value * (1e3 if "mhz" in name else 1.0) for name, value in zip(CONSTANTS, constants, strict=True)]
        return np.concatenate([self.prices_pj.to_numpy(dtype=np.float64) * WATTS_PER_PJ, clocked])


def level_volts(curve: pd.Series, mhz: Floats) -> Floats:
    """Voltages at clocks: linear between the levels of `curve`, continued beyond its ends, within what is sensible."""
    clocks, volts = curve.index.to_numpy(dtype=np.float64), curve.to_numpy(dtype=np.float64)
    found = np.interp(mhz, clocks, volts)
    if len(clocks) > 1:
        first = (volts[1] - volts[0]) / (clocks[1] - clocks[0])
        last = (volts[-1] - volts[-2]) / (clocks[-1] - clocks[-2])
        found = np.where(mhz < clocks[0], np.maximum(volts[0] + first * (mhz - clocks[0]), 0.4 * volts[0]), found)
        found = np.where(mhz > clocks[-1], np.minimum(volts[-1] + last * (mhz - clocks[-1]), 2 * volts[-1]), found)
    return np.asarray(found, dtype=np.float64)


def fit(measurements: Measurements, form: Form | None = None, seed: int = 0) -> Fit:
    """Fit `form` to all rows. Raises MeasurementError if the rows cannot tell that many unknowns."""
    chosen = form or Form()
    if not len(measurements):
        raise MeasurementError("There are no rows to fit.")
    settings = Settings.of(measurements)
    layout = Layout.of(measurements.domains, chosen.clock_tree)
    rows = rows_of(measurements)
    weights = 1.0 / measurements.power_w if chosen.weights == "relative" else np.ones(len(rows)) / rows[:, -1].mean()
    solver = _Solver(layout, settings, moments(rows, weights, settings), chosen)
    best = solver.search(_starts(measurements, settings, chosen, seed), _pins(measurements, settings))
    return _made(measurements, chosen, settings, layout, best)


@dataclass(frozen=True, eq=False)
class _Found:
    unknowns: Floats
    volts: Volts
    objective: float
    rounds: int


class _Solver:
    """The problem in compressed form: (s, p, p) matrices and (s, p) vectors over the unknowns, before scaling."""

    def __init__(self, layout: Layout, settings: Settings, sums: Floats, form: Form) -> None:
        self.layout, self.settings, self.form = layout, settings, form
        column = layout.column
        self.matrix = sums[:, column][:, :, column]
        self.vector = sums[:, column, -1]
        self.square = float(sums[:, -1, -1].sum())

    def coefficients(self, volts: Volts) -> tuple[Floats, float]:
        """The best unknowns >= 0 for these voltages, and the sum of squares."""
        scale = scales(self.layout, self.settings, volts)
        gram = np.einsum("si,sj,sij->ij", scale, scale, self.matrix)
        right = np.einsum("si,si->i", scale, self.vector)
        unknowns, _ = _least(gram, right)
        return unknowns, float(unknowns @ gram @ unknowns - 2 * unknowns @ right + self.square)

    def voltages(self, unknowns: Floats, volts: Volts, domain: int, pinned: int) -> Floats:
        """The best voltages of a domain for these unknowns and the other domain's voltages."""
        layout = self.layout
        clock = self.settings.clocks[:, [domain]]
        mine = layout.domain == domain
        square = np.where(mine & (layout.power == 2), unknowns, 0.0) * np.where(layout.clocked, clock, 1.0)
        linear = np.broadcast_to(np.where(mine & (layout.power == 1), unknowns, 0.0), square.shape)
        rest = scales(layout, self.settings, volts) * np.where(mine, 0.0, unknowns)
        by_square, by_linear = (np.einsum("si,sij->sj", one, self.matrix) for one in (square, linear))
        quartics = np.stack(
            [
                (by_square * square).sum(axis=1),
                2 * (by_square * linear).sum(axis=1),
                (by_linear * linear).sum(axis=1)
                + 2 * (by_square * rest).sum(axis=1)
                - 2 * (square * self.vector).sum(axis=1),
                2 * (by_linear * rest).sum(axis=1) - 2 * (linear * self.vector).sum(axis=1),
                np.zeros(len(square)),
            ],
            axis=1,
        )
        levels = np.zeros((len(volts[domain]), 5))
        np.add.at(levels, self.settings.level[:, domain], quartics)
        return around(levels, pinned)

    def search(self, starts: list[Volts], pins: tuple[int, int]) -> _Found:
        """The best of the searches from all starts."""
        return min((self.descend(start, pins) for start in starts), key=lambda one: one.objective)

    def descend(self, volts: Volts, pins: tuple[int, int]) -> _Found:
        """Alternate for a few rounds, then take Gauss-Newton steps, until the sum of squares stays."""
        unknowns, objective = self.coefficients(volts)
        if self.form.voltages != "estimated":
            return _Found(unknowns, volts, objective, 1)
        count = 0
        while count < _ROUNDS:
            count += 1
            before = objective
            if count > _ALTERNATING:
                volts, unknowns, objective = self.line_search(volts, unknowns, objective, pins)
            if count <= _ALTERNATING or objective > before * (1 - _STOP):
                core = self.voltages(unknowns, volts, 0, pins[0])
                memory = self.voltages(unknowns, (core, volts[1]), 1, pins[1])
                volts = core, memory
                unknowns, objective = self.coefficients(volts)
            if before - objective <= _STOP * before:
                break
        return _Found(unknowns, volts, objective, count)

    def line_search(
        self, volts: Volts, unknowns: Floats, objective: float, pins: tuple[int, int]
    ) -> tuple[Volts, Floats, float]:
        """Go along the Gauss-Newton step as far as it helps; a mixture of monotone voltages is monotone."""
        target = self.newton(volts, unknowns, pins)
        part = 1.0
        for _ in range(5):
            mixed = [one + part * (other - one) for one, other in zip(volts, target, strict=True)]
            found, value = self.coefficients((mixed[0], mixed[1]))
            if value < objective:
                return (mixed[0], mixed[1]), found, value
            part /= 4
        return volts, unknowns, objective

    def newton(self, volts: Volts, unknowns: Floats, pins: tuple[int, int]) -> Volts:
        """The voltages of the joint least-squares problem, linear around these: increments between levels are >= 0."""
        scale = scales(self.layout, self.settings, volts)
        number = len(unknowns)
        both = np.stack([volts[at][self.settings.level[:, at]] for at in (0, 1)], axis=1)
        slopes = np.stack([self._slope(scale, unknowns, both, at) for at in (0, 1)], axis=2)
        steps = [_steps(len(volts[at]), pins[at]) for at in (0, 1)]
        # (s, p, u): what each unknown, energies and then increments of voltage, adds at each setting.
        design = np.zeros((len(scale), number, number + steps[0].shape[1] + steps[1].shape[1]))
        design[:, np.arange(number), np.arange(number)] = scale
        start = number
        for at in (0, 1):
            end = start + steps[at].shape[1]
            design[:, :, start:end] = slopes[:, :, [at]] * steps[at][self.settings.level[:, at]][:, None, :]
            start = end
        offset = np.einsum("spd,sd->sp", slopes, 1.0 - both)
        applied = self.matrix @ design
        gram = np.einsum("spi,spj->ij", design, applied)
        right = np.einsum("spi,sp->i", design, self.vector) - np.einsum("spi,sp->i", applied, offset)
        solution = _least(gram, right)[0]
        cut = number + steps[0].shape[1]
        moved = 1.0 + steps[0] @ solution[number:cut], 1.0 + steps[1] @ solution[cut:]
        return np.clip(moved[0], LOWEST, HIGHEST), np.clip(moved[1], LOWEST, HIGHEST)

    def _slope(self, scale: Floats, unknowns: Floats, both: Floats, at: int) -> Floats:
        """(s, p): the change of each unknown's part with the voltage of a domain."""
        layout = self.layout
        mine = np.where(layout.domain == at, layout.power, 0) * unknowns
        slope: Floats = scale * mine / both[:, [at]]
        return slope


def _steps(number: int, pinned: int) -> Floats:
    """(levels, levels - 1): voltages, less 1, from increments between neighbours outwards from the pinned level."""
    found = np.zeros((number, number - 1))
    for step in range(number - 1):
        if step < pinned:
            found[: step + 1, step] = -1.0
        else:
            found[step + 1 :, step] = 1.0
    return found


def _least(gram: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Non-negative least squares from normal equations: the solution, and the diagonal's square roots."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import nnls

    size = np.sqrt(np.diag(gram))
    used = np.where(size > 0, size, 1.0)
    scaled = gram / np.outer(used, used)
    scaled[np.diag_indices_from(scaled)] += 1e-12 + (size == 0)
    upper = cholesky(scaled, check_finite=False)
    solution, _ = nnls(upper, solve_triangular(upper, right / used, trans="T", check_finite=False))
    return np.where(size > 0, solution / used, 0.0), size


def _pins(measurements: Measurements, settings: Settings) -> tuple[int, int]:
    """The levels whose voltage is 1: those of the reference, or the nearest trained ones."""
    nearest = [int(np.argmin(np.abs(settings.levels[at] - measurements.reference[at]))) for at in (0, 1)]
    return nearest[0], nearest[1]


def _starts(measurements: Measurements, settings: Settings, form: Form, seed: int) -> list[Volts]:
    """Sets of voltages to begin from: all 1; proportional to the clock, by half and fully; then random, monotone ones."""
    if form.voltages == "given":
        return [_given(measurements, settings)]
    if form.voltages == "one":
        return [(np.ones(len(settings.levels[0])), np.ones(len(settings.levels[1])))]
    pins = _pins(measurements, settings)
    random = np.random.default_rng(seed)
    slopes = [(0.0, 0.0), (0.5, 0.5), (0.8, 0.1), (0.1, 0.8), *random.uniform(0, 1, (max(form.starts, 1), 2))]
    starts = []
    for pair in slopes[: form.starts]:
        volts = [_sloped(settings.levels[at], pins[at], float(pair[at])) for at in (0, 1)]
        starts.append((volts[0], volts[1]))
    return starts


def _sloped(clocks: Floats, pinned: int, slope: float) -> Floats:
    return np.clip(1 + slope * (clocks / clocks[pinned] - 1), LOWEST, HIGHEST)


def _given(measurements: Measurements, settings: Settings) -> Volts:
    found = []
    for at, domain in enumerate(DOMAINS):
        rows = measurements.rows
        means = rows.groupby(f"{domain}_mhz")[f"{domain}_v"].mean().reindex(settings.levels[at])
        if means.isna().any():
            clock = means.index[means.isna()][0]
            raise MeasurementError(f"The {domain} voltage at {clock:g} MHz is not given; let voltages be estimated.")
        found.append(means.to_numpy(dtype=np.float64))
    return found[0], found[1]


def _made(measurements: Measurements, form: Form, settings: Settings, layout: Layout, found: _Found) -> Fit:
    terms = measurements.terms
    values = dict(zip(layout.names, found.unknowns, strict=True))
    constants = {name: values.get(name, 0.0) / (1e3 if "mhz" in name else 1.0) for name in CONSTANTS}
    prices = pd.Series({term: values[term] / WATTS_PER_PJ for term in terms}, dtype="float64")
    volts = {
        domain: pd.Series(found.volts[at], index=settings.levels[at], dtype="float64")
        for at, domain in enumerate((CORE, MEMORY))
    }
    return Fit(
        form,
        prices,
        constants,
        volts,
        dict(measurements.domains),
        measurements.reference,
        found.objective,
        found.rounds,
    )
