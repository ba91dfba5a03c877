"""`CostTable`, and its evaluation: what each word of the vocabulary pays at a DVFS setting, and why.

`CostTable.at` evaluates once. `file.py` makes a table of a file; `eprof.costs` loads it.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from msgspec import field
from msgspec.structs import asdict, replace

from eprof.base.errors import CostError
from eprof.base.gpus import SAME_MEMORY, normal_name
from eprof.base.optional import mapped
from eprof.base.text import pattern, phrase
from eprof.base.units import clock_pair, no_clock_pair
from eprof.base.vocabulary import COUNTS, NONE, Mark, mark_names, marked
from eprof.costs import parts
from eprof.costs.parts import CORE, DOMAINS, MEMORY, Constant, Costs, Described, Intervals, Point, Price, Setting, Term

_SAME_CLOCK = 0.01
_UNNAMED = pattern(r"\A(?:ncu device \d+|[^…]+…) \((CC \d+\.\d+)\)")  # a text of ncu has no name of the GPU


class CostTable(Described, frozen=True, eq=False, kw_only=True):
    """A checked cost table. `at` gives the costs at a setting, `explain` the same with all reasons, as plain data.

    sources: price, or "constant_power" -> where it is from. assumption: why the table stands in for a GPU that it was
    not made for. caches: of a CPU, "D1" and "LL" -> "bytes,ways,line", for simulations.
    """

    devices: tuple[str, ...] = ()
    year: int | None = None
    path: str
    settings: tuple[Setting, ...] = (Setting(),)
    default: Setting = Setting()
    rates: tuple[Term, ...]
    statements: Mapping[str, parts.Statement]
    constant: Constant
    peak: parts.Peak = parts.Peak({}, "", NONE)
    fit: parts.FitRecord = parts.FitRecord({}, {})
    intervals: Intervals = field(default_factory=Intervals)
    sources: Mapping[str, str] = field(default_factory=dict)
    boards: tuple[parts.Board, ...] = ()
    scale: parts.Scale | None = None
    assumption: str = ""
    caches: Mapping[str, str] = field(default_factory=dict)
    voltages: parts.Voltages = parts.Voltages()

    def at(self, setting: str | None = None) -> Costs:
        """The prices at `setting`, "CORE/MEMORY" in MHz; without one, at the table's default.

        A pair of clocks that the table does not list is computed: voltage belongs to the clock of its domain, so any
        listed core clock goes with any listed memory clock; between listed clocks the voltage is interpolated linearly
        in MHz, and all that rests on it is marked ESTIMATED. Raises CostError: no such setting.
        """
        point = self._point_at(setting)
        notes = self.notes
        if self._carried(point.setting.core_v).are:
            least, most = self.intervals.core_v_fall
            carried = (
                f"Core voltages of {self.name} at other clocks than {self.default.core_mhz:g} MHz are "
                f"{self.voltages.are}; they may fall {least:g} to {most:g} times as much."
            )
            notes = (*notes, carried)
        prices = {rate.name: Price(rate.name, *rate.at(point)) for rate in self.rates}
        unpriced = {word: stated.why for word, stated in self.statements.items() if stated.kind == "unpriced"}
        charges = {word: stated.charge(prices) for word, stated in self.statements.items() if word not in unpriced}
        watts, _, constant_marks = self.constant.at(point)
        marks = constant_marks
        for charge in charges.values():
            marks |= charge.marks
        described: dict[str, Any] = {name: getattr(self, name) for name in Described.__struct_fields__}
        costs = Costs(
            **{**described, "notes": notes},
            setting=point.setting,
            setting_from=point.found,
            charges=charges,
            constant_power_w=watts,
            constant_why=self.constant.why,
            constant_marks=constant_marks,
            marks=marks,
            peaks=self.peak.at(point),
            prices=prices,
            unpriced=unpriced,
            cores=mapped(self.constant.sockets.__mul__, self.constant.cores),
        )
        if self.scale is not None:
            return costs.scaled(self.scale.factor)
        return costs

    def peaks(self, setting: str | None = None) -> parts.Peaks:
        """The highest throughputs at `setting`, as `at` has them. Raises CostError: no such setting."""
        return self.peak.at(self._point_at(setting))

    def nearest(self, core_mhz: float | None, memory_mhz: float | None) -> str | None:
        """The table's setting nearest to these clocks in MHz (None: not known), "1290/877".

        A core clock between two listed ones is taken as it is, but for one within 1 % of a listed clock. None: the core
        clock is not known, or the table has no core voltages.
        """
        core = _curve(self.settings, CORE)
        if core_mhz is None or not core:
            return None
        memory = sorted(setting.memory_mhz for setting in self.settings if setting.memory_mhz is not None)
        wanted = memory_mhz or self.default.memory_mhz or 0.0
        chosen = min(core, key=lambda mhz: abs(mhz - core_mhz))
        if min(core) < core_mhz < max(core) and abs(core_mhz - chosen) > _SAME_CLOCK * chosen:
            chosen = core_mhz
        return f"{chosen:g}/{min(memory, key=lambda mhz: abs(mhz - wanted)):g}"

    def is_fitted_to(self, core_mhz: float) -> bool:
        """Whether a core clock is among those that the table was fitted to; True too where nothing tells these."""
        seen_mhz = self.fit.data.get("range", {}).get("core_mhz")
        return not seen_mhz or bool(seen_mhz[0] <= core_mhz <= seen_mhz[1])

    @property
    def interval_share(self) -> float:
        """The share of the replicas that an interval holds: 0.9 of a fit's, 1 of those that span a table's own."""
        if self.fit.number:
            return parts.REFIT_SHARE
        return 1.0

    @property
    def within(self) -> float:
        """The factor by which the table is off at most for nine of ten kernels that its fit did not see; 1: unknown."""
        return float(self.fit.data.get("within", 1.0))

    @property
    def interval_is(self) -> str | None:
        """What spans the table's intervals, in words ("90 % of the fits ..."); None if it has none."""
        if not self.fit.number:
            return self.intervals.meaning or None
        return parts.OF_DRAWS if self.basis == "estimated" else parts.OF_REFITS

    def replica_intervals(self, setting: str | None = None) -> Intervals:
        """The intervals of prices and constant power at `setting`, over the replicas; empty if none. Or a CostError."""
        replicas = self.replicas(setting)
        if not replicas:
            return Intervals()
        share = self.interval_share
        prices = {name: _between([costs.prices[name].pj for costs in replicas], share) for name in replicas[0].prices}
        constant = _between([costs.constant_power_w for costs in replicas], share)
        return Intervals(prices, constant, self.interval_is or "")

    def replicas(self, setting: str | None = None) -> tuple[Costs, ...]:
        """The costs at `setting` by each replica, whose spread is how well the prices are known. May be empty.

        A fitted table has one for each of its refits; a table with intervals of its own has a grid that spans them
        (`Intervals.replicas`). Attribute the same counts with each; the interval holds `interval_share` of the results.
        Voltages are those of the table. Raises CostError.
        """
        if self.scale is not None:
            unscaled = replace(self, scale=None).replicas(setting)
            return tuple(map(Costs.scaled, unscaled, self.scale.replicas))
        if self.fit.number:
            replicas = self.fit.replicas
            numbers = ({name: replicas[name][place] for name in replicas} for place in range(self.fit.number))
            return tuple(self.with_numbers(chosen).at(setting) for chosen in numbers)
        default = self.at()
        prices_pj = {name: price.pj for name, price in default.prices.items()}
        spanned = []
        for factors, on_constant, on_fall in self.intervals.replicas(prices_pj, default.constant_power_w):
            rates = {rate.name: rate.number * factors.get(rate.name, 1.0) for rate in self.rates}
            terms = {term.name: term.number * on_constant for term in self.constant.terms}
            spanned.append(self.with_numbers({**rates, **terms}).with_fall(on_fall).at(setting))
        return tuple(spanned)

    def with_fall(self, factor: float) -> "CostTable":
        """The table with each setting's core voltage `factor` times as far below that of the default setting."""
        top_v = self.default.core_v
        if factor == 1 or top_v is None:
            return self
        volts = [top_v - factor * (top_v - (setting.core_v or top_v)) for setting in self.settings]
        settings = (replace(setting, core_v=core_v) for setting, core_v in zip(self.settings, volts, strict=True))
        return replace(self, settings=tuple(settings))

    def with_numbers(self, numbers: Mapping[str, float]) -> "CostTable":
        """The table with other numbers for some of its prices and terms of constant power, by name."""
        rates = tuple(replace(rate, number=numbers.get(rate.name, rate.number)) for rate in self.rates)
        terms = tuple(replace(term, number=numbers.get(term.name, term.number)) for term in self.constant.terms)
        return replace(self, rates=rates, constant=replace(self.constant, terms=terms))

    def is_for(self, device_name: str) -> bool:
        """Whether the table was made for the device that a log calls `device_name` ("NVIDIA GeForce GTX 580 (0)").

        A table that is only taken where a user asks for it lists no devices; its own is in its title.
        """
        return _is_among(device_name, self.devices or (self.device.partition(" (")[0],))

    def serves(self, device_name: str) -> bool:
        """Whether the table was made for the device, or lists it among the boards that it serves too."""
        return self.is_for(device_name) or any(_is_among(device_name, board.devices) for board in self.boards)

    def on(self, device_name: str, memory_mhz: float | None = None) -> "CostTable":
        """The table as it holds on the device that a log calls `device_name`: itself, or that of one of its boards.

        Where several boards have the name, as of one compute capability, that whose memory has this clock; else the
        first of them.
        """
        named = [board for board in self.boards if _is_among(device_name, board.devices)]
        clocks = ((board, board.memory_mhz or self.default.memory_mhz or 0.0) for board in named)
        with_it = (board for board, mhz in clocks if memory_mhz and abs(mhz - memory_mhz) <= SAME_MEMORY * mhz)
        board = next(chain(with_it, named), None)
        if board is None or self.is_for(device_name):
            return self
        intervals = replace(self.intervals, constant_w=board.interval_constant_w or self.intervals.constant_w)
        default, *settings = (
            replace(setting, memory_mhz=board.memory_mhz or setting.memory_mhz)
            for setting in (self.default, *self.settings, *board.settings)
        )
        table = replace(
            self,
            settings=tuple(settings),
            default=default,
            constant=board.constant or self.constant,
            peak=board.peak or self.peak,
            intervals=intervals.wider(board.wider),
            boards=(),
            multiprocessors=None if board.assumed or board.sm_count else self.multiprocessors,
            sm_count=board.sm_count or self.sm_count,
        )
        if board.core_mhz is not None:
            table = table._up_to(board.core_mhz)
        if board.assumed:
            # The table still serves the board, in which nothing is different any more.
            served = parts.Board(board.devices, board.why, assumed=True)
            return replace(table, assumption=board.why, boards=(served,))
        return replace(table, devices=board.devices)

    def _up_to(self, core_mhz: float) -> "CostTable":
        """The table of a board whose core runs at `core_mhz` at most: the default, to which intervals are scaled."""
        top = self._point_at(f"{core_mhz:g}/{self.default.memory_mhz:g}").setting
        measured, there = self.at().prices, self.at(top.label).prices
        prices_pj = {}
        for name, (low, high) in self.intervals.prices_pj.items():
            share = there[name].pj / (measured[name].pj or 1.0)
            prices_pj[name] = (low * share, high * share)
        below = tuple(setting for setting in self.settings if (setting.core_mhz or 0.0) < core_mhz)
        intervals = replace(self.intervals, prices_pj=prices_pj)
        return replace(self, settings=(top, *below), default=top, intervals=intervals)

    def with_memory_at(self, memory_mhz: Collection[float]) -> "CostTable":
        """The table; if none of its settings has any of these memory clocks, that of its first board with one."""
        if {setting.memory_mhz for setting in self.settings} & {*memory_mhz}:
            return self
        boards = (board.devices[0] for board in self.boards if board.memory_mhz in memory_mhz)
        return self.on(next(boards, ""))

    def in_sockets(self, number: float) -> "CostTable":
        """The table for a program that uses so many sockets, where constant power and peaks are those of one.

        Cores of a socket have its whole memory and power limit, and of its constant power and other peaks their share.
        """
        if not self.constant.is_per_socket or number == 1:
            return self
        peaks = dict(self.peak.terms)
        for name, term in peaks.items():
            is_whole = term.domain == "memory" or name == "power_limit_w"
            peaks[name] = replace(term, number=term.number * (math.ceil(number) if is_whole else number))
        return replace(self, constant=replace(self.constant, sockets=number), peak=replace(self.peak, terms=peaks))

    def explain(self, setting: str | None = None) -> dict[str, Any]:
        """All that the table knows at `setting`, as plain data for JSON (docs/costs.md). Raises CostError."""
        costs, spread = self.at(setting), self.replica_intervals(setting)
        watts, formula, _ = self.constant.at(self._point_at(setting))

        def plain(part: parts.Peaks | parts.Multiprocessors) -> dict[str, Any]:
            return {**asdict(part), "marks": mark_names(part.marks)}

        def labelled(setting: Setting) -> dict[str, Any]:
            return {"label": setting.label, **asdict(setting)}

        return {
            "name": self.name,
            "device": self.device,
            "devices": list(self.devices),
            "source": self.source,
            "basis": self.basis,
            "basis_is": parts.BASES.get(self.basis or ""),
            "year": self.year,
            "books": self.books,
            "processor": self.processor,
            "path": self.path,
            "setting": labelled(costs.setting),
            "setting_from": costs.setting_from,
            "settings": [{**labelled(setting), "default": setting == self.default} for setting in self.settings],
            "prices": [
                {
                    "name": name,
                    "unit": name.rpartition("_")[2],
                    **asdict(price),
                    "marks": mark_names(price.marks),
                    "interval_pj": mapped(list, spread.prices_pj.get(name)),
                    "from": self.sources.get(name),
                }
                for name, price in costs.prices.items()
            ],
            "charges": [self._charge_data(word, costs) for word in COUNTS],
            "constant": {
                "power_w": watts,
                "formula": formula,
                "why": self.constant.why,
                "marks": mark_names(costs.constant_marks),
                "interval_w": mapped(list, spread.constant_w),
                "from": self.sources.get(parts.CONSTANT_POWER),
            },
            "interval_is": self.interval_is,
            "boards": [
                {
                    "devices": list(board.devices),
                    "assumed": board.assumed,
                    "interval_constant_w": mapped(list, board.interval_constant_w),
                    "wider": dict(board.wider),
                    "why": board.why,
                }
                for board in self.boards
            ],
            "peaks": plain(costs.peaks),
            "time_components": mapped(plain, self.multiprocessors),
            "multiprocessors": self.sm_count,
            "marks": mark_names(costs.marks),
            "notes": list(costs.notes),
            "relative_voltages": self.relative,
            "fit": dict(self.fit.data) or None,
        }

    def _charge_data(self, word: str, costs: Costs) -> dict[str, Any]:
        """A row of the cost table's `explain`: what `word` pays; `numbers` is the formula with prices put in."""
        unstated = parts.Statement("unpriced", None, "the table says nothing about it", NONE)
        statement = self.statements.get(word, unstated)
        charge = costs.charges.get(word)
        pj, formula, numbers, marks = None, None, None, Mark.MISSING
        if charge is not None:
            pj, formula, marks = charge.pj, charge.formula, charge.marks
        if formula:
            numbers = re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda name: f"{costs.prices[name[0]].pj:.5g}", formula)
        return {
            "word": word,
            "label": COUNTS[word].label,
            "unit": COUNTS[word].unit,
            "status": statement.kind,
            "pj": pj,
            "formula": formula,
            "numbers": numbers,
            "why": statement.why,
            "marks": mark_names(marks),
        }

    def _point_at(self, setting: str | None) -> Point:
        """The point of `setting` ("852/924"; None: the default): listed, or interpolated. Raises CostError."""
        if setting is None:
            return Point(self.default, parts.DEFAULT)
        pair = clock_pair(setting)
        if pair is None:
            raise CostError(no_clock_pair(setting))
        core_mhz, memory_mhz = pair
        for listed in self.settings:
            if (listed.core_mhz, listed.memory_mhz) == (core_mhz, memory_mhz):
                if self.basis not in parts.NEEDS_INTERVALS or listed == self.default:
                    return Point(listed, "asked for; the table lists it")
                # Away from the setting where others measured, the square of the voltage is an estimate.
                found = f"asked for; prices are those at {self.default.label} and go with the square of the voltage"
                marks = {CORE: Mark.ESTIMATED | self._carried(listed.core_v).marks, MEMORY: Mark.ESTIMATED}
                return Point(listed, found, marks)
        curves = {domain: _curve(self.settings, domain) for domain in DOMAINS}
        if not curves[CORE]:
            raise CostError(
                f"{self.name} holds at one setting only ({self.default.label}), not at {setting.strip()}; name none."
            )
        core, memory = _level(curves[CORE], core_mhz), _level(curves[MEMORY], memory_mhz)
        if not curves[MEMORY] and memory_mhz in [listed.memory_mhz for listed in self.settings]:
            memory = None, ""  # nothing goes with its voltage
        if core is None or memory is None:
            known = {domain: curve for domain, curve in curves.items() if curve}
            ranges = " and ".join(f"{domain} {min(curve):g} to {max(curve):g} MHz" for domain, curve in known.items())
            labels = ", ".join(listed.label for listed in self.settings)
            raise CostError(
                f"{self.name} has no setting {setting.strip()}: its voltages are known for {ranges}. It lists {labels}."
            )
        (core_v, core_from), (memory_v, memory_from) = core, memory
        origins = [phrase("core voltage {}", core_from), phrase("memory voltage {}", memory_from)]
        origin = "; ".join(filter(None, origins)) or "both voltages are the table's, though it does not list the pair"
        marks = {
            CORE: marked(Mark.ESTIMATED, core_from) | self._carried(core_v).marks,
            MEMORY: marked(Mark.ESTIMATED, memory_from),
        }
        return Point(Setting(core_mhz, core_v, memory_mhz, memory_v), f"asked for; {origin}", marks)

    def _carried(self, core_v: float | None) -> parts.Voltages:
        """`voltages`, what core voltages are that nobody read; empty for that of the default setting."""
        return parts.Voltages() if core_v == self.default.core_v else self.voltages


def _curve(settings: Iterable[Setting], domain: str) -> dict[float, float]:
    """Clock (MHz) -> voltage (V) of `domain`, for the settings whose voltages are known, sorted by clock."""
    points = [(setting.mhz(domain), setting.volts(domain)) for setting in settings]
    return dict(sorted((mhz, volts) for mhz, volts in points if mhz is not None and volts is not None))


def _level(curve: Mapping[float, float], mhz: float) -> tuple[float | None, str] | None:
    """(The voltage at `mhz`, how it was interpolated, in words, or ""); None: `mhz` is off the curve."""
    if mhz in curve:
        return curve[mhz], ""
    below = max((clock for clock in curve if clock < mhz), default=None)
    above = min((clock for clock in curve if clock > mhz), default=None)
    if below is None or above is None:
        return None
    volts = curve[below] + (curve[above] - curve[below]) * (mhz - below) / (above - below)
    return volts, f"interpolated between {below:g} and {above:g} MHz"


def _between(values: list[float], share: float) -> parts.Range:
    """The range that holds `share` of the replicas' values, with as many below as above."""
    from eprof.base.arrays import middle_share

    low, high = middle_share(values, share)
    return float(low), float(high)


def name_in_tables(device_name: str) -> str:
    """The name by which tables list the device that a log calls `device_name`, normal for matching."""
    return normal_name(_UNNAMED.sub(r"\1", device_name))


def _is_among(device_name: str, devices: Iterable[str]) -> bool:
    return name_in_tables(device_name) in map(name_in_tables, devices)
