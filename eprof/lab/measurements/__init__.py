"""Measured power of kernels at known clocks, with what they did a second: what cost tables are fitted to.

`read` turns files into one `Measurements` by a column mapping of `counters/measurements/` (docs/fit.md).
"""

from eprof.lab.measurements.mapping import Columns, mappings
from eprof.lab.measurements.reading import read
from eprof.lab.measurements.values import CORE, MEMORY, MeasurementError, Measurements

__all__ = ["CORE", "MEMORY", "Columns", "MeasurementError", "Measurements", "mappings", "read"]
