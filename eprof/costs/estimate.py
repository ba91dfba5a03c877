"""Cost tables for GPUs that nobody measured: the shape of prices that four GPUs share, and constant power.

The shape is `counters/measurements/priors/shape.toml`, which docs/studies/power/transfer.py makes; docs/costs.md says
how far off such a table may be. A table is written as the text of a file, and read like any other.
"""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import CostError
from eprof.base.gpus import capability_of_label
from eprof.base.resources import folder
from eprof.base.text import brief, listed, printable
from eprof.base.toml import Document, quoted
from eprof.costs.datasheets import DataSheet, data_sheet, near, sheets
from eprof.costs.file import read
from eprof.costs.table import CostTable
from eprof.counts.counters import capability_of

_LARGEST_W = 10_000
_PRIORS = folder("counters") / "measurements" / "priors"
TENSOR_FLOP = "tensor_fp16_flop"
_FP64 = "fp64_instruction"
_FULL_RATE, _LOW_RATE = "fp64_full_rate_instruction", "fp64_low_rate_instruction"
_SHAPE_SOURCE = "docs/studies/power: the shape that four GPUs share"
_TENSOR_SOURCE = (
    "0.37 to 2.1 pJ a flop: A100 and GH200 of Antepara et al., SC 2025 (transcribed), B300 of sinkers/gpu-power-lab, "
    "RTX 3090 of bang001/gpupower0701 (docs/studies/power)"
)
_SOURCE = (
    "docs/studies/power/transfer.py: one shape of prices for the GTX 980, GTX 1080 Ti, P100 and V100, fitted to "
    "NV-DVFS-Benchmark (Q. Wang, X. Chu, ICPADS 2018)"
)


_GIVEN = "the idle power that was given"


def estimated(
    device_name: str, idle_w: float | None = None, tdp_w: float | None = None, idle_from: str = _GIVEN
) -> CostTable:
    """The estimated cost table for the GPU that a log calls `device_name`, or a user for short ("RTX 4090").

    idle_w: its idle power in W at the clocks of a load, which is its constant power; idle_from: where that is from.
    Without it, constant power is a share of the board's power limit `tdp_w` in W; without that, of the limit of its
    data sheet.
    Raises CostError: no such power, or a GPU whose data sheet is not known when neither is given.
    """
    return parsed(table_text(device_name, idle_w, tdp_w, idle_from))


def of_capability(capability: str, device_name: str | None = None) -> CostTable:
    """The estimated cost table for a GPU of which only the compute capability is known ("8.6"), or no data sheet.

    Constant power is that of the boards of this capability: their geometric mean, and their spread on top of its own.
    Raises CostError: no board of this capability has a data sheet.
    """
    boards = [sheet for sheet in sheets() if capability in capability_of(sheet.name) and sheet.limit_w]
    if not boards:
        raise CostError(f"eprof has no data sheet of a GPU of compute capability {brief(capability, 20)}.")
    name = f"a GPU of compute capability {capability}"
    parts = [_constant(board, None, "") for board in boards]
    logs = [math.log(part.watts) for part in parts]
    sd = math.hypot(statistics.pstdev(logs), max(part.sd for part in parts))
    source = f"the mean of {len(boards)} boards of compute capability {capability}"
    if device_name and capability_of_label(device_name) is None:
        source += f", because no data sheet of {printable(device_name)} is known"
    constant = _Constant(math.exp(statistics.fmean(logs)), sd, source)
    note = _estimate_note(name, constant)
    origin = Origin("estimated", _SOURCE, _SHAPE_SOURCE, note, _TENSOR_SOURCE)
    largest = DataSheet(name, limit_w=max(board.limit_w or 0.0 for board in boards))
    prices = shape_prices(f"ncu device 0 (CC {capability})")
    return parsed(_text(device_name or f"CC {capability}", largest, constant, prices, origin))


def parsed(text: str) -> CostTable:
    """The estimated cost table of a text that `table_text` made."""
    table, errors = read(Document.parse(text, "estimated"))
    if table is None:
        raise errors[0]
    return table


def table_text(
    device_name: str, idle_w: float | None = None, tdp_w: float | None = None, idle_from: str = _GIVEN
) -> str:
    """The file of the table that `estimated` returns."""
    _check_watts("--idle-w", idle_w)
    _check_watts("--tdp-w", tdp_w)
    if not device_name.split():
        raise CostError("Say which GPU is meant, such as `RTX 4090`.")
    sheet = data_sheet(device_name)
    if sheet is None and idle_w is None and tdp_w is None:
        raise CostError(_unlisted(device_name))
    board = sheet or DataSheet(" ".join(device_name.split()))
    if tdp_w is not None:
        board = replace(board, limit_w=tdp_w)
    if idle_w is not None and board.limit_w is not None and idle_w >= board.limit_w:
        raise CostError(
            f"An idle power of {idle_w:g} W cannot be: the power limit of {board.name} is {board.limit_w:g} W; give "
            "--idle-w in watts, as nvidia-smi prints it."
        )
    constant = _constant(board, idle_w, idle_from)
    note = _estimate_note(printable(board.name), constant)
    origin = Origin("estimated", _SOURCE, _SHAPE_SOURCE, note, _TENSOR_SOURCE)
    return _text(device_name, board, constant, shape_prices(board.name), origin)


def scaled_text(device_name: str, idle_w: float, prices: "Prices", origin: "Origin") -> str:
    """The file of an estimated table whose prices and idle power in W were scaled to measurements of the GPU itself."""
    board = data_sheet(device_name) or DataSheet(" ".join(device_name.split()))
    constant = _Constant(idle_w, shape()["constant"]["idle_known_sd"], "idle power, measured on this GPU")
    return _text(device_name, board, constant, prices, origin)


class Prices(Struct, frozen=True):
    """Prices in pJ by name, and each in every replica: name -> (n_replicas,)."""

    pj: Mapping[str, float]
    replicas: Mapping[str, Sequence[float]]


class Origin(Struct, frozen=True):
    """Where a table's numbers come from: its name, its source, the source of each price, and a note for reports.

    of_tensor: the source of the price of tensor work, if it is another.
    """

    name: str
    source: str
    of_prices: str
    note: str
    of_tensor: str = ""


def _text(device_name: str, board: DataSheet, constant: "_Constant", prices: Prices, origin: Origin) -> str:
    name = printable(board.name)
    names = dict.fromkeys([printable(" ".join(device_name.split())), name])
    lines = [
        f"# What an instruction and a byte may cost on {name}: estimated, nobody measured this GPU.",
        "# docs/costs.md says how, and how far off it may be.",
        "schema = 1",
        f"name = {quoted(origin.name)}",
        f"device = {quoted(name)}",
        f"devices = [{', '.join(map(quoted, names))}]",
        f"source = {quoted(origin.source)}",
        'basis = "estimated"',
        'books = "accessed"',
        f"notes = [{quoted(origin.note)}]",
    ]
    if board.limit_w is not None:
        lines += ["", "[peak]", f"power_limit_w = {board.limit_w:g}"]
        lines += [f"{name} = {peak:.6g}" for name, peak in board.peaks.items()]
        lines.append('why = "the data sheet: power limit, and peaks at the boost clock"')
    head = "\n".join(lines) + "\n"
    steps = shape()["replicas"]["constant_steps"]
    constants_w = [constant.watts * math.exp(constant.sd * step) for step in steps]
    intervals = [f"{name} = {_interval(price, prices.replicas[name])}" for name, price in prices.pj.items()]
    lines = [
        "[fit]",
        'form = "one shape for four GPUs, a scale and constant power for each, least absolute relative errors"',
        f"interval_pj = {{ {', '.join(intervals)} }}",
        f"interval_constant_w = {_interval(constant.watts, constants_w)}",
        "",
        "[fit.replicas]        # shapes of GPUs and kernels drawn at random, times a scale drawn for the GPU",
        *(f"{name} = {_numbers(replicas)}" for name, replicas in prices.replicas.items()),
        f"w = {_numbers(constants_w)}",
    ]
    sections = (_price_lines(prices, constant, origin), _charge_lines(prices.pj), "\n".join(lines) + "\n")
    return "\n".join([head, *sections])


# ---- what is known of the board


def _check_watts(option: str, watts: float | None) -> None:
    if watts is not None and not 0 < watts <= _LARGEST_W:
        raise CostError(f"{option} {watts:g} cannot be: it is in watts, above 0 and at most {_LARGEST_W}.")


def _unlisted(device_name: str) -> str:
    boards = near(device_name)
    meant = f"Did you mean {listed(boards, 'or')}? " if boards else ""
    return (
        f"eprof has no data sheet of `{brief(device_name, 100)}`. {meant}Else make its table with its power "
        "limit, or better its idle power: eprof costs --estimate NAME --tdp-w WATTS (or --idle-w WATTS) -o mine.toml."
    )


class _Constant(Struct, frozen=True):
    """Constant power: W, the standard deviation of its logarithm, and where it is from."""

    watts: float
    sd: float
    source: str


def _constant(board: DataSheet, idle_w: float | None, idle_from: str) -> _Constant:
    shares = shape()["constant"]
    if idle_w is not None:
        return _Constant(idle_w, shares["idle_known_sd"], idle_from)
    assert board.limit_w is not None
    kind, memory = shares["any"], "boards of all kinds"
    if board.memory and board.memory in shares:
        kind, memory = shares[board.memory], f"boards with {board.memory.upper()} memory"
    source = f"{100 * kind['share']:.0f} % of the power limit of {board.limit_w:g} W, the mean of {memory}"
    return _Constant(kind["share"] * board.limit_w, kind["sd"], source)


# ---- the numbers


@lru_cache(maxsize=1)
def shape() -> Mapping[str, Any]:
    """The shape of prices that estimates share, as its file has it: `pj`, `constant`, `replicas`, `fp64`."""
    return Document.read(_PRIORS / "shape.toml").data


def shape_prices(device_name: str) -> Prices:
    """The estimated prices of the shape for a GPU. FP64 has none where nothing tells at which rate the GPU does it."""
    kinds = {name: name for name in shape()["pj"] if name not in (_FULL_RATE, _LOW_RATE)}
    named = capability_of_label(device_name)
    capabilities = (named,) if named else capability_of(device_name)
    are_full_rate = {capability in shape()["fp64"]["full_rate"] for capability in capabilities}
    if len(are_full_rate) == 1:
        kinds = {_FP64: _FULL_RATE if are_full_rate.pop() else _LOW_RATE, **kinds}
    pj, replicas = shape()["pj"], shape()["replicas"]
    prices = {name: pj[kind] for name, kind in kinds.items()}
    return Prices(prices, {name: replicas[kind] for name, kind in kinds.items()})


def _interval(value: float, replicas: Iterable[float]) -> str:
    """The range of an estimate: of 90 % of the replicas and of the value itself."""
    edges = statistics.quantiles(replicas, n=20, method="inclusive")
    return f"[{_number(min(edges[0], value))}, {_number(max(edges[-1], value))}]"


def _number(value: float) -> str:
    return f"{float(f'{value:.4g}'):g}"


# ---- the file


def _estimate_note(name: str, constant: _Constant) -> str:
    return (
        f"The prices of {name} are estimated: nobody measured this GPU. They are those that four other GPUs share; "
        f"constant power is {constant.watts:.3g} W, {constant.source}."
    )


def _price_lines(prices: Prices, constant: _Constant, origin: Origin) -> str:
    sources = dict.fromkeys(prices.pj, origin.of_prices)
    if origin.of_tensor:
        sources[TENSOR_FLOP] = origin.of_tensor
    lines = [
        "[pj]",
        *(f"{name} = {_number(price)}" for name, price in prices.pj.items()),
        "",
        "[constant_power]",
        f"w = {_number(constant.watts)}",
        f"why = {quoted(constant.source)}",
        'mark = "estimated"',
        "",
        "[sources]",
        *(f"{name} = {quoted(source)}" for name, source in sources.items()),
        f"constant_power = {quoted(constant.source)}",
    ]
    return "\n".join(lines) + "\n"


def _charge_lines(prices: Collection[str]) -> str:
    """What each word pays in an estimated table: of what `priors/charges.toml` says, the first that can be."""
    charges = Document.read(_PRIORS / "charges.toml").data["charge"]
    return "\n".join(["[charge]", *(_charge(word, entry, prices) for word, entry in charges.items())]) + "\n"


def _charge(word: str, entry: Mapping[str, str], prices: Collection[str]) -> str:
    if entry.get("formula", "").rpartition(" ")[2] in prices:
        return f'{word} = {{ formula = "{entry["formula"]}", why = "{entry["why"]}", mark = "estimated" }}'
    kind = "nothing" if "nothing" in entry else "unpriced"
    return f'{word} = {{ {kind} = "{entry[kind]}" }}'


def _numbers(values: Sequence[float]) -> str:
    return f"[{', '.join(map(_number, values))}]"
