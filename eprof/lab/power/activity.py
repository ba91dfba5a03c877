"""How busy a processor's units were over time, sampled or counted; what sampled shares of time mean, and the work done.

`counters/dcgm/activity.toml` says what is done where a unit is busy: so much of its peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

import numpy as np
from msgspec import Struct, convert
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats
from eprof.base.errors import LogError
from eprof.base.resources import folder
from eprof.base.toml import Document
from eprof.base.vocabulary import Mark
from eprof.costs import Costs, CostTable
from eprof.counts.definition_files import capability_of
from eprof.counts.evaluation import Way
from eprof.lab.power.series import Series

_FAR_APART_S = 5.0  # a sample is of the last second or so: what runs in between is not in it
_PERCENT = 1.5  # shares above this are per cent
_MEMORY = "dram_gb_per_s"  # the peak that does not go with the core's clock


class Field(Struct, frozen=True):
    """A field of DCGM: the share of time that a unit is busy. count: the class of its work; of: its peak, in `flop`s.

    passed: levels of memory that its bytes have passed, which pay where a table prices bytes at every level.
    """

    field: str
    count: str
    of: str
    flop: float = 1.0
    passed: Sequence[str] = ()
    sp_factor: Mapping[str, float] = {}


class Meaning(Struct, frozen=True):
    """What the shares of time that DCGM samples mean: `counters/dcgm/activity.toml`, typed."""

    busy: str
    least: float
    turns: str
    activity: Sequence[Field]


@cache
def meaning() -> Meaning:
    """Read what the shares of time that DCGM samples mean. Raises DefinitionError."""
    document = Document.read(folder("counters") / "dcgm" / "activity.toml")
    return convert({name: value for name, value in document.data.items() if name != "schema"}, Meaning)


def is_busy(shares: Mapping[str, Floats]) -> Bools:
    """Whether anything ran on the GPU in each sample, (n,); True where that was not sampled."""
    rule = meaning()
    if rule.busy not in shares:
        return np.ones(len(next(iter(shares.values()))), bool)
    return ~(shares[rule.busy] <= rule.least)


def not_read(shares: Mapping[str, Floats]) -> dict[str, Bools]:
    """Sampled field -> in which samples, (n,), it was not read, as fields took turns; empty where none did."""
    rule = meaning()
    if rule.busy not in shares or rule.turns not in shares:
        return {}
    busy = shares[rule.busy] > rule.least
    skipped = busy & (shares[rule.turns] == 0)
    if not skipped.any():
        return {}
    names = [name for name, share in shares.items() if name != rule.busy and not (share[skipped] > 0).any()]
    # A field that is 0 in the other busy moments, too, has nothing to stand in for.
    return {name: skipped for name in names if (shares[name][busy & ~skipped] > 0).any()}


class Activity(Struct, frozen=True, eq=False):
    """What was sampled of a GPU or counted of a CPU, (n,) a sample, from `edges[i]` to `edges[i + 1]`, (n + 1,), in s.

    components: whose power it explains, in the log `source`. shares: field -> share of time, NaN where it was not read;
    of a CPU word -> counts a second. filled: where one stands in from its neighbours. clock_mhz: NaN where no clock was
    sampled. notes: what is not as it seems. ways: how each word was `counted`, and its marks. sockets: of the CPU.
    """

    components: tuple[str, ...]
    source: str
    edges: Floats
    shares: Mapping[str, Floats]
    filled: Mapping[str, Bools]
    clock_mhz: Floats
    notes: tuple[str, ...] = ()
    ways: Mapping[str, tuple[tuple[Way, ...], int]] = {}
    sockets: int = 1

    @property
    def seconds(self) -> Floats:
        """How long each sample lasts in s, (n,)."""
        return np.diff(self.edges)

    @property
    def busy(self) -> Floats:
        """The share of time in which anything ran, 0 to 1, (n,); 1 on a CPU, where something always runs."""
        if self.ways:
            return np.ones(len(self.clock_mhz))
        return self.shares.get(meaning().busy, np.max(list(self.shares.values()), axis=0))

    @property
    def active(self) -> Floats:
        """The share of time in which a multiprocessor was active, (n,); 0 on a CPU, whose counts lack no such work."""
        if self.ways:
            return np.zeros(len(self.clock_mhz))
        return self.shares.get(meaning().turns, self.shares.get(meaning().busy, np.ones(len(self.clock_mhz))))

    @property
    def pays(self) -> bool:
        """Whether a share of time was sampled that can be priced."""
        return bool(self.filled)

    @property
    def label(self) -> str:
        """The names of the components as one: "a + b"."""
        return " + ".join(self.components)

    def moved(self, components: tuple[str, ...], offset_s: float) -> Activity:
        """The same activity under other names of components, later by `offset_s`."""
        return replace(self, components=components, edges=self.edges + offset_s)

    def work(self, table: CostTable, costs: Costs) -> Iterator[tuple[str, str, Floats, tuple[Way, ...], int]]:
        """Yields the work done: field, word of the vocabulary, counts a second (n,), how these are known, marks."""
        for word, (ways, marks) in self.ways.items():
            yield word, word, self.shares[word], ways, marks
        if not self.ways:
            for field, word, most in work_per_s(self.shares, table, costs, self.clock_mhz):
                way = Way(f"{field} * {most.max():.4g}/s", "active x clock x units", int(Mark.ASSUMED))
                yield field, word, most * self.shares[field], (way,), int(Mark.ASSUMED)


def activities(sampled: Sequence[Series]) -> list[Activity]:
    """The activity of each GPU, from series such as "fp32_active 0"; left out if it has no share that a price needs."""
    by_gpu: dict[tuple[str, str], dict[str, Series]] = {}
    for series in sampled:
        name, _, device = series.component.partition(" ")
        by_gpu.setdefault((series.source, f"gpu {device}".strip()), {})[name] = series
    paying = {field.field for field in meaning().activity}
    found = []
    for (source, gpu), own in by_gpu.items():
        if not paying & own.keys():
            continue
        edges = next(iter(own.values())).edges
        if any(not np.array_equal(series.edges, edges) for series in own.values()):
            raise LogError(f"{source}: the fields of {gpu} were not sampled together, so no share of time is known.")
        notes = []
        shares = {name: series.watts for name, series in own.items() if name != "sm_clock"}
        if max(float(np.nanmax(share, initial=0.0)) for share in shares.values()) > _PERCENT:
            shares = {name: share / 100 for name, share in shares.items()}
            notes.append(f"{source}: shares of {gpu} above 1.5 are taken for per cent.")
        clock = getattr(own.get("sm_clock"), "watts", np.full(len(edges) - 1, np.nan))
        if "sm_clock" not in own:
            notes.append(f"{source}: no clock of {gpu} was sampled; that of the cost table is taken.")
        apart_s = float(np.median(np.diff(edges)))
        if apart_s > _FAR_APART_S:
            told = f"samples of {gpu} are {apart_s:.3g} s apart; what ran between is taken to be as they are."
            notes.append(f"{source}: {told}")
        lost = not_read(shares)
        for name in lost:
            shares[name] = np.where(lost[name], np.nan, shares[name])
        holes = {name: np.isnan(share) for name, share in shares.items()}
        shares = {name: filled(share, edges) for name, share in shares.items()}
        if lost:
            worst = max(float(mask.mean() / max(is_busy(shares).mean(), 1e-9)) for mask in lost.values())
            notes.append(
                f"{source}: {', '.join(sorted(lost))} took turns with other fields: a 0 in {100 * worst:.0f} % of the "
                f"busy samples of {gpu} is no measurement, and is filled in from the samples beside it."
            )
        found.append(Activity((gpu,), source, edges, shares, holes, clock, tuple(notes)))
    return found


def filled(rates: Floats, edges: Floats) -> Floats:
    """`rates`, (n,), sampled between `edges`, (n + 1,), with NaN filled in from the samples beside it."""
    known = ~np.isnan(rates)
    if known.all() or not known.any():
        return rates
    middles = (edges[:-1] + edges[1:]) / 2
    return np.where(known, rates, np.interp(middles, middles[known], rates[known]))


def work_per_s(
    shares: Mapping[str, Floats], table: CostTable, costs: Costs, core_mhz: Floats, levels: bool = True
) -> Iterator[tuple[str, str, Floats]]:
    """Yields for each sampled share its field, its word, and counts a second, (n,), of a unit that is always busy.

    core_mhz: (n,). levels: also for words of the levels that its bytes have passed, where the table prices each.
    """
    pace, peaks = pace_of(costs, core_mhz), costs.peaks
    for field in meaning().activity:
        # Counts a second of a unit that is always busy, at the clock of the prices.
        peak: float | None = None
        if field.of == "multiprocessors":
            if costs.setting.core_mhz is not None and costs.sm_count is not None:
                peak = costs.sm_count * costs.setting.core_mhz * 1e6
        elif field.of == "tensor":
            capabilities = chain.from_iterable(map(capability_of, table.devices))
            factor = next((field.sp_factor[each] for each in capabilities if each in field.sp_factor), None)
            if factor is not None and peaks.sp_gflops is not None:
                peak = factor * peaks.sp_gflops * 1e9
        elif (gflops := getattr(peaks, field.of)) is not None:
            peak = gflops * 1e9 / field.flop
        if peak is None or field.field not in shares or np.isnan(shares[field.field]).all():
            continue
        passed = [word for word in field.passed if levels and costs.books == "accessed" and word in costs.charges]
        for word in (field.count, *passed):
            yield field.field, word, np.full_like(pace, peak) if field.of == _MEMORY else peak * pace


def pace_of(costs: Costs, core_mhz: Floats) -> Floats:
    """The ratio of each sampled clock to that of the prices, (n,); 1 where one of them is not known.

    A table's clocks may end above those that were sampled: prices are then those of its lowest, work is not.
    """
    priced_mhz = costs.setting.core_mhz
    if priced_mhz is None:
        return np.ones(len(core_mhz))
    return np.asarray(np.nan_to_num(core_mhz, nan=priced_mhz) / priced_mhz)
