"""Column mappings: which column of a file is what. TOML files of `counters/measurements/`, or one of the user's.

docs/fit.md explains the form. Columns are used in formulas (`eprof.base.toml`); what is not there is left out.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct, field

from eprof.base.resources import folder
from eprof.base.text import brief, listed, pattern
from eprof.base.toml import Document, Formula, Node
from eprof.base.vocabulary import CPU, GPU
from eprof.counts.definition import COMPONENTS
from eprof.counts.definition_files import capabilities_like
from eprof.lab.measurements import values
from eprof.lab.measurements.values import BEHIND, CLOCKS, COUNTED, DOMAINS, ENERGIES, POWERS, TIMES, USED, VOLTS

SCHEMA = 1
_PLAINEST = "eprof"  # the mapping whose columns someone would write who has none
_VERSION = pattern(r"(\d{1,3})\.(\d{1,3})")
_LARGEST = 1e100
ENERGIES_ONLY = "energies"
# What tables of others call the columns that tuning needs.
_NO_TIME = "stamp|start|end_|compile|benchmark_|strategy|framework|verification|cuda_|iqr|std|dev"
_LIKE = {
    "benchmark": pattern(r"(?i)(kernel|benchmark|workload|program)(?!.*time)"),
    "core_mhz": pattern(r"(?i)(core|sm|gr|graphics|gpu)[\W_]*(freq|clo?c?k|mhz)|^freq"),
    "memory_mhz": pattern(r"(?i)mem\w*[\W_]*(freq|clo?c?k|mhz)"),
    "time_s": pattern(rf"(?i)^(?!.*({_NO_TIME}|[\W_]per_)).*(time|latency|duration|elapsed|_[mun]?s$)"),
    "energy_j": pattern("(?i)(energy|joule)(?!.*_(bit|flop|op)$)"),
    "power_w": pattern(r"(?i)^(?!.*(limit|max|peak)).*(power|watt)"),  # a mean
}
KINDS = (COUNTED, USED, ENERGIES_ONLY)
_NAMES = ("benchmark", "benchmark_id", "kernel", "device")
_WORK = (*COMPONENTS, "control", "fp32_flop", "fp64_flop")
_HEAD = (
    *("schema", "name", "title", "kind", "processor", "clocks", "capability", "needs", "tell"),
    *("columns", "reference", "notes", "terms", "time", "wraps"),
)


class Cells(Struct, frozen=True):
    """A column mapping's formula of a file's columns, by name; a name that is no word stands in backticks."""

    text: str
    formula: Formula
    columns: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> "Cells":
        """Parse a formula of a mapping's columns. Raises ValueError with the reason."""
        quoted: dict[str, str] = {}

        def named(match: re.Match[str]) -> str:
            return quoted.setdefault(match[1].strip(), f"column_in_backticks_{len(quoted)}")

        plain = re.sub("`([^`]+)`", named, text)
        try:
            formula = Formula.parse(plain)
        except ValueError as err:
            raise ValueError(f"{err}; columns with other letters than a to z, digits and _ go in backticks") from err
        known = {word: name for name, word in quoted.items()}
        return cls(text, formula, {word: known.get(word, word) for word in formula.names})

    @property
    def names(self) -> frozenset[str]:
        """The columns that the formula needs."""
        return frozenset(self.columns.values())

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value of the formula, with `values` of the columns: a number, or a pandas column of them."""
        return self.formula({word: values[name] for word, name in self.columns.items()})


class MeasuredRate(Struct, frozen=True):
    """A rate: its name (a price's), the domain whose voltage it goes with, formulas that count it, the best first."""

    name: str
    domain: str
    formulas: tuple[Cells, ...]

    def formula(self, header: Collection[str]) -> Cells | None:
        """The formula to use for a file with the columns `header`: the first whose columns are there; None: none."""
        return next((formula for formula in self.formulas if formula.names <= set(header)), None)


class Columns(Struct, frozen=True, eq=False):
    """A checked column mapping. columns: what eprof needs -> a column of the file, a formula, or a number for all rows.

    capability: the compute capabilities of the GPUs that it is for, where that matters ("7.0+": all from there on).
    tell: a formula of columns that is not negative in three of four rows of such a file, for a GPU that nobody named.
    processor: "gpu", or "cpu". clocks: whether there are columns of them, as there are none of a CPU. work: what times
    by component need of one launch -> formula of columns. wraps: columns of `counts` whose counters may wrap, and those
    that rows of the `same` program with the same input agree in.
    """

    name: str
    title: str
    kind: str
    needs: tuple[str, ...]
    columns: Mapping[str, Any]
    terms: tuple[MeasuredRate, ...]
    reference: tuple[float, float] | None
    notes: tuple[str, ...]
    label: str
    capability: tuple[str, ...] = ()
    tell: Cells | None = None
    processor: str = GPU
    clocks: bool = True
    work: Mapping[str, Cells] = field(default_factory=dict)
    wraps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def suits(self, frame: pd.DataFrame, capabilities: Collection[str] = ()) -> bool:
        """Whether this mapping can read a table. capabilities: those that the GPU may have; none: not known."""
        if not set(self.needs) <= set(frame.columns):
            return False
        if capabilities and self.capability:
            return any(map(self._is_for, capabilities))
        if self.tell is None or not self.tell.names <= set(frame.columns):
            return self.tell is None
        told = self.tell({name: values.numbers(frame[name]) for name in self.tell.names})
        return bool((told >= 0).mean() >= 0.75)

    def _is_for(self, capability: str) -> bool:
        """Whether a mapping is for GPUs of a compute capability: one that it lists, or "7.0+", that and all later."""
        last = self.capability[-1]
        numbers = [_VERSION.fullmatch(text) for text in (capability, last.removesuffix("+"))]
        known = [(int(each[1]), int(each[2])) for each in numbers if each is not None]
        return capability in self.capability or (last.endswith("+") and len(known) == 2 and known[0] >= known[1])

    def present(self, header: Collection[str]) -> tuple[MeasuredRate, ...]:
        """The terms with a formula whose columns are all in `header`."""
        return tuple(term for term in self.terms if term.formula(header) is not None)


@cache
def mappings() -> tuple[Columns, ...]:
    """The mappings that come with eprof, sorted by name."""
    files = [file for file in (folder("counters") / "measurements").iterdir() if file.name.endswith(".toml")]
    return tuple(parse(Document.read(file)) for file in sorted(files, key=lambda file: file.name))


def load(name_or_path: str) -> Columns:
    """A column mapping by its name, its file, or of columns alone. Raises MeasurementError, DefinitionError.

    Of columns alone: "benchmark=what, core_mhz=f, memory_mhz=877, time_ms=t, energy_mj=e".
    """
    if "=" in name_or_path:
        columns: dict[str, Any] = {}
        for part in name_or_path.split(","):
            key, _, column = (word.strip() for word in part.partition("="))
            if key in columns:
                columns[key] = [*np.atleast_1d(columns[key]).tolist(), column]
            else:
                columns[key] = float(column) if re.fullmatch(r"\d+(\.\d+)?", column) else column
        head = {"schema": SCHEMA, "name": "--mapping", "title": "columns named by --mapping", "kind": ENERGIES_ONLY}
        return parse(Document("--mapping", name_or_path, {**head, "needs": [], "columns": columns}))
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return parse(Document.read(Path(name_or_path)))
    for mapping in mappings():
        if mapping.name == name_or_path:
            return mapping
    known = ", ".join(mapping.name for mapping in mappings())
    raise values.MeasurementError(
        f"There is no column mapping `{name_or_path}`; there are {known}. A file of your own is given by its path."
    )


def choose(frame: pd.DataFrame, label: str, device: str | None = None) -> Columns:
    """The mapping that can read this table and uses most of its columns. label: the table's name in messages.

    device: the name of the measured GPU. Raises MeasurementError if none does.
    """
    header = frame.columns
    capabilities = capabilities_like(device) if device else ()
    suitable = [mapping for mapping in mappings() if mapping.suits(frame, capabilities)]
    if not suitable:
        shown = brief(", ".join(sorted(header)[:12]), 300)
        # The mapping for which the table lacks the fewest columns.
        lacking = [([name for name in each.needs if name not in header], each) for each in mappings()]
        fewest, nearest = min(lacking, key=lambda pair: len(pair[0]) / len(pair[1].needs))
        said = f"Nearest is {nearest.name}, which needs {', '.join(fewest)} besides."
        if len(fewest) == len(nearest.needs):
            wanted = ", ".join(load(_PLAINEST).needs)
            said = f"They share none with those that eprof knows; {_PLAINEST} wants {wanted}."
        elif not fewest:
            said = f"{nearest.name} would have its columns, but they do not hold what it takes them for."
        way = suggestion(frame) if len(fewest) > 1 else ""
        way = way or (
            f"{said} Write a mapping (docs/fit.md has one to begin with) and name it with --mapping; "
            f"those that come with eprof are {', '.join(mapping.name for mapping in mappings())}."
        )
        raise values.MeasurementError(f"{label}: no column mapping suits these columns ({shown}...). {way}")
    best = max(suitable, key=lambda each: (len(each.present(header)), each.tell is not None, len(each.needs)))
    counted = [each for each in mappings() if each.kind == COUNTED and set(each.needs) <= set(header)]
    if capabilities and counted and best.kind != COUNTED:
        raise values.MeasurementError(
            f"{label}: has counts, which {listed([each.name for each in counted])} read, but of GPUs of other compute "
            f"capabilities than {device} has ({listed(sorted(capabilities), 'or')}); name with --mapping the one whose "
            "terms hold there."
        )
    return best


def suggestion(frame: pd.DataFrame) -> str:
    """A sentence with a --mapping for this table, guessed from the names of its columns.

    "" where none is of power or energy, or none of clocks: what ran at one setting is nothing to tune or fit.
    """
    said = {}
    for key, sign in _LIKE.items():
        column = next(filter(sign.search, frame.columns), "?")
        unit = BEHIND.search(column)
        in_unit = f"{key.rpartition('_')[0]}_{unit and unit[1].lower()}"
        said[in_unit if in_unit in (*TIMES, *POWERS, *ENERGIES, *CLOCKS) else key] = column
    # One of both is enough, and joules need no other time than that of their row.
    if "?" in (said.get("power_w"), said.get("energy_j")):
        said.pop("energy_j" if said.get("energy_j") == "?" else "power_w")
    lacks_time = all(said.get(time, "?") == "?" for time in TIMES)
    lacks_clocks = "?" == said.get("core_mhz") == said.get("memory_mhz")
    lacks_energy = "?" in (said.get("power_w"), said.get("energy_j")) or (lacks_time and "energy_j" not in said)
    if lacks_energy or lacks_clocks:
        return ""
    columns = ", ".join(f"{key}={column}" for key, column in said.items())
    return (
        f"Say which is which, for eprof tune or fit: --mapping {quote(columns)} is a guess by their names. A ? is a "
        "column, or a number for all rows; columns that tell benchmarks apart are joined (benchmark=kernel, "
        "benchmark=size). With counts, a mapping is a file (docs/fit.md)."
    )


def parse(document: Document) -> Columns:
    """The column mapping in `document`. Raises DefinitionError with the line."""
    root = document.root
    root.schema(SCHEMA)
    root.table(_HEAD)
    processor = root["processor"].choice((CPU, GPU), GPU)
    clocks = root["clocks"].truth(processor == GPU)
    reference = None
    if (node := root["reference"]).value is not None:
        kind = "[core MHz, memory MHz]"
        mhz = [clock.number(0, _LARGEST) for clock in node.entries(kind)]
        if len(mhz) != 2:
            raise node.wrong(kind)
        reference = mhz[0], mhz[1]
    return Columns(
        name=root["name"].text(),
        title=root["title"].text(),
        kind=root["kind"].choice(KINDS),
        needs=root["needs"].texts(),
        columns=_columns(root["columns"], clocks),
        terms=_terms(root["terms"]),
        reference=reference,
        notes=root["notes"].texts(),
        label=document.label,
        capability=root["capability"].texts(),
        tell=_formula(root["tell"]) if "tell" in root else None,
        processor=processor,
        clocks=clocks,
        work={name: _formula(formula) for name, formula in root["time"].items(_WORK)},
        wraps={key: entry.texts() for key, entry in root["wraps"].items(("counts", "same"))},
    )


def _columns(node: Node, clocks: bool) -> dict[str, Any]:
    """A mapping's [columns], checked: key -> column, formula or number. clocks: these must be among them."""
    if node.value is None:
        raise node.error("[columns] is missing: which column is the benchmark, the clocks, the power.")
    node.table((*_NAMES, "threads", "processors", *CLOCKS, *TIMES, *POWERS, *ENERGIES, *VOLTS))
    for key, column in node.items():
        if key == "benchmark" and isinstance(column.value, list):
            column.texts()
        elif not isinstance(column.value, str):
            is_number = type(column.value) in (int, float) and abs(column.value) < _LARGEST
            if key in _NAMES or not is_number:
                raise column.error(f"`{key}` must name a column, or be a number for all rows.")
    if "benchmark" not in node:
        raise node.error("[columns] must say what `benchmark` is.")
    for domain in DOMAINS if clocks else ():
        if not any(key in node for key in CLOCKS if key.startswith(domain)):
            raise node.error(f"[columns] must say what `{domain}_mhz` is (or {domain}_ghz, _khz, _hz).")
    if not any(key in node for key in (*POWERS, *ENERGIES)):
        raise node.error("[columns] must name the power or the energy.")
    return dict(node.value)


def _terms(node: Node) -> tuple[MeasuredRate, ...]:
    """The rates in [terms.core] and [terms.memory] of a mapping, with the formulas that count each."""
    if node.value is not None:
        node.table(DOMAINS)
    terms: dict[str, MeasuredRate] = {}
    for domain, of_domain in node.items():
        for name, formulas in of_domain.items():
            if name in terms:
                raise formulas.error(f"`{name}` stands in both domains.")
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise of_domain.error(f"`{name}` is not the name of a price; use small letters, digits and _.")
            terms[name] = MeasuredRate(name, domain, tuple(_formula(formula) for formula in formulas.each()))
    return tuple(terms.values())


def _formula(node: Node) -> Cells:
    try:
        return Cells.parse(node.text())
    except ValueError as err:
        raise node.error(f"{err}.") from err
