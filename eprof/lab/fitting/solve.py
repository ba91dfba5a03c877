"""The fit of power to measurements: its form, the search for prices and voltages, and which form is the default.

[FMM] eq. 9 with voltages that need not be known. For given voltages the coefficients are a non-negative least-squares
problem, for given coefficients each voltage is the lowest point of a quartic; `Search` alternates the two. Then it goes
on with Gauss-Newton steps, which keep all bounds: energies and the increments of voltage from level to level are the
unknowns of one non-negative least-squares problem, linear around the present voltages. They need about ten rounds where
plain alternation takes hundreds. Nothing says that the lowest point they find is the only one: `Form.starts` are tried,
and docs/fit.md tells how often that mattered. Absolute residuals are fitted by squares, weighed again and again (IRLS).

The default was chosen by leaving benchmarks out of the public measurements (docs/fit.md): least squares; with a prior a
weak ridge and large residuals as absolute ones; least absolute residuals where there are wild rows or kernels.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints
from eprof.base.gpus import may_be_same
from eprof.base.optional import only
from eprof.base.resources import folder
from eprof.base.text import when
from eprof.base.toml import Document
from eprof.base.vocabulary import CPU
from eprof.costs.estimate import chips
from eprof.counts.definition_files import capabilities_like
from eprof.lab.measurements.values import CORE, COUNTED, DOMAINS, MeasurementError, Measurements, wild

VOLTAGES = ("estimated", "given", "one")
LOSSES = ("l1", "l2", "soft")


class Form(Struct, frozen=True):
    """What is fitted, and how. The defaults are those that a bare `fit` takes; `eprof fit` adds loss, ridge and prior.

    voltages: "estimated" (a free one a clock level), "given" (columns of the measurements), "one" (V = 1 everywhere).
    clock_tree: whether power that goes with clock times V^2 is a term. loss: the least sum of relative residuals, "l1"
    of absolute ones, "l2" of squares, "soft" of what is a square for small and absolute for large ones.
    ridge: how strongly an energy that is off its prior by a factor of two counts, in units of a row that is 100 % off,
    for every row; with no `prior` (pJ) all energies are drawn to zero, in proportion to what they contribute. starts:
    how many sets of voltages the search begins from.
    """

    voltages: str = "estimated"
    clock_tree: bool = True
    loss: str = "l2"
    ridge: float = 0.0
    prior: Mapping[str, float] | None = None
    starts: int = 3

    def __post_init__(self) -> None:
        for name, known in (("voltages", VOLTAGES), ("loss", LOSSES)):
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} is {value!r}; use one of: {', '.join(known)}")

    @property
    def words(self) -> str:
        """How a fit was made, as a phrase: voltages, clock tree, weights of rows, loss, and ridge towards a prior."""
        clock_tree = when(not self.clock_tree, "no ") + "clock tree"
        losses = {"l1": "least absolute residuals", "l2": "least squares", "soft": "squares, absolute when large"}
        phrases = [f"voltages {self.voltages}", clock_tree, "relative weights", losses[self.loss]]
        if self.ridge:
            phrases.append(f"ridge {self.ridge:g} towards {'a prior' if self.prior else 'zero'}")
        return ", ".join(phrases)


CONSTANTS = ("core_w_per_v", "memory_w_per_v", "w", "core_w_per_mhz_v2", "memory_w_per_mhz_v2")
# A rate of 1e9 events a second times 1 pJ is 1e-3 W; clock-tree terms count clocks in GHz inside the solver.
WATTS_PER_PJ = 1e-3


class Layout(Struct, frozen=True, eq=False):
    """The unknowns of a fit, (p,): energies of terms in nJ, then constant power. domain: -1 none, 0 core, 1 memory.

    power: the exponent of the domain's voltage that an unknown goes with. clocked: whether it goes with the clock, too.
    column: which of z = (rates, 1) it belongs to.
    """

    names: tuple[str, ...]
    domain: Ints
    power: Ints
    clocked: Bools
    column: Ints

    @classmethod
    def of(cls, domains: Mapping[str, str], clock_tree: bool, levels: tuple[int, int] = (2, 2)) -> "Layout":
        """The unknowns of a fit. domains: term -> "core" or "memory"; levels: how many clocks each of the two ran at.

        Constant power of a domain that ran at one clock has no unknown of its own: the constant `w` has it.
        """
        terms = list(domains)
        constants = {"core_w_per_v": (0, 1, False), "memory_w_per_v": (1, 1, False), "w": (-1, 0, False)}
        if clock_tree:
            constants |= {"core_w_per_mhz_v2": (0, 2, True), "memory_w_per_mhz_v2": (1, 2, True)}
        kept = {name: about for name, about in constants.items() if about[0] < 0 or levels[about[0]] > 1}
        of_terms = [(int(domains[term] != CORE), 2, False) for term in terms]
        domain, power, clocked = np.array([*of_terms, *kept.values()], dtype=np.int64).T
        column = np.array([*range(len(terms)), *[len(terms)] * len(kept)], dtype=np.int64)
        return cls((*terms, *kept), domain, power, clocked.astype(np.bool_), column)


class Settings(Struct, frozen=True, eq=False):
    """The settings of measured rows. clocks: (s, 2) core and memory GHz; level: (s, 2) places of both in `levels`.

    levels: (l,) MHz, those of the core, ascending, then those of memory; `of_domain`: where those of each are.
    """

    clocks: Floats
    levels: Floats
    of_domain: tuple[slice, slice]
    level: Ints
    row: Ints

    @classmethod
    def of(cls, measurements: Measurements) -> "Settings":
        """Find the different settings of the measurements; `row`, (n,), says which of them each measured row is at."""
        pairs = measurements.rows[["core_mhz", "memory_mhz"]].to_numpy(dtype=np.float64)
        clocks, row = np.unique(pairs, axis=0, return_inverse=True)
        (core, at_core), (memory, at_memory) = (np.unique(clock, return_inverse=True) for clock in clocks.T)
        level = np.stack([at_core, len(core) + at_memory], axis=1)
        of_domain = slice(0, len(core)), slice(len(core), len(core) + len(memory))
        return cls(clocks / 1e3, np.concatenate([core, memory]), of_domain, level, row.reshape(-1))

    @property
    def sizes(self) -> tuple[int, int]:
        """How many clocks core and memory ran at."""
        core, memory = self.of_domain
        return core.stop, memory.stop - memory.start


def rows_of(measurements: Measurements) -> Floats:
    """The measurements as a matrix, (n, k + 2): rates of the k terms in 1e9 a second, 1, measured power in W."""
    rates = measurements.rates.to_numpy(dtype=np.float64)
    return np.column_stack([rates, np.ones(len(rates)), measurements.power_w])


def moments(rows: Floats, weights: Floats, settings: Settings) -> Floats:
    """Moments of the measurements, (s, k + 2, k + 2): for each setting the sum of w^2 z^T z over its rows."""
    weighted = rows * weights[:, None]
    parts = (weighted[settings.row == setting] for setting in range(len(settings.clocks)))
    return np.stack([part.T @ part for part in parts])


def scales(layout: Layout, settings: Settings, volts: Floats) -> Floats:
    """The factor of each unknown at each setting, (s, p): V, V^2, f V^2 or 1. volts: of all levels, (l,)."""
    return scales_at(layout, settings.clocks, volts[settings.level])


def scales_at(layout: Layout, clocks: Floats, volts: Floats) -> Floats:
    """The factor of each unknown at clocks (n, 2) in GHz and voltages (n, 2): V, V^2, f V^2 or 1; (n, p)."""
    columns = np.maximum(layout.domain, 0)  # of an unknown of no domain `power` is 0, so nothing of its column is used
    volt = volts.take(columns, axis=1)
    scale = np.where(layout.power > 0, volt, 1.0)
    scale *= np.where(layout.power > 1, volt, 1.0)
    scale *= np.where(layout.clocked, clocks.take(columns, axis=1), 1.0)
    return scale


LOWEST, HIGHEST = 0.4, 2.0
_GRID = np.linspace(0.0, 1.0, 17)


def lowest_points(quartics: Floats, low: Floats, high: Floats) -> Floats:
    """The voltages where each quartic (l, 5; highest power first) is least in [low, high]: a grid, then Newton."""
    points = low[:, None] + (high - low)[:, None] * _GRID
    a, b, c, d, e = quartics.T[:, :, None]
    best = np.argmin((((a * points + b) * points + c) * points + d) * points + e, axis=1)
    step = (high - low) / (len(_GRID) - 1)
    volts: Floats = low + step * best
    left, right = np.maximum(volts - step, low), np.minimum(volts + step, high)
    a, b, c, d, _ = quartics.T
    for _ in range(7):
        slope = ((4 * a * volts + 3 * b) * volts + 2 * c) * volts + d
        bend = (12 * a * volts + 6 * b) * volts + 2 * c
        with np.errstate(divide="ignore", invalid="ignore"):
            move = np.where(bend > 0, slope / bend, 0.0)
        volts = np.clip(volts - move, left, right)
    return volts


def monotone(quartics: Floats, low: Floats, high: Floats) -> Floats:
    """(l,) voltages within their bounds, none below the one before it, that make the sum of the quartics least."""
    volts = lowest_points(quartics, low, high)
    if len(volts) < 2 or (np.diff(volts) >= 0).all():
        return volts
    blocks: list[tuple[Floats, int, float]] = []
    for level, quartic in enumerate(quartics):
        pooled = quartic
        size = 1
        lowest = float(volts[level])
        while blocks and blocks[-1][2] > lowest:
            below, size_below, _ = blocks.pop()
            pooled = pooled + below
            size += size_below
            lowest = float(lowest_points(pooled[None], low[[level]], high[[level]])[0])
        blocks.append((pooled, size, lowest))
    return np.concatenate([np.full(size, lowest) for _, size, lowest in blocks])


_STOP = 1e-7
_HELD = 4.0  # how strongly the common factor of the prior is held to 1, in terms
_JITTER = 1e-12  # of a diagonal that is 1: keeps a matrix whole whose columns are collinear


class Found(Struct, frozen=True, eq=False):
    """Where a fit's `Search` ended: unknowns (p,), voltages of the levels, sum of squares with ridge, rounds taken."""

    unknowns: Floats
    volts: Floats
    objective: float
    rounds: int


class Search:
    """The search for a fit's unknowns and voltages, on (s, p, p) matrices and (s, p) vectors in place of the rows."""

    def __init__(
        self, layout: Layout, settings: Settings, sums: Floats, form: Form, pins: tuple[int, int], number: float
    ) -> None:
        """`sums`: `moments` of the rows; `pins`: the level of each domain whose voltage is 1; `number` of rows."""
        self.layout, self.settings, self.form, self.pins = layout, settings, form, pins
        column = layout.column
        self.matrix = sums[:, column][:, :, column]
        self.vector = sums[:, column, -1]
        self.square = float(sums[:, -1, -1].sum())
        self.ridge = _ridge(layout, self.matrix, form, number)
        # (levels, levels - 2): how increments between neighbouring levels of a domain become voltages less 1.
        domain, pin = (np.repeat(each, settings.sizes)[:, None] for each in ((0, 1), pins))
        here, step = np.ogrid[: len(domain), : len(domain) - 1]
        moves = ((here > step) & (step >= pin)) * 1.0 - ((here <= step) & (step < pin))
        self.steps = np.delete(np.where(domain == domain[:-1].T, moves, 0.0), settings.sizes[0] - 1, axis=1)

    def descend(self, volts: Floats, alternating: int = 4, most: int = 60) -> Found:
        """Search from `volts`: alternate a few rounds, then take Gauss-Newton steps, until the sum of squares stays."""
        unknowns, objective = self.coefficients(volts)
        if self.form.voltages != "estimated":
            return Found(unknowns, volts, objective, 1)
        count = 0
        while count < most:
            count += 1
            before = objective
            if count > alternating:
                volts, unknowns, objective = self._line_search(volts, unknowns, objective)
            if count <= alternating or objective > before * (1 - _STOP):
                volts = self.voltages(unknowns, self.voltages(unknowns, volts, 0), 1)
                unknowns, objective = self.coefficients(volts)
            if before - objective <= _STOP * before:
                break
        return Found(unknowns, volts, objective, count)

    def coefficients(self, volts: Floats) -> tuple[Floats, float]:
        """The best unknowns >= 0 for these voltages, (p,), and the sum of squares with ridge."""
        scale = scales(self.layout, self.settings, volts)
        gram = np.einsum("si,sj,sij->ij", scale, scale, self.matrix)
        right = np.einsum("si,si->i", scale, self.vector)
        gram, right = gram + self.ridge.matrix, right + self.ridge.vector
        unknowns = _least(gram, right)
        return unknowns, float(unknowns @ gram @ unknowns - 2 * unknowns @ right) + self.square + self.ridge.constant

    def voltages(self, unknowns: Floats, volts: Floats, domain: int) -> Floats:
        """The voltages with the best ones for a domain's levels, for these unknowns and the other domain's voltages."""
        layout = self.layout
        clock = self.settings.clocks[:, [domain]]
        mine = layout.domain == domain
        square = np.where(mine & (layout.power == 2), unknowns, 0.0) * np.where(layout.clocked, clock, 1.0)
        linear = np.broadcast_to(np.where(mine & (layout.power == 1), unknowns, 0.0), square.shape)
        rest = scales(layout, self.settings, volts) * np.where(mine, 0.0, unknowns)
        by_square = np.einsum("si,sij->sj", square, self.matrix)
        by_linear = np.einsum("si,sij->sj", linear, self.matrix)
        quartics = np.zeros((len(square), 5))
        quartics[:, 0] = (by_square * square).sum(axis=1)
        quartics[:, 1] = 2 * (by_square * linear).sum(axis=1)
        quartics[:, 2] = (by_linear * linear).sum(axis=1)
        quartics[:, 2] += 2 * (by_square * rest).sum(axis=1) - 2 * (square * self.vector).sum(axis=1)
        quartics[:, 3] = 2 * (by_linear * rest).sum(axis=1) - 2 * (linear * self.vector).sum(axis=1)
        levels = np.zeros((len(volts), 5))
        np.add.at(levels, self.settings.level[:, domain], quartics)
        mine_of, pinned = self.settings.of_domain[domain], self.pins[domain]
        below, above = levels[mine_of.start : pinned], levels[pinned + 1 : mine_of.stop]
        lower = monotone(below, np.full(len(below), LOWEST), np.ones(len(below)))
        higher = monotone(above, np.ones(len(above)), np.full(len(above), HIGHEST))
        return np.concatenate([volts[: mine_of.start], lower, [1.0], higher, volts[mine_of.stop :]])

    def _line_search(self, volts: Floats, unknowns: Floats, objective: float) -> tuple[Floats, Floats, float]:
        """Go along the Gauss-Newton step as far as it helps: the new voltages, unknowns and sum of squares."""
        target = self._newton(volts, unknowns, np.ones(len(volts), dtype=np.bool_))
        stuck = (volts <= LOWEST) & (target < LOWEST) | (volts >= HIGHEST) & (target > HIGHEST)
        if stuck.any():
            target = self._newton(volts, unknowns, ~stuck)
        target = np.clip(target, LOWEST, HIGHEST)
        part = 1.0
        for _ in range(5):
            mixed = volts + part * (target - volts)
            mixed_unknowns, mixed_objective = self.coefficients(mixed)
            if mixed_objective < objective:
                return mixed, mixed_unknowns, mixed_objective
            part /= 4
        return volts, unknowns, objective

    def _newton(self, volts: Floats, unknowns: Floats, free: Bools) -> Floats:
        """Voltages that, with the unknowns, solve the joint problem made linear around `volts`; others stay."""
        scale, number = scales(self.layout, self.settings, volts), len(unknowns)
        # (s, p): the level whose voltage each unknown goes with; of one that goes with none the power is 0.
        level = self.settings.level[:, np.maximum(self.layout.domain, 0)]
        # (s, p): the change of each unknown's part with that voltage, where it is free.
        slopes = scale * (self.layout.power * unknowns) / volts[level] * free[level]
        # (s, p, u): what each of the u unknowns, energies and then increments of voltage, adds at each setting.
        design = np.concatenate([scale[:, :, None] * np.eye(number), slopes[:, :, None] * self.steps[level]], axis=2)
        offset = slopes * (1.0 - volts[level])
        applied = self.matrix @ design
        gram = np.einsum("spi,spj->ij", design, applied)
        right = np.einsum("spi,sp->i", design, self.vector) - np.einsum("spi,sp->i", applied, offset)
        gram[:number, :number] += self.ridge.matrix
        right[:number] += self.ridge.vector
        solution = _least(gram, right)
        # Domain by domain: what is added up in one is then rounded alike whatever the other has.
        cut = self.settings.sizes[0]
        core, memory = np.split(solution[number:], [cut - 1])
        risen = np.concatenate([self.steps[:cut, : cut - 1] @ core, self.steps[cut:, cut - 1 :] @ memory])
        return np.where(free, 1.0 + risen, volts)


class _Ridge(Struct, frozen=True, eq=False):
    """The penalty for energies off their prior: x^T matrix x - 2 x^T vector + constant, over a fit's unknowns x."""

    matrix: Floats
    vector: Floats
    constant: float


def _ridge(layout: Layout, sums: Floats, form: Form, number: float) -> _Ridge:
    """The ridge that draws energies to zero, or to the prior times a common factor s that is itself drawn to 1.

    With y_k = c_k / prior_k: ridge * n * min over s of sum (y_k - s)^2 + m (s - 1)^2. A GPU all of whose energies are
    half of the prior's is not drawn away from that, where the data say so. An energy whose prior is 0 is drawn to it as
    strongly as the cheapest other to its own. Constant power is not drawn.
    """
    size = len(layout.names)
    nothing = np.zeros((size, size)), np.zeros(size)
    if not form.ridge:
        return _Ridge(*nothing, 0.0)
    if form.prior is None:
        terms = layout.column < layout.column.max()
        return _Ridge(np.diag(np.where(terms, form.ridge * np.einsum("sii->i", sums), 0.0)), nothing[1], 0.0)
    prior = np.array([form.prior.get(name, 0.0) * WATTS_PER_PJ for name in layout.names])
    known = prior > 0
    inverse = np.where(known, 1.0 / np.where(known, prior, 1.0), 0.0)
    share = 1.0 / (known.sum() + _HELD)
    weight = form.ridge * number
    free = np.array([name in form.prior for name in layout.names]) & ~known
    to_zero = np.where(free, inverse.max(), 0.0)
    matrix = np.diag(inverse**2 + to_zero**2) - share * np.outer(inverse, inverse)
    return _Ridge(weight * matrix, weight * share * _HELD * inverse, weight * (_HELD - share * _HELD**2))


def _least(gram: Floats, right: Floats) -> Floats:
    """The x >= 0 that makes x^T gram x - 2 x^T right least, (p,); columns are scaled to one length.

    LAPACK is called by its own names: a fit asks thousands of times, and the checks of `scipy.linalg` take longer.
    """
    from scipy.linalg.lapack import dpotrf, dtrtrs
    from scipy.optimize import nnls

    size = np.sqrt(gram.diagonal())
    used = np.where(size > 0, size, 1.0)
    scaled = gram / (used[:, None] * used)
    scaled.flat[:: len(size) + 1] += _JITTER + (size == 0)
    upper, failed = dpotrf(scaled)
    if failed:
        raise np.linalg.LinAlgError(f"column {failed} of a fit depends on those before it")
    target, _ = dtrtrs(upper, right / used, trans=1)
    solution, _ = nnls(upper, target)
    return np.where(size > 0, solution / used, 0.0)


# The solver counts clocks in GHz.
_PER_GHZ = dict.fromkeys(CONSTANTS, 1.0) | {name: 1e3 for name in CONSTANTS if "mhz" in name}
_SOFT = 0.05  # relative: residuals well above it count as absolute ones, those well below as squares
_SMALLEST_RESIDUAL = 5e-3  # relative: below it an absolute residual is treated as a square, so that weights stay finite


class Fit(Struct, frozen=True, eq=False):
    """A fit: a form with the prices, constant power and voltages that were found.

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
    clocks, volts = curve.index.to_numpy(dtype=np.float64), curve.to_numpy(dtype=np.float64)
    between = np.interp(mhz, clocks, volts)
    if len(clocks) < 2:
        return np.asarray(between, dtype=np.float64)
    slopes = np.diff(volts) / np.diff(clocks)
    below = np.maximum(volts[0] + slopes[0] * (mhz - clocks[0]), LOWEST * volts[0])
    above = np.minimum(volts[-1] + slopes[-1] * (mhz - clocks[-1]), HIGHEST * volts[-1])
    return np.select([mhz < clocks[0], mhz > clocks[-1]], [below, above], between)


def fit(measurements: Measurements, form: Form | None = None) -> Fit:
    """Fit `form` to all rows. Raises MeasurementError for rows that cannot be fitted.

    Measurements that cannot tell the coefficients apart are fitted all the same (`quality.py` says so): no error.
    """
    chosen = form or Form()
    if not len(measurements):
        raise MeasurementError("There are no rows to fit.")
    settings = Settings.of(measurements)
    layout = Layout.of(measurements.domains, chosen.clock_tree, settings.sizes)
    rows = rows_of(measurements)
    weights = 1.0 / measurements.power_w
    # The levels whose voltage is 1: those of the reference, or the nearest that were measured.
    references = zip(settings.of_domain, measurements.reference, strict=True)
    core, memory = (of.start + int(np.argmin(np.abs(settings.levels[of] - mhz))) for of, mhz in references)
    pins = core, memory
    search = Search(layout, settings, moments(rows, weights, settings), chosen, pins, float(len(rows)))
    starts = _starts(measurements, settings, chosen, pins)
    best = min(map(search.descend, starts), key=lambda found: found.objective)
    # Absolute or softened residuals: squares, weighed down where large, again and again.
    for _ in range(12 * (chosen.loss != "l2")):
        scale = scales(layout, settings, best.volts)[settings.row]
        residual = np.abs((rows[:, :-1][:, layout.column] * scale) @ best.unknowns - rows[:, -1]) * weights
        down = np.sqrt(np.maximum(residual, _SMALLEST_RESIDUAL))
        if chosen.loss == "soft":
            down = (1 + (residual / _SOFT) ** 2) ** 0.25
        again = Search(layout, settings, moments(rows, weights / down, settings), chosen, pins, float(len(rows)))
        best = again.descend(best.volts, alternating=0, most=2)
    values = dict(zip(layout.names, best.unknowns.tolist(), strict=True))
    prices = pd.Series({term: values[term] / WATTS_PER_PJ for term in measurements.terms}, dtype="float64")
    if measurements.own:
        prices = prices.where((measurements.rates > 0).any())
    return Fit(
        form=chosen,
        prices_pj=prices,
        constants={name: values.get(name, 0.0) / _PER_GHZ[name] for name in CONSTANTS},
        volts={
            domain: pd.Series(best.volts[levels], index=settings.levels[levels], dtype="float64")
            for domain, levels in zip(DOMAINS, settings.of_domain, strict=True)
        },
        domains=dict(measurements.domains),
        reference=(float(settings.levels[core]), float(settings.levels[memory])),
        objective=best.objective,
        rounds=best.rounds,
    )


def _starts(measured: Measurements, settings: Settings, form: Form, pins: tuple[int, int]) -> list[Floats]:
    """Voltages for the fit to begin from: all 1; proportional to the clock in part and fully; then random, monotone."""
    if form.voltages == "given":
        own = []
        for domain, levels in zip(DOMAINS, settings.of_domain, strict=True):
            means = measured.rows.groupby(f"{domain}_mhz")[f"{domain}_v"].mean().reindex(settings.levels[levels])
            if means.isna().any():
                mhz = float(means.index[means.isna()][0])
                raise MeasurementError(f"The {domain} voltage at {mhz:g} MHz is not given; let voltages be estimated.")
            own.append(means.to_numpy(dtype=np.float64))
        return [np.concatenate(own)]
    if form.voltages == "one":
        return [np.ones(len(settings.levels))]
    random = np.random.default_rng(0)
    slopes = [(0.0, 0.0), (0.5, 0.5), (0.8, 0.1), (0.1, 0.8), *random.uniform(0, 1, (max(form.starts, 1), 2))]
    over_pin = settings.levels / np.repeat(settings.levels[[*pins]], settings.sizes)
    starts = [1 + np.repeat(pair, settings.sizes) * (over_pin - 1) for pair in slopes[: max(form.starts, 1)]]
    return [np.clip(start, LOWEST, HIGHEST) for start in starts]


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
        "No --device was given, so energies are drawn to those of all GPUs of the prior "
        f"({', '.join(prior_energies())}). If these measurements are of one of them, the prior has seen it, and errors "
        "of what is left out are too small."
    )


def pooled(measurements: Measurements, device: str | None = None) -> Mapping[str, float] | None:
    """The prior's energy of each term in pJ, the mean over GPUs like `device`.

    None: it knows fewer than 4 terms, or the measurements are no counts of a GPU at known clocks.
    """
    if measurements.kind != COUNTED or measurements.own or measurements.processor == CPU or not measurements.is_clocked:
        return None
    energies = mean_energies([prior_energies()[name] for name in gpus_alike(prior_energies(), device)])
    of_terms = {term: energies[term] for term in measurements.terms if term in energies}
    return of_terms if len(of_terms) >= _ENOUGH else None


def mean_energies(energies: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean energy of each term in pJ, over the GPUs (a mapping each) that have the term."""
    return {str(term): float(pj) for term, pj in pd.DataFrame(list(energies)).mean().items()}


def gpus_alike(names: Collection[str], device: str | None) -> list[str]:
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
def prior_energies() -> Mapping[str, Mapping[str, float]]:
    """The prior's energies, GPU -> term -> pJ, from `counters/measurements/priors/energies.toml`."""
    document = Document.read(folder("counters") / "measurements" / "priors" / "energies.toml")
    return {str(gpu["device"]): dict(gpu["pj"]) for gpu in document.data["gpu"]}
