"""From the rows of a calibration to the text of a cost table, by the same fit that `eprof fit` makes."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eprof.base.version import __version__
from eprof.commands.calibrate import quick
from eprof.commands.calibrate.manifest import at, capability_of
from eprof.commands.calibrate.results import Row
from eprof.commands.calibrate.session import Session, kind_of
from eprof.costs.estimate import Origin, scaled_text
from eprof.lab import measurements
from eprof.lab.fitting import Form, fit, quality, table_text

_REPLICAS = 40


class Made(NamedTuple):
    """A cost table's text, and sentences for whoever made it."""

    text: str
    notes: tuple[str, ...]


def make(session: Session, path: Path, rows: Sequence[Row], name: str) -> Made:
    """Fit a calibration's `path` (measurements.csv) and write the cost table `name`.

    Raises MeasurementError if it cannot be fitted.

    With one setting there are no voltages to estimate, and the clock tree is part of constant power.
    """
    measured = measurements.read(path, mapping=session.mapping)
    alone = len(measured.settings) == 1
    form = Form(voltages="one", clock_tree=False, starts=1) if alone else Form()
    fitted = fit(measured, form)
    known = quality.examine(measured, fitted, _REPLICAS)
    text = table_text.text(measured, fitted, known, _head(session, rows, name))
    watts, low, high = known.constant_w
    error = f"{known.errors['fit']:.1f} %"
    notes = [f"The fit is {error} off on average; constant power is {watts:.1f} W ({low:.1f} to {high:.1f} W)."]
    if alone and not session.is_cpu:
        notes.append(
            "One setting was measured: the table holds there alone, and how constant power splits into leakage, "
            "clocks and the rest is not known (--settings measures more)."
        )
    unclear = [term for term, status in known.status.items() if status == quality.UNTOLD]
    if unclear:
        notes.append(f"The data cannot tell these prices well: {', '.join(map(str, unclear))}.")
    return Made(text, tuple(notes))


def make_quick(session: Session, rows: Sequence[Row], name: str) -> Made:
    """The cost table of `--quick`: shared prices scaled to the rows. Raises EprofError where a row is missing."""
    device = session.device
    gpu = str(device["name"])
    factors = quick.scaled(rows, capability_of(str(device["capability"])), gpu)
    zeros, random = factors.zeros, factors.random
    source = (
        f"eprof {__version__} calibrate --quick: two factors measured on this GPU, on the prices that 16 other GPUs "
        "share (docs/studies/power/transfer.py)"
    )
    note = (
        f"The prices of {gpu} are those that 16 other GPUs share, times factors that were measured on it: "
        f"{zeros.core:.2f} (zeros) to {random.core:.2f} (random operands) for the core, {zeros.memory:.2f} to "
        f"{random.memory:.2f} for memory; idle power is {factors.idle_w:.1f} W."
    )
    origin = Origin(_plain(name), source, "the shared price, times the factor of this GPU", note)
    return Made(scaled_text(gpu, factors.idle_w, factors.prices, origin), (note,))


def _head(session: Session, rows: Sequence[Row], name: str) -> table_text.Head:
    device = session.device
    gpu = str(device["name"])
    warm = [row.temperature_c for row in rows if row.temperature_c is not None]
    notes = [f"{row.benchmark} was left out: {'; '.join(row.reasons)}." for row in rows if not row.used]
    heat = f", at {min(warm):.0f} to {max(warm):.0f} degrees C" if warm else ""
    return table_text.Head(
        name=_plain(name),
        device=f"{gpu} ({kind_of(device)})",
        devices=tuple(dict.fromkeys([gpu, gpu.removeprefix("NVIDIA ")])),
        source=f"measured by eprof {__version__} calibrate on this machine{heat}; {sum(row.used for row in rows)} rows",
        year=time.gmtime().tm_year,
        notes=tuple(notes),
        peaks={} if session.is_cpu else _peaks(session),
        command="eprof calibrate",
    )


def _plain(name: str) -> str:
    """A table's name of small letters, digits, `-` and `.`."""
    kept = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in name.lower()).strip("-.")
    return kept or "calibrated"


def _peaks(session: Session) -> dict[str, float]:
    """Peaks of a calibration's table: lanes times multiprocessors, and the memory bus; left out unless all known."""
    capability = capability_of(str(session.device["capability"]))
    rates = {kind: at(session.manifest.rates[kind].at, capability) for kind in ("fp32", "fp64")}
    single = rates["fp32"]
    double = rates["fp64"]
    bus = session.device.get("bus_bits")
    ratio = session.device.get("fp32_to_fp64")
    sms = float(session.device["sms"])
    if single and ratio:
        double = single / float(ratio)
    if not (single and double and bus):
        return {}
    return {
        "sp_flop_per_core_cycle": 2 * single * sms,
        "dp_flop_per_core_cycle": 2 * double * sms,
        "dram_byte_per_memory_cycle": 2 * float(bus) / 8,
    }
