"""The frame of the small samples: one kernel, known counts, a check against numpy."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.launch import REALS, Device, open_device, source_text
from common.options import COMMON_KEYS, PRECISION, Key, SampleError, UsageError, parse, usage
from common.work import Work, as_json, as_text

Values = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """What one small sample adds to the frame.

    run: launches once on the device and returns (result, what numpy says in double precision, relative tolerance).
    count: the work of one run by kernel, from the settings alone.
    """

    path: Path
    about: str
    keys: dict[str, Key]
    block: Callable[[Values], int]
    defines: Callable[[Values], dict[str, object]]
    run: Callable[[Device, Values], tuple[NDArray[np.float64], NDArray[np.float64], float]]
    count: Callable[[Values], dict[str, Work]]

    @property
    def name(self) -> str:
        """The program's name, that of its folder."""
        return self.path.parent.name

    def source(self, values: Values) -> str:
        """What is compiled."""
        return source_text(self.path, values["precision"], self.block(values), self.defines(values))


def main(sample: Sample, arguments: Sequence[str]) -> int:
    """Exit code: 0, 1 for an error or a failed check, 2 for a bad command line."""
    keys = {**sample.keys, "precision": PRECISION, **COMMON_KEYS}
    try:
        values, flags = parse(arguments, keys)
        if "--help" in flags:
            print(usage(sample.name, keys, sample.about))
        elif "--source" in flags:
            print(sample.source(values), end="")
        elif "--count" in flags:
            show_counts(sample, values, "--json" in flags)
        else:
            return run(sample, values, "--json" in flags)
        return 0
    except SampleError as err:
        print(f"{sample.name}: {err}", file=sys.stderr)
        return 2 if isinstance(err, UsageError) else 1


def show_counts(sample: Sample, values: Values, json_wanted: bool) -> None:
    """--count."""
    kernels = sample.count(values)
    settings = {name: values[name] for name in (*sample.keys, "precision")}
    print(as_json(settings, {"kernels": kernels}) if json_wanted else as_text(kernels))


def run(sample: Sample, values: Values, json_wanted: bool) -> int:
    """Run, check every repetition, report."""
    device = open_device(values["backend"], sample.source(values), sample.block(values), values["device"])
    start = time.perf_counter()
    for _ in range(values["repeat"]):
        result, exact, tolerance = sample.run(device, values)
        device.finish()
    wall = time.perf_counter() - start
    error = float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
    kernels = {name: sum(seconds) / values["repeat"] for name, seconds in device.times.items()}
    passed = error <= tolerance
    if json_wanted:
        report = {"device": device.name, "wall_s": wall, "kernel_s": kernels, "relative_error": error}
        print(json.dumps({**report, "tolerance": tolerance, "passed": passed}, indent=1))
    else:
        settings = " ".join(f"{name}={values[name]}" for name in (*sample.keys, "precision"))
        print(f"{sample.name} {settings} on {device.name}")
        for name, seconds in kernels.items():
            print(f"  {name:18}{seconds * 1e3:10.3f} ms")
        print(f"relative error {error:.2e}, {'passed' if passed else 'FAILED'} (at most {tolerance:.0e})")
    return 0 if passed else 1


def real_bytes(values: Values) -> int:
    """Bytes of one number."""
    return int(np.dtype(REALS[values["precision"]]).itemsize)


def random(values: Values, *shape: int) -> NDArray[Any]:
    """Numbers from 0 to 1 in the device's precision."""
    return np.random.default_rng(values["seed"]).random(shape).astype(REALS[values["precision"]])


def rounding(values: Values, terms: int) -> float:
    """A tolerance for sums of that many positive terms, however they are ordered, with a margin."""
    return float(np.finfo(REALS[values["precision"]]).eps) * (16 + terms**0.5)
