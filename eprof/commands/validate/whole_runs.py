"""Run directories with measured energy: predicted against measured joules of whole programs."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from eprof.base.arrays import finite
from eprof.base.errors import EprofError
from eprof.base.marks import names
from eprof.commands.validate.schema import WholeRun
from eprof.logs.runs import Measured, Run, is_run, open_run
from eprof.profile import api


def sorted_inputs(inputs: Iterable[str | Path]) -> tuple[list[Path], list[Path]]:
    """Inputs of a validation sorted: files of measurements, and run directories of whole programs.

    Raises EprofError for what is neither, or does not exist.
    """
    files: list[Path] = []
    directories: list[Path] = []
    for path in map(Path, inputs):
        if not path.exists():
            raise EprofError(f"{path}: there is no such file or directory.")
        if path.is_file():
            files.append(path)
        elif is_run(path):
            directories.append(path)
        else:
            raise EprofError(f"{path}: is a directory, but not a run directory of `eprof run`.")
    return files, directories


def held_against_meter(
    directories: Sequence[Path],
    costs: str | None = None,
    setting: str | None = None,
    kernels: Sequence[str] = (),
    meter: Callable[[Run], Measured] | None = None,
) -> tuple[list[WholeRun], list[str]]:
    """Predicted against measured energy of each whole run, and a note for each without a meter.

    meter: what an external meter saw of a run, in place of what eprof's own did.
    Raises EprofError: no cost table is made for the GPU, and none is named; MeterError: the meter did not see the run.
    """
    runs = []
    notes = []
    for path in directories:
        energy = api.load(path, kernels=kernels).energy(costs, setting, to_meter=False)
        if energy.costs is None:
            raise EprofError(f"{path}: no cost table is made for this GPU; name one with --costs.")
        measured = energy.measured if meter is None else meter(open_run(path))
        if measured is None:
            notes.append(f"{path}: no meter was read in this run, so there is nothing to hold a prediction against.")
        else:
            split = energy.split
            assert split is not None
            joules = np.asarray(split.total_j, dtype=float)
            predicted = np.nan if np.isnan(joules).all() else float(np.nansum(joules))
            marks = int(np.bitwise_or.reduce(np.asarray(split.row_marks, dtype=np.int64)))
            error = 100 * (predicted - measured.joules) / measured.joules if measured.joules > 0 else np.nan
            run = WholeRun(
                path=str(path),
                predicted_j=finite(predicted),
                measured_j=measured.joules,
                method=measured.method,
                reasons=measured.reasons(),
                marks=tuple(names(marks)),
                error_percent=finite(error),
            )
            runs.append(run)
    return runs, notes
