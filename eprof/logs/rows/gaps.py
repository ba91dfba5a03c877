"""How long no kernel ran: the gaps between the launches of a trace, on each GPU, from its first launch to its last."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Bools, Ints
from eprof.logs.rows.log import Idle, Names


class _Device(Struct):
    """A GPU so far, in ns. start: of its latest kernel; end: until when kernels ran; busy: kernels, or copies.

    still: how long neither ran, until the latest start of anything; between: how much of it lies before its first
    kernel, and before its latest.
    """

    start: int
    end: int
    busy: int
    still: int = 0
    between: tuple[int, int] | None = None


class Gaps(Struct):
    """Takes the launches of a trace in the order of their starts, piece by piece.

    devices: of each run and GPU. is_known: False once a launch has no time, or starts before one of an earlier piece.
    """

    devices: dict[tuple[int, str | None], _Device] = field(default_factory=dict)
    ns: int = 0
    longest_ns: int = 0
    is_known: bool = True

    def add(self, devices: Names, start_ns: Ints, time_ns: Ints, run: int = 0, is_kernel: Bools | None = None) -> None:
        """Take launches of a run; all columns (n_launches,). time_ns: below 0 where it is not known.

        is_kernel: False for copies and memsets, which no gap ends; None: all are kernels.
        """
        if is_kernel is None:
            is_kernel = np.ones(len(start_ns), dtype=bool)
        if not self.is_known or not len(start_ns):
            return
        if (time_ns < 0)[is_kernel].any():
            self.is_known = False
            return
        for code in np.unique(devices.codes).tolist():
            own = np.flatnonzero(devices.codes == code)
            own = own[np.argsort(start_ns[own], kind="stable")]
            starts, times, kernels = start_ns[own], np.maximum(time_ns[own], 0), is_kernel[own]
            first = int(starts[0])
            name = (*devices.names, None)[code]  # the last is for -1
            device = self.devices.setdefault((run, name), _Device(first, first, first))
            still = device.still + np.cumsum(_before(starts, times, device.busy))
            device.still, device.busy = int(still[-1]), max(device.busy, int((starts + times).max()))
            if not kernels.any():
                continue
            starts, times, still = starts[kernels], times[kernels], still[kernels]
            if device.between is None:
                device.between, device.start, device.end = (int(still[0]), 0), int(starts[0]), int(starts[0])
            device.between = device.between[0], int(still[-1])
            self.is_known = self.is_known and int(starts[0]) >= device.start
            gaps = _before(starts, times, device.end)
            self.ns += int(gaps.sum())
            self.longest_ns = max(self.longest_ns, int(gaps.max()))
            device.start, device.end = int(starts[-1]), max(device.end, int((starts + times).max()))

    @property
    def idle(self) -> Idle | None:
        """The gaps of all GPUs together; None: there is no launch, or some start or time is not known."""
        spans = [device.between for device in self.devices.values() if device.between is not None]
        if not self.is_known or not spans:
            return None
        still = sum(last - first for first, last in spans)
        return Idle(self.ns * 1e-9, self.longest_ns * 1e-9, (self.ns - still) * 1e-9)


def _before(starts: Ints, time_ns: Ints, end: int) -> Ints:
    """How long nothing ran before each start, where what ran earlier ended at `end`; (n_launches,), in their order."""
    ends = np.maximum.accumulate(np.concatenate([[end], starts + time_ns]))[:-1]
    return np.maximum(starts - ends, 0)
