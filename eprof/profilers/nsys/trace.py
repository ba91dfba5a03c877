"""`nsys stats --report cuda_gpu_trace --format csv`: a row a launch, of which a program may have millions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eprof.base.arrays import numbered
from eprof.profilers.ncu.csv import Section, coded, together
from eprof.profilers.ncu.numbers import ENGLISH, values
from eprof.profilers.nsys.summary import Nsys, Shape, shape_of

_COPY = "[CUDA mem"


def columns_of(section: Section) -> tuple[list[int], list[int]]:
    """Places of the columns that are read, and of those that are read as text."""
    shape = _shape(section)
    places = [section.at(name) for name in (shape.name, "Device", shape.time)]
    return [one for one in places if one is not None], [one for one in [section.at(shape.time)] if one is not None]


def add(nsys: Nsys, section: Section, tables: Sequence[pa.Table]) -> int:
    """Add rows up to the kernels of each device. How many rows are no launches: they have no time or no name."""
    if not tables:
        return 0
    table, shape = together(tables), _shape(section)
    codes, names = coded(table[str(section.at(shape.name))])
    device, devices = (
        (np.zeros(len(codes), np.int32), [""])
        if section.at("Device") is None
        else coded(table[str(section.at("Device"))])
    )
    seconds = values(table[str(section.at(shape.time))].combine_chunks(), ENGLISH) * shape.scale
    copies = np.array([name.strip().startswith(_COPY) for name in names], dtype=bool)[codes]
    stray = ~(seconds >= 0) | np.array([not name.strip() for name in names], dtype=bool)[codes]
    kernels = ~copies & ~stray
    nsys.others += int(copies.sum())
    pair = codes[kernels].astype(np.int64) * max(1, len(devices)) + device[kernels]
    place, first = numbered(pair)
    pairs = pair[first]
    sums, launches = np.bincount(place, seconds[kernels], len(pairs)), np.bincount(place, minlength=len(pairs))
    for pair, time, many in zip(pairs.tolist(), sums.tolist(), launches.tolist(), strict=True):
        name, own = divmod(pair, max(1, len(devices)))
        nsys.add(shape, names[name].strip(), devices[own].strip(), many, time)
    return int(stray.sum())


def _shape(section: Section) -> Shape:
    shape = shape_of(section.columns)
    assert shape is not None, "a section of this kind has the columns of a trace"
    return shape
