"""Predicted against measured times: the model by component beside the roofline, both as they are, fitted to nothing."""

import numpy as np
from msgspec.structs import replace

from eprof.base.errors import CostError, EprofError
from eprof.commands.validate.schema import Times
from eprof.costs import CostTable
from eprof.counts.definition import COMPONENTS as OF_LAUNCH
from eprof.energy.components import Work, components, machine_of
from eprof.energy.simulated import DEFAULT_EFFICIENCY
from eprof.lab.measurements import Measurements
from eprof.lab.validation.priced import rows_by_setting
from eprof.lab.validation.protocols import score

BY_COMPONENT, UNBOUND, ROOFLINE = "by component", "by component, no bandwidth", "roofline"
AS_SIMULATED = f"roofline over {DEFAULT_EFFICIENCY:g}"
_KINDS = ("fp64", "fp32", "integer", "special")


def times(table: CostTable, measurements: Measurements) -> Times:
    """Score the time by component ([S] 5.5) and the roofline's, at each row's own setting.

    Raises EprofError: the table does not describe multiprocessors, the measurements lack what the models need.
    """
    if table.multiprocessors is None:
        raise CostError(f"--time: {table.name} does not describe multiprocessors; it needs a [time_components].")
    if not {"fp32_flop", "fp64_flop"} <= set(measurements.work) or "dram_byte" not in measurements.terms:
        raise EprofError(
            f"--time: the mapping {measurements.mapping} does not say what flops these rows did (fp32_flop, fp64_flop "
            "in [time]), or which bytes DRAM moved (the term dram_byte)."
        )
    predicted = {name: np.full(len(measurements), np.nan) for name in (BY_COMPONENT, UNBOUND, ROOFLINE, AS_SIMULATED)}
    missing: dict[str, None] = {}
    for setting, rows in rows_by_setting(measurements).items():
        try:
            costs = table.at(setting if table.default.core_mhz is not None else None)
        except CostError:
            continue  # these rows are counted as not predicted
        some = measurements.take(rows)
        machine = machine_of(costs)
        assert machine is not None, "a checked table has a clock and a peak of DRAM"
        modelled = components(work_of(some), machine)
        predicted[BY_COMPONENT][rows] = modelled.total / machine.core_hz
        predicted[UNBOUND][rows] = (modelled.total - modelled.cycles["bandwidth"]) / machine.core_hz
        # T = max(W tau_flop, Q tau_mem) ([R] II), as `simulated.roofline_s` has it.
        peaks, work = costs.peaks, some.work
        of_flops = np.zeros(len(some))
        for flops, peak in (("fp32_flop", peaks.sp_gflops), ("fp64_flop", peaks.dp_gflops)):
            of_flops += work[flops].to_numpy(dtype=np.float64) / (np.nan if peak is None else peak * 1e9)
        of_bytes = some.counts()["dram_byte"].to_numpy() / ((peaks.dram_gb_per_s or np.nan) * 1e9)
        predicted[ROOFLINE][rows] = np.maximum(of_flops, of_bytes)
        missing |= dict.fromkeys(word for words in modelled.missing for word in words)
    predicted[AS_SIMULATED] = predicted[ROOFLINE] / DEFAULT_EFFICIENCY
    measured = measurements.rows["time_s"].to_numpy(dtype=np.float64)
    # Errors of seconds are no watts.
    scores = {name: replace(score(measured, time_s), rmse_w=None) for name, time_s in predicted.items()}
    return Times(scores, list(missing), table.multiprocessors.why)


def work_of(measurements: Measurements) -> Work:
    """What one launch of each row did, for its modelled time."""
    counts = measurements.counts()
    nothing = np.full(len(measurements), np.nan)
    told = {str(name): measurements.work[name].to_numpy(dtype=np.float64) for name in measurements.work}
    instructions = {
        kind: counts[f"{kind}_instruction"].to_numpy() for kind in _KINDS if f"{kind}_instruction" in counts
    }
    if "control" in told:
        instructions["control"] = told["control"]
    launch = {name: told.get(name, nothing) for name in OF_LAUNCH}
    return Work(**launch, instructions=instructions, dram_byte=counts["dram_byte"].to_numpy())
