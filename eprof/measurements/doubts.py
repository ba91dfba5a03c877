"""What is doubtful about measurements: units that do not match, rows that stand out, settings that are too few."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.measurements.values import MeasurementError, Measurements, lines

PLAUSIBLE_W = (1.0, 3000.0)
IMPLAUSIBLE = f"the power is not between {PLAUSIBLE_W[0]:g} and {PLAUSIBLE_W[1]:g} W"
_SAME_ENERGY = 0.02
_WILD = 1.5
_NEIGHBOURS = 7


def units(rows: pd.DataFrame, label: str) -> None:
    """Raise MeasurementError if most powers cannot be those of a GPU: a unit is wrong."""
    if not len(rows):
        return
    middle = float(rows["power_w"].median())
    if not PLAUSIBLE_W[0] <= middle <= PLAUSIBLE_W[1]:
        raise MeasurementError(
            f"{label}: half of the rows draw {'more' if middle > 1 else 'less'} than {middle:.3g} W, which no GPU "
            "does; look at the units of power, energy and time in the mapping (mJ against J, ms against s)."
        )


def agreement(power_w: pd.Series, energy_j: pd.Series, time_s: pd.Series, label: str, energy: str) -> None:
    """Raise MeasurementError if energy is not power times time in most rows."""
    ratio = (energy_j / (power_w * time_s)).replace([np.inf, -np.inf], np.nan).dropna()
    middle = float(ratio.median()) if len(ratio) else 1.0
    if not abs(middle - 1) <= _SAME_ENERGY:
        raise MeasurementError(
            f"{label}: `{energy}` is {middle:.4g} times power times time in the middle row; one of the units is wrong "
            "(mJ against J, ms against s), or they are not of the same run."
        )


def notes(measurements: Measurements) -> tuple[str, ...]:
    """Sentences on what can be used but should be known."""
    return (*_wild(measurements), *_repeated(measurements), *_settings(measurements), *_constant(measurements))


def wild(measurements: Measurements) -> npt.NDArray[np.bool_]:
    """Rows whose power is off by half and more from that of the same benchmark at neighbouring clocks.

    The middle of a window of clocks is compared, so that no model is needed; the ends of the range are not judged.
    """
    rows = measurements.rows
    found = np.zeros(len(rows), dtype=np.bool_)
    if len(rows) < _NEIGHBOURS:
        return found
    group = rows.groupby(["benchmark", "memory_mhz"], sort=False).ngroup().to_numpy()
    order = np.lexsort((rows["core_mhz"].to_numpy(), group))
    logs = np.log(rows["power_w"].to_numpy(dtype=np.float64)[order])
    windows = np.lib.stride_tricks.sliding_window_view(logs, _NEIGHBOURS)
    half, mine = _NEIGHBOURS // 2, group[order]
    whole = mine[: len(windows)] == mine[_NEIGHBOURS - 1 :]
    strange = np.abs(logs[half : half + len(windows)] - np.median(windows, axis=1)) > np.log(_WILD)
    found[order[half : half + len(windows)]] = whole & strange
    return found


def _wild(measurements: Measurements) -> list[str]:
    strange = wild(measurements)
    if not strange.any():
        return []
    rows = measurements.rows[strange]
    worst = rows["benchmark"].value_counts().head(4)
    named = ", ".join(f"{name} ({number})" for name, number in worst.items())
    return [
        f"{len(rows)} row{'s are' if len(rows) > 1 else ' is'} wild: power is off by half and more from the same "
        f"benchmark at neighbouring clocks ({lines(rows['line'].to_numpy())}), most in {named}. They are used; "
        "absolute residuals (--loss l1) keep them from deciding."
    ]


def _repeated(measurements: Measurements) -> list[str]:
    again = measurements.rows.duplicated(["benchmark", "core_mhz", "memory_mhz"])
    if not again.any():
        return []
    return [f"{int(again.sum())} rows measure a benchmark again at the same setting; all are used."]


def _settings(measurements: Measurements) -> list[str]:
    number = len(measurements.settings)
    found = []
    if number == 1:
        found.append(
            "All rows are at one setting: voltages and how energies change with clocks cannot be told, and the table "
            "will hold at that setting only."
        )
    elif measurements.rows["memory_mhz"].nunique() == 1:
        found.append("There is one memory clock: what goes with it cannot be told from constant power.")
    return found


def _constant(measurements: Measurements) -> list[str]:
    """Terms that are the same in all rows, so that their energy cannot be told."""
    if measurements.own:
        return []
    rates = measurements.rates
    zero = [term for term in measurements.terms if not (rates[term] != 0).any()]
    same = [term for term in measurements.terms if term not in zero and len(rates) > 1 and rates[term].nunique() == 1]
    said = []
    if zero:
        said.append(f"{', '.join(zero)}: 0 in every row, so nothing can be said of the energy.")
    if same:
        said.append(f"{', '.join(same)}: the same in every row, so the energy cannot be told from constant power.")
    return said
