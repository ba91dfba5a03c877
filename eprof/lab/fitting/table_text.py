"""A fit as the text of a cost table (docs/costs.md): prices, voltages, charges, and how far to trust them.

A number is written with as many digits as the data tell: four where its interval is narrow, two where it is wide.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct, field

from eprof.base.text import printable, when
from eprof.base.toml import quoted
from eprof.base.vocabulary import COMPUTATION_WORDS, COUNTS, CPU, FLOAT_PARTS, OF_GPUS
from eprof.lab.fitting.quality import LOOSE, TOLD, Quality
from eprof.lab.fitting.solve import CONSTANTS, Fit
from eprof.lab.measurements.values import COUNTED, DOMAINS, MeasurementError, Measurements

_DIGITS = {TOLD: 4, LOOSE: 3}
_IN_OTHER_PRICES = ("conversion", "control", "load_store", "communication", "misc")
_LEVELS = ("shared", "l1", "l2", "l3", "dram")
_TOTALS = tuple(FLOAT_PARTS)
_CYCLES = "core_active_cycle"  # of every core in use: what runs there is in their price


class Head(Struct, frozen=True):
    """What the head of a cost table says: name, GPU, its names in logs, source, year, notes, peaks, command.

    untold: memory level -> the farther level, from whose bytes its own were not told apart. default: the default
    setting, core and memory MHz; None: the fit's reference.
    """

    name: str
    device: str
    devices: tuple[str, ...]
    source: str
    year: int | None = None
    notes: tuple[str, ...] = ()
    peaks: Mapping[str, float] = field(default_factory=dict)
    multiprocessors: float | None = None
    untold: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    default: tuple[float, float] | None = None


def check_events(measurements: Measurements) -> None:
    """Raise MeasurementError where no fit of the measurements can be a cost table (utilisations, no counts)."""
    if measurements.kind != COUNTED or measurements.own:
        raise MeasurementError(
            "A cost table prices events, and these measurements have none: a utilisation says how busy a unit is, not "
            "what it did. The fit can be shown and validated, but makes no table."
        )


def text(measurements: Measurements, fitted: Fit, quality: Quality, head: Head) -> str:
    """The text of the file of a fitted cost table. Raises MeasurementError for a fit that has no price of an event."""
    check_events(measurements)
    unpayable = [term for term in fitted.prices_pj.index if term not in _payable()]
    if unpayable:
        raise MeasurementError(
            f"No word of the vocabulary pays {', '.join(unpayable)}, so a cost table cannot hold it; leave it out with "
            f"--without, or name it one of {', '.join(sorted(_payable()))} in the mapping."
        )
    table = _Text(measurements, fitted, quality, head)
    parts = [table.header(), table.settings(), table.prices(), table.constant()]
    if head.peaks:
        peaks = "".join(f"{key} = {value:g}\n" for key, value in head.peaks.items())
        measured = when(any(key.startswith("random") for key in head.peaks), ", random accesses as measured")
        why = f"lanes and bus width of the data sheet{measured}; peaks grow with their clock"
        parts.append(f'[peak]\n{peaks}why = "{why}"\n')
    return "\n".join([*filter(None, parts), table.charges(), table.fit()])


def _payable() -> set[str]:
    """The names of prices that some word of the vocabulary can pay."""
    computation = {f"{word}_{COUNTS[word].unit}" for word in COMPUTATION_WORDS}
    computation |= {f"{total}_flop" for total in _TOTALS} | {"sm_active_cycle", "random_access"}
    return computation | {f"{level}_byte" for level in _LEVELS}


def number(value: float, digits: int = 4) -> str:
    """A number as text of a cost table, with so many significant digits."""
    text = f"{value:.{digits}g}"
    if "e" in text and value >= 1:
        return f"{float(text):.0f}"
    return text


def _quoted_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


class _Text(Struct, frozen=True, eq=False):
    """A fit as the parts of a cost table's text: head, settings, prices, constant power, charges, the fit."""

    measurements: Measurements
    fitted: Fit
    quality: Quality
    head: Head

    @property
    def one_setting(self) -> bool:
        """Whether all was measured at one setting: then there are no voltages to speak of."""
        return len(self.measurements.settings) == 1

    @property
    def is_cpu(self) -> bool:
        """Whether the processor is a CPU, which chooses its clocks itself."""
        return self.measurements.processor == CPU

    @property
    def relative(self) -> bool:
        """Whether the fitted voltages are relative to the reference, and not in volts."""
        return self.fitted.form.voltages != "given"

    def header(self) -> str:
        """The text of the header: comment, name, device, source."""
        head = self.head
        # A line end in a name would end the comment.
        lines = [
            f"# What an instruction and a byte cost on {printable(head.device)}. docs/costs.md explains the format.",
            "#",
        ]
        if head.command:
            lines += ["# Made by", f"#   {printable(head.command)}", "#"]
        lines += [
            "# The counts are those of a regression: what was not counted is in the price of what goes with it, and",
            "# prices of counts that come and go together cannot be told apart ([fit] says which).",
            "schema = 1",
            f"name = {quoted(head.name)}",
            f"device = {quoted(head.device)}",
            f"devices = {_quoted_list(head.devices)}",
            f"source = {quoted(head.source)}",
            'basis = "fitted"',
        ]
        if self.is_cpu:
            lines.append(f"processor = {quoted(CPU)}")
        if head.year is not None:
            lines.append(f"year = {head.year}")
        if head.multiprocessors is not None:
            lines.append(f"multiprocessors = {head.multiprocessors:g}")
        lines.append(
            'books = "accessed"          # each price is what that level adds; a byte pays at every level it passes'
        )
        notes = []
        error = self.quality.errors.get("leave_one_benchmark_out")
        if error is not None:
            notes.append(
                f"{head.name} was fitted to measured power: kernels that it had not seen are {error:.1f} % off on "
                f"average, nine of ten within a factor of {self.quality.within:.2f}, and single prices less certain "
                "than their sum."
            )
        if not self.measurements.is_clocked:
            device = "processor" if self.is_cpu else "GPU"
            notes.append(f"{head.name} holds at the clocks that the {device} chose while it was measured.")
        elif self.one_setting:
            notes.append(f"{head.name} holds at the one setting that was measured.")
        lines.append(f"notes = {_quoted_list((*notes, *head.notes))}")
        return "\n".join(lines) + "\n"

    def settings(self) -> str:
        """The text of the settings with their voltages; the default is the reference, or the nearest to it."""
        if not self.measurements.is_clocked:
            return ""
        pairs = self.measurements.settings
        away = (pairs - np.array(self.head.default or self.fitted.reference)).abs().sum(axis=1)
        default = int(away.to_numpy().argmin())
        if self.head.default and away.min() > 0:
            core, memory = self.head.default
            raise MeasurementError(f"The default setting {core:g}/{memory:g} was not measured.")
        if self.one_setting:
            core, memory = pairs.iloc[0]
            return f"setting = [{{ core_mhz = {core:g}, memory_mhz = {memory:g} }}]\n"
        lines = ["setting = ["]
        for place, clocks in enumerate(pairs.itertuples(index=False)):
            entries = []
            for domain, mhz in zip(DOMAINS, clocks, strict=True):
                volts = float(self.fitted.volts[domain][mhz])
                voltage = when(self.relative, f"{domain}_v_rel = {volts:.4f}") or f"{domain}_mv = {1e3 * volts:.1f}"
                entries.append(f"{domain}_mhz = {mhz:g}, {voltage}")
            if place == default:
                entries.append("default = true")
            lines.append(f"    {{ {', '.join(entries)} }},")
        return "\n".join([*lines, "]"]) + "\n"

    def prices(self) -> str:
        """The text of the prices by domain, each with its interval behind it."""
        unit = "pj_at_reference" if self.relative else "pj_per_v2"
        sections = []
        for domain in DOMAINS:
            terms = [term for term in self.fitted.prices_pj.index if self.fitted.domains[term] == domain]
            prices = []
            for term in terms:
                status = str(self.quality.status[term])
                value = number(float(self.fitted.prices_pj[term]), _DIGITS.get(status, 2))
                behind = ""
                if len(self.quality.replicas):
                    low, high = self._interval(term)
                    trust = {TOLD: "", LOOSE: "; loosely known"}.get(status, "; the data cannot tell")
                    behind = f"    # {number(low, 2)} to {number(high, 2)}{trust}"
                    if np.isnan(low):
                        behind = "    # the data cannot tell"
                prices.append(f"{term} = {value}{behind}")
            if prices and not self.one_setting:
                prices.insert(0, f"[{unit}.{domain}]")
            if prices:
                sections.append("\n".join(prices) + "\n")
        if self.one_setting:
            return "[pj]\n" + "".join(sections)
        return "\n".join(sections)

    def _interval(self, name: str) -> tuple[float, float]:
        intervals = self.quality.intervals
        return float(intervals["low"][name]), float(intervals["high"][name])

    def constant(self) -> str:
        """The text of the section [constant_power]."""
        lines = ["[constant_power]"]
        values = self._constants()
        lines += [f"{name} = {number(value)}" for name, value in values.items()]
        if self.measurements.per_socket:
            lines.append('per = "socket"              # in use')
        watts, low, high = self.quality.constant_w
        interval = when(not np.isnan(low), f" ({number(low, 3)} to {number(high, 3)} W)")
        place = when(self.measurements.is_clocked and not self.is_cpu, " at the reference setting")
        place += when(self.measurements.per_socket, " for each socket in use")
        lines.append(
            f'why = "fitted with the prices; {number(watts, 3)} W{place}{interval}; how it splits into parts cannot be '
            'told"'
        )
        return "\n".join(lines) + "\n"

    def _constants(self, values: Mapping[Any, float] | None = None) -> dict[str, float]:
        """The terms of constant power to write, of the fit or of a replica; at a single setting just `w`."""
        values = values or self.fitted.constants
        if self.one_setting:
            core_v, memory_v = self.fitted.voltages(self.measurements)[0]
            core_mhz, memory_mhz = self.measurements.settings.iloc[0]
            watts = values["core_w_per_v"] * core_v + values["memory_w_per_v"] * memory_v + values["w"]
            watts += values["core_w_per_mhz_v2"] * core_mhz * core_v**2
            return {"w": float(watts + values["memory_w_per_mhz_v2"] * memory_mhz * memory_v**2)}
        replicas, fitted = self.quality.replicas, self.fitted.constants
        used = [name for name in CONSTANTS if fitted[name] > 0 or (name in replicas and (replicas[name] > 0).any())]
        return {name: values[name] for name in used} or {"w": 0.0}

    def charges(self) -> str:
        """The text of the section [charge]: what every word of the vocabulary pays."""
        charges = {word: self._charge(word) for word in COUNTS}
        lines = [f"{word} = {{ {charge} }}" for word, charge in charges.items() if charge is not None]
        return "\n".join(["[charge]", *lines]) + "\n"

    def _charge(self, word: str) -> str | None:
        """The text of a word's charge and its reason; None where nothing need be said of the word."""
        known = self.fitted.prices_pj.index
        kind_of = next((total for total in _TOTALS if word in (total, *FLOAT_PARTS[total])), word)
        level, _, direction = word.rpartition("_")
        unit = COUNTS[word].unit
        names = [f"{word}_{unit}", f"{kind_of}_{unit}", f"{kind_of}_flop", word]
        if direction in ("read", "write") and level in _LEVELS:
            names = [f"{level}_byte"]
        price = next((name for name in names if name in known), None)
        if price is not None:
            why, mark = "fitted", ""
            if word in _TOTALS and not price.startswith(f"{word}_flop"):
                mark = ', mark = "assumed"'
            if str(self.quality.status[price]) not in _DIGITS and len(self.quality.replicas):
                low, high = self._interval(price)
                why, mark = "fitted, but the data cannot tell", ', mark = "estimated"'
                if not np.isnan(low):
                    why += f": {number(low, 2)} to {number(high, 2)} pJ"
            if kind_of in _TOTALS and word not in _TOTALS and not price.startswith(word):
                why += "; all kinds as one"
            elif direction in ("read", "write"):
                why += "; reads and writes as one"
            formula = when(COUNTS[word].flops == 2 and price.endswith("_flop"), "2 * ") + price
            return f"formula = {quoted(formula)}, why = {quoted(why)}{mark}"
        if unit in ("flop", "cycle", "access") or (self.is_cpu and word in OF_GPUS):
            return None
        kinds = [f"{word}_{kind}_instruction" for kind in ("add", "mul")]
        if set(kinds) <= set(known):
            why = "kinds not told apart: each taken for the mean of an add and a multiply"
            return f'formula = "({" + ".join(kinds)}) / 2", why = "{why}", mark = "assumed"'
        pays, why = self._unpaid(word)
        return f"{pays} = {quoted(why)}"

    def _unpaid(self, word: str) -> tuple[str, str]:
        """For the table's text: "nothing" or "unpriced", what a word without a fitted price pays, and why."""
        if _CYCLES in self.fitted.prices_pj.index and not word.startswith(("fp32", "fp16", "tensor", "system", "dram")):
            # The regression spreads what was not counted over what was: totals hold, the split does not.
            return "nothing", "not told apart: in the prices of core cycles, instructions and DRAM bytes"
        if word in _IN_OTHER_PRICES:
            if "warp_issue_instruction" in self.fitted.prices_pj.index:
                return "nothing", "in the price of a warp instruction issued, and in the error of the fit"
            return "nothing", "in the prices of what goes with it, and in the error of the fit"
        if (farther := self.head.untold.get(word.partition("_")[0])) is not None:
            return "unpriced", f"not told apart from bytes of {farther}, whose price has both"
        if word == "warp_issue":
            return "nothing", "in the prices of instructions"
        if word.startswith(("global_", "local_")):
            return "nothing", "the same bytes are charged at the levels that they pass"
        if word.startswith("system_"):
            return "unpriced", "host memory was not among the counts that the table was fitted to"
        return "unpriced", "not among the counts that the table was fitted to"

    def fit(self) -> str:
        """The text of the section [fit]."""
        quality = self.quality
        measurements = self.measurements
        core_mhz, memory_mhz = self.fitted.reference
        lines = [
            "[fit]",
            f"data = {_quoted_list(Path(source).name for source in measurements.sources)}",
            f"mapping = {quoted(measurements.mapping)}",
            f"form = {quoted(self.fitted.form.words)}",
            f"rows = {len(measurements)}",
            f"benchmarks = {measurements.rows['benchmark'].nunique()}",
            f"settings = {len(measurements.settings)}",
            *[f"reference = [{core_mhz:g}, {memory_mhz:g}]"] * self.measurements.is_clocked,
            f"error_percent = {{ {', '.join(f'{name} = {value:.2f}' for name, value in quality.errors.items())} }}",
        ]
        if not np.isnan(quality.within):
            lines.append(f"within = {quality.within:.2f}        # times or divided by: nine of ten kernels left out")
        if not np.isnan(quality.condition):
            lines.append(f"condition = {number(quality.condition, 2)}")
        lines.append(f"collinear = [{', '.join(map(_quoted_list, quality.collinear))}]")
        if len(quality.replicas):
            terms = list(self.fitted.prices_pj.index)
            lines.append(f"interval_pj = {{ {_pairs_text(quality.intervals.loc[terms].dropna())} }}")
            _, low_w, high_w = quality.constant_w
            lines.append(f"interval_constant_w = [{number(low_w, 3)}, {number(high_w, 3)}]")
            lines.append(f"told = {{ {', '.join(f'{term} = {quoted(str(quality.status[term]))}' for term in terms)} }}")
        clocks = when("core_mhz" in quality.ranges.index, "clocks in MHz, ")
        lines.append(f"range = {{ {_pairs_text(quality.ranges)} }}        # {clocks}W, 1e9 events a second")
        lines.append(f"notes = {_quoted_list((*measurements.notes, *quality.notes))}")
        lines.append("")
        replicas = quality.replicas.head(30)
        if len(replicas):
            lines.append(
                "[fit.replicas]        # the same fit to benchmarks drawn at random: how far the numbers are known"
            )
            for term, fitted_pj in self.fitted.prices_pj.items():
                # A replica without this price takes that of another, or the fitted one.
                known = replicas[term].dropna().to_numpy()
                others = np.resize(known if len(known) else [float(fitted_pj)], len(replicas))
                lines.append(f"{term} = {_list(replicas[term].fillna(pd.Series(others, index=replicas.index)))}")
            constants = [self._constants(row) for row in replicas[list(CONSTANTS)].to_dict("records")]
            lines += [f"{name} = {_list([values[name] for values in constants])}" for name in self._constants()]
        return "\n".join(lines) + "\n"


def _pairs_text(table: pd.DataFrame) -> str:
    ends = table[["low", "high"]].itertuples()
    return ", ".join(f"{name} = [{number(low, 3)}, {number(high, 3)}]" for name, low, high in ends)


def _list(values: Sequence[float] | pd.Series) -> str:
    return "[" + ", ".join(number(float(value), 3) for value in values) + "]"
