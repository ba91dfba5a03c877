"""How long no kernel ran: the gaps between the launches of a trace, on each GPU, from its first launch to its last."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Ints
from eprof.logs.rows.log import Names


class Gaps(Struct):
    """Takes the launches of a trace in the order of their starts, piece by piece.

    last: run and GPU -> its latest start and end so far, in ns. is_known: False once a launch has no time, or starts
    before one of an earlier piece.
    """

    last: dict[tuple[int, str | None], tuple[int, int]] = field(default_factory=dict)
    ns: int = 0
    is_known: bool = True

    def add(self, devices: Names, start_ns: Ints, time_ns: Ints, run: int = 0) -> None:
        """Take launches of a run; all columns (n_launches,). time_ns: below 0 where it is not known."""
        if not self.is_known or not len(start_ns):
            return
        if (time_ns < 0).any():
            self.is_known = False
            return
        for code in np.unique(devices.codes).tolist():
            own = np.flatnonzero(devices.codes == code)
            self._add_of((run, devices.names[code] if code >= 0 else None), start_ns[own], time_ns[own])

    def _add_of(self, device: tuple[int, str | None], start_ns: Ints, time_ns: Ints) -> None:
        order = np.argsort(start_ns, kind="stable")
        starts = start_ns[order]
        ends = np.maximum.accumulate(starts + time_ns[order])
        latest, end = self.last.get(device, (int(starts[0]), int(starts[0])))
        self.is_known = self.is_known and int(starts[0]) >= latest
        busy_until = np.maximum(np.concatenate([[end], ends[:-1]]), end)
        self.ns += int(np.maximum(starts - busy_until, 0).sum())
        self.last[device] = int(starts[-1]), max(end, int(ends[-1]))

    @property
    def seconds(self) -> float | None:
        """The gaps of all GPUs together in s; None: there is no launch, or some start or time is not known."""
        return self.ns * 1e-9 if self.is_known and self.last else None
