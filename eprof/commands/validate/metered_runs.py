"""How well a metered total is split by counts (docs/metered.md): runs of some kernels whose true joules are known.

A run has four measured kernels at one setting, with random shares of its time; its meter saw their true sum. One factor
makes the predicted energies add up to that; beside it the same sum is split by time alone.
"""

import numpy as np

from eprof.base.arrays import Floats
from eprof.commands.validate.schema import MeteredRuns
from eprof.lab.measurements import Measurements
from eprof.lab.validation.protocols import setting_of
from eprof.lab.validation.scores import errors_percent

RUNS, KERNELS = 200, 4


def of_metered_runs(measurements: Measurements, predicted_w: Floats, seed: int) -> MeteredRuns | None:
    """Errors of the energy of each kernel of the runs; None where no setting has four predicted kernels."""
    power_w = measurements.power_w
    # At each setting that has enough predicted kernels.
    known = np.isfinite(predicted_w) & (predicted_w > 0) & (power_w > 0)
    places: dict[tuple[float, float], list[int]] = {}
    for place, setting in enumerate(setting_of(measurements.rows)):
        if known[place]:
            places.setdefault(setting, []).append(place)
    pools = [np.array(rows) for rows in places.values() if len(rows) >= KERNELS]
    if not pools:
        return None
    draw = np.random.default_rng(seed)
    true_j, by_counts_j, by_time_j = [], [], []
    for _ in range(RUNS):
        kernels = draw.choice(pools[draw.integers(len(pools))], KERNELS, replace=False)
        time_s = draw.dirichlet(np.ones(KERNELS))
        joules, predicted_j = time_s * power_w[kernels], time_s * predicted_w[kernels]
        true_j.append(joules)
        by_counts_j.append(predicted_j * joules.sum() / predicted_j.sum())
        by_time_j.append(time_s * joules.sum())

    truth, by_counts, by_time = (np.concatenate(energies) for energies in (true_j, by_counts_j, by_time_j))
    return MeteredRuns(
        runs=RUNS,
        kernels=KERNELS,
        mean_percent=_metered_error(truth, by_counts),
        within=_within(truth, by_counts),
        by_time_mean_percent=_metered_error(truth, by_time),
        by_time_within=_within(truth, by_time),
    )


def _metered_error(truth: Floats, estimate: Floats) -> float:
    return float(np.abs(errors_percent(truth, estimate)).mean())


def _within(truth: Floats, estimate: Floats) -> float:
    """The factor that nine of ten estimates of metered kernels are off at most."""
    return float(np.exp(np.quantile(np.abs(np.log(estimate / truth)), 0.9)))
