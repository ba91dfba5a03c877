"""`nsys stats --report cuda_gpu_trace --format csv`: a row a launch, of which a program may have millions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eprof.base.arrays import Array, alike
from eprof.logs.rows.launches import LAUNCH, part_of
from eprof.logs.rows.log import Names
from eprof.logs.rows.numbers import ENGLISH, values
from eprof.logs.rows.sections import Piece, Section, names_of, size, together
from eprof.profilers.nsys.summary import STREAM, Nsys, Shape, shape_of

_COPY = "[CUDA mem"


def columns_of(section: Section) -> list[int]:
    """Places of the columns of an nsys trace that are read."""
    shape = _shape(section)
    places = [section.at(name) for name in (shape.name, "Device", shape.time, STREAM, shape.start or "")]
    return [place for place in places if place is not None]


def places_of_names(section: Section) -> list[int]:
    """The places of columns in which few different texts come again and again."""
    places = [section.at(name) for name in (_shape(section).name, "Device", STREAM)]
    return [place for place in places if place is not None]


def add(nsys: Nsys, section: Section, pieces: Sequence[Piece]) -> int:
    """Add rows of an nsys trace up to the kernels of each device.

    How many rows are no launches: they have no time or no name.
    """
    if not pieces:
        return 0
    table = together(pieces)
    shape = _shape(section)
    names = names_of(table[section.at(shape.name) or 0])
    place = section.at("Device")
    devices = Names(("",), np.zeros_like(names.codes)) if place is None else names_of(table[place])
    seconds = values(table[section.at(shape.time) or 0], ENGLISH) * shape.scale

    is_copy = _where(names, [name.strip().startswith(_COPY) for name in names.names])
    is_stray = ~(seconds >= 0) | _where(names, [not name.strip() for name in names.names])
    is_kernel = ~is_copy & ~is_stray
    nsys.others += int(is_copy.sum())
    names = names.chosen(is_kernel)
    devices = devices.chosen(is_kernel)
    parts = _parts(nsys.parts, section, shape, table).chosen(is_kernel)
    kernel, first = alike(names.codes, devices.codes, parts.codes)
    sums = np.bincount(kernel, seconds[is_kernel], len(first)).tolist()
    launches = np.bincount(kernel, minlength=len(first)).tolist()
    texts = (column.chosen(first).texts() for column in (names, devices, parts))
    for name, device, part, many, time_s in zip(*texts, launches, sums, strict=True):
        nsys.add(shape, name.strip(), device.strip(), many, time_s, part)
    return int(is_stray.sum())


def _parts(parts: str | None, section: Section, shape: Shape, table: Piece) -> Names:
    """The part that each row of an nsys trace is: its stream, itself, or none."""
    stream, start = section.at(STREAM), section.at(shape.start or "")
    if parts is None or stream is None:
        return Names((), np.full(size(table), -1, dtype=np.int32))
    streams = names_of(table[stream])
    if parts != LAUNCH or start is None:
        return streams
    start_ns = np.nan_to_num(values(table[start], ENGLISH) * shape.start_scale).round().astype(np.int64)
    return Names.of(map(part_of, start_ns.tolist(), streams.texts()))


def _where(column: Names, of_words: Sequence[bool]) -> Array:
    return np.array(of_words, dtype=bool)[column.codes]


def _shape(section: Section) -> Shape:
    shape = shape_of(section.columns)
    assert shape is not None, "a section of this kind has the columns of a trace"
    return shape
