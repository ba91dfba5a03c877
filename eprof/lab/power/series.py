"""The power of a component over time, as steps, and the joules between any two moments."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats

MOST_W = 1e8  # more than any machine draws
_GAP = 10.0  # periods without a sample: nothing is known of them
_MOSTLY = 0.5  # of the samples of a counter that stands between them


class Series(Struct, frozen=True, eq=False, dict=True):
    """Power of a component: `watts[i]`, (n,), from `edges[i]` to `edges[i + 1]`, (n + 1,), in s. NaN: not known.

    absolute: the edges are seconds since the epoch, and no times from some start. zoned: these are sure to be UTC, as
    the log has such seconds or a zone; else they are dates of a clock in any zone. within: by the meter's own words, a
    pattern of the components of its log that have its joules, too.
    """

    component: str
    source: str
    edges: Floats
    watts: Floats
    absolute: bool
    zoned: bool = False
    within: str = ""

    @classmethod
    def of_power(
        cls, component: str, source: str, times: Floats, watts: Floats, absolute: bool, holds: bool = True
    ) -> Series:
        """Samples of power, each of which holds until the next; the last for as long as most do, if it `holds`."""
        period_s = float(np.median(np.diff(times)))
        edges = np.append(times, times[-1] + period_s) if holds else times
        watts = watts if holds else watts[:-1]
        return cls(component, source, edges, np.where(_gaps(edges), np.nan, watts), absolute)

    @classmethod
    def of_counter(cls, component: str, source: str, times: Floats, joules: Floats, absolute: bool) -> Series:
        """Samples of a counter of joules: the mean power between two; a counter that fell is not known there.

        A counter that is read more often than it moves is taken at the moments at which it moved.
        """
        gaps = _gaps(times)
        stands = np.diff(joules) == 0
        kept = np.flatnonzero(np.append(True, ~stands))
        if len(kept) < 2 or stands.mean() < _MOSTLY:
            kept = np.arange(len(times))
        elif stands[-1]:
            kept = np.append(kept, len(times) - 1)
        spent = np.diff(joules[kept])
        watts = np.where(spent < 0, np.nan, spent) / np.diff(times[kept])
        unknown = np.logical_or.reduceat(gaps, kept[:-1])
        return cls(component, source, times[kept], np.where(unknown, np.nan, watts), absolute)

    @classmethod
    def of_means(
        cls, component: str, source: str, edges: Floats, values: Floats, absolute: bool, is_joules: bool
    ) -> Series:
        """The mean power, or the joules, of the time up to each edge from the one before."""
        watts = values / np.diff(edges) if is_joules else values
        return cls(component, source, edges, np.where(_gaps(edges), np.nan, watts), absolute)

    @property
    def period_s(self) -> float:
        """How long most samples of a series of power hold."""
        return float(np.median(np.diff(self.edges)))

    @property
    def unknown_s(self) -> float:
        """For how long nothing of the power is known."""
        return float(np.diff(self.edges)[np.isnan(self.watts)].sum())

    @cached_property
    def _joules(self) -> Floats:
        """The joules of a series of power from the first edge to each."""
        return np.append(0.0, np.cumsum(np.nan_to_num(self.watts) * np.diff(self.edges)))

    @cached_property
    def _known(self) -> Floats:
        """For how long power is known from the first edge to each, s."""
        return np.append(0.0, np.cumsum(np.diff(self.edges) * ~np.isnan(self.watts)))

    def energy_j(self, begin_s: Floats, end_s: Floats) -> Floats:
        """The known energy of a series from each beginning to each end, J: the integral of the steps."""
        joules: Floats = np.interp(end_s, self.edges, self._joules) - np.interp(begin_s, self.edges, self._joules)
        return joules

    def known_s(self, begin_s: Floats, end_s: Floats) -> Floats:
        """For how long of each stretch the power is known."""
        known: Floats = np.interp(end_s, self.edges, self._known) - np.interp(begin_s, self.edges, self._known)
        return known

    def shifted(self, offset_s: float) -> Series:
        """The same series of power, later by `offset_s`."""
        return replace(self, edges=self.edges + offset_s)


def _gaps(times: Floats) -> Bools:
    """Between which samples of power others are missing: no meter says what happened there."""
    seconds = np.diff(times)
    gaps: Bools = seconds > _GAP * np.median(seconds)
    return gaps
