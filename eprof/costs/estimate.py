"""Cost tables for GPUs that nobody measured: one shape of prices, scaled to process and data sheet, and constant power.

The shape is `counters/measurements/priors/shape.toml`, which docs/studies/power/transfer.py makes, and what a compute
capability tells of a chip `chips.toml` beside it; docs/costs.md says how far off such a table may be. A table is
written as the text of a file, and read like any other.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import CostError
from eprof.base.gpus import (
    NOTHING_TOLD,
    DataSheet,
    Traits,
    capabilities_of_label,
    capability_of_label,
    data_sheet,
    near,
    sheets,
    sheets_with,
)
from eprof.base.optional import only
from eprof.base.resources import folder
from eprof.base.text import brief, listed, printable
from eprof.base.toml import Document, quoted
from eprof.costs.file import checked
from eprof.costs.parts import CONSTANT_POWER
from eprof.costs.table import CostTable

_LARGEST_W = 10_000
_PRIORS = folder("counters") / "measurements" / "priors"
TENSOR_FLOP = "tensor_fp16_flop"
_FP64 = "fp64_instruction"
_FULL_RATE, _LOW_RATE = "fp64_full_rate_instruction", "fp64_low_rate_instruction"
_DRAM, SM_CYCLE = "dram_byte", "sm_cycle"
_LIKELY_CHIP = "8.6"  # of a GPU whose capability is not known: between old and new ones in all that it says
_SHAPE_SOURCE = "docs/studies/power: the shape that 16 GPUs share, by the process of the chip"
_TENSOR_SOURCE = (
    "docs/studies/power: the share of what constant power leaves of the board's limit that tensor cores take at full "
    "rate, on five chips"
)
_SOURCE = (
    "docs/studies/power/transfer.py: one shape of prices for 16 GPUs of 2014 to 2025, fitted to public watts of "
    "kernels and microbenchmarks; its README names their sources"
)


_GIVEN = "the idle power that was given"


def estimated(name: str, idle_w: float | None = None, tdp_w: float | None = None, idle_from: str = _GIVEN) -> CostTable:
    """The estimated cost table for the GPU that a log calls `name`, or a user for short ("RTX 4090").

    idle_w: its idle power in W at the clocks of a load, which is its constant power; idle_from: where that is from.
    Without it, constant power is a share of the board's power limit `tdp_w` in W; without that, what is published of
    the board, or a share of the limit of its data sheet.
    Raises CostError: no such power, or a GPU whose data sheet is not known when neither is given.
    """
    return parsed(table_text(name, idle_w, tdp_w, idle_from))


def of_capability(capability: str, device_name: str | None = None, told: Traits = NOTHING_TOLD) -> CostTable:
    """The estimated cost table for a GPU of which only the compute capability is known ("8.6"), or no data sheet.

    told: what the log tells of its board: where only one is like that, by all names, the table is that one's. Constant
    power is that of the boards that it may be: their geometric mean, and their spread on top of its own.
    Raises CostError: no board of this capability has a data sheet.
    """
    boards = [sheet for sheet in sheets_with(capability, told) if sheet.limit_w]
    if not boards:
        raise CostError(f"eprof has no data sheet of a GPU of compute capability {brief(capability, 20)}.")
    name = f"a GPU of compute capability {capability}"
    peaks: dict[str, list[float]] = {}
    told = told.tells(boards)
    if told.text:
        name += f" with {told.text}"
        if all(replace(board, name=boards[0].name) == boards[0] for board in boards):
            return parsed(table_text(boards[0].name, called=device_name or f"CC {capability}"))
        shared = set.intersection(*(set(board.peaks) for board in boards))
        peaks = {peak: [board.peaks[peak] for board in boards] for peak in sorted(shared)}
    parts = [_constant(board, None, "") for board in boards]
    logs = [math.log(part.watts) for part in parts]
    sd = math.hypot(statistics.pstdev(logs), statistics.fmean(part.sd for part in parts))
    source = f"the mean of {len(boards)} boards of {name.removeprefix('a GPU of ')}"
    if device_name and capability_of_label(device_name) is None:
        source += f", because no data sheet of {printable(device_name)} is known"
    constant = _Constant(math.exp(statistics.fmean(logs)), sd, source)
    limits_w = [board.limit_w or 0.0 for board in boards]
    middle = DataSheet(
        f"ncu device 0 (CC {capability})",
        limit_w=statistics.geometric_mean(limits_w),
        peaks={peak: statistics.geometric_mean(numbers) for peak, numbers in peaks.items()},
        sms=told.sms,
    )
    largest = DataSheet(name, limit_w=max(limits_w), peaks={peak: max(numbers) for peak, numbers in peaks.items()})
    return parsed(_estimate(device_name or f"CC {capability}", largest, constant, middle))


def _estimate(called: str, board: DataSheet, constant: "_Constant", of_prices: DataSheet) -> str:
    """The text of an estimated table's file. board: gives name and peaks; of_prices: the board to price for."""
    note = (
        f"The prices of {printable(board.name)} are estimated: nobody measured this GPU. They are those that 16 other "
        f"GPUs share; constant power is {constant.watts:.3g} W, {constant.source}."
    )
    origin = Origin("estimated", _SOURCE, _SHAPE_SOURCE, note, _TENSOR_SOURCE)
    prices = shape_prices(of_prices, constant.watts)
    return _text(called, board, constant, prices, origin, _multiprocessors(of_prices))


def parsed(text: str) -> CostTable:
    """The estimated cost table of a text that `table_text` made."""
    return checked(Document.parse(text, "estimated"))


def table_text(
    device_name: str,
    idle_w: float | None = None,
    tdp_w: float | None = None,
    idle_from: str = _GIVEN,
    called: str | None = None,
) -> str:
    """The text of the file of the table that `estimated` returns. called: the GPU's label in a log that names none."""
    for option, watts in (("--idle-w", idle_w), ("--tdp-w", tdp_w)):
        if watts is not None and not 0 < watts <= _LARGEST_W:
            raise CostError(f"{option} {watts:g} cannot be: it is in watts, above 0 and at most {_LARGEST_W}.")
    if not device_name.split():
        raise CostError("Say which GPU is meant, such as `RTX 4090`.")
    sheet = data_sheet(device_name)
    if sheet is None and idle_w is None and tdp_w is None:
        boards = near(device_name)
        meant = f"Did you mean {listed(boards, 'or')}? " if boards else ""
        raise CostError(
            f"eprof has no data sheet of `{brief(device_name, 100)}`. {meant}Else make its table with its power "
            "limit, or better its idle power: eprof costs --estimate NAME --tdp-w WATTS (or --idle-w WATTS) -o "
            "mine.toml."
        )
    board = sheet or DataSheet(" ".join(device_name.split()))
    if tdp_w is not None:
        board = replace(board, limit_w=tdp_w, constant_w=None)
    if idle_w is not None and board.limit_w is not None and idle_w >= board.limit_w:
        raise CostError(
            f"An idle power of {idle_w:g} W cannot be: the power limit of {board.name} is {board.limit_w:g} W; give "
            "--idle-w in watts, as nvidia-smi prints it."
        )
    return _estimate(called or device_name, board, _constant(board, idle_w, idle_from), board)


def scaled_text(device_name: str, idle_w: float, prices: "Prices", origin: "Origin") -> str:
    """The text of an estimated table's file, of prices scaled to one GPU by measuring it and its idle power in W."""
    board = data_sheet(device_name) or DataSheet(" ".join(device_name.split()))
    constant = _Constant(idle_w, shape()["constant"]["idle_known_sd"], "idle power, measured on this GPU")
    return _text(device_name, board, constant, prices, origin)


class Prices(Struct, frozen=True):
    """Prices of an estimated table: pj: name -> pJ; replicas: name -> its pJ in every replica, (n_replicas,)."""

    pj: Mapping[str, float]
    replicas: Mapping[str, Sequence[float]]

    def without(self, name: str) -> "Prices":
        """The estimated table's prices without the one called `name`."""
        kept = [price for price in self.pj if price != name]
        return Prices({price: self.pj[price] for price in kept}, {price: self.replicas[price] for price in kept})


class Origin(Struct, frozen=True):
    """An estimated table's name, and where its numbers come from: source, source of each price, a note for reports.

    of_tensor: the source of the price of tensor work, if it is another.
    """

    name: str
    source: str
    of_prices: str
    note: str
    of_tensor: str = ""


_Busy = tuple[int, float]  # how many multiprocessors a board has, and their MHz at full load


def _text(
    called: str, board: DataSheet, constant: "_Constant", prices: Prices, origin: Origin, busy: _Busy | None = None
) -> str:
    """The text of an estimated cost table's file, section by section. called: another name of its GPU."""
    name = printable(board.name)
    names = dict.fromkeys([printable(" ".join(called.split())), name])
    head = {
        "schema": "1",
        "name": quoted(origin.name),
        "device": quoted(name),
        "devices": f"[{', '.join(map(quoted, names))}]",
        "source": quoted(origin.source),
        "basis": '"estimated"',
        "books": '"accessed"',
        "notes": f"[{quoted(origin.note)}]",
    }
    if busy is not None:
        head |= {"multiprocessors": str(busy[0]), "busy_mhz": f"{busy[1]:.5g}"}
    peak = {}
    if board.limit_w is not None:
        peak = {"power_limit_w": f"{board.limit_w:g}", **{key: f"{most:.6g}" for key, most in board.peaks.items()}}
        peak["why"] = '"the data sheet: power limit, and peaks at the boost clock"'
    of_prices = dict.fromkeys(prices.pj, origin.of_prices) | {CONSTANT_POWER: constant.source}
    if origin.of_tensor:
        of_prices[TENSOR_FLOP] = origin.of_tensor
    # Of what the file says of a word, the first that can be.
    charges = {}
    for word, entry in Document.read(_PRIORS / "charges.toml").data["charge"].items():
        if entry.get("formula", "").rpartition(" ")[2] in prices.pj:
            charges[word] = f'{{ formula = "{entry["formula"]}", why = "{entry["why"]}", mark = "estimated" }}'
            continue
        kind = next(kind for kind in ("nothing", "unpriced") if kind in entry)
        charges[word] = f'{{ {kind} = "{entry[kind]}" }}'
    sections = {
        "peak": peak,
        "pj": {price: _number(pj) for price, pj in prices.pj.items()},
        CONSTANT_POWER: {"w": _number(constant.watts), "why": quoted(constant.source), "mark": '"estimated"'},
        "sources": {price: quoted(source) for price, source in of_prices.items()},
        "charge": charges,
        **_known(prices, constant),
    }
    texts = [
        f"# What an instruction and a byte may cost on {name}: estimated, nobody measured this GPU.",
        "# docs/costs.md says how, and how far off it may be.",
        *(f"{key} = {value}" for key, value in head.items()),
    ]
    for title, entries in sections.items():
        if entries:
            texts += ["", f"[{title}]", *(f"{key} = {value}" for key, value in entries.items())]
    return "\n".join(texts) + "\n"


def _known(prices: Prices, constant: "_Constant") -> dict[str, dict[str, str]]:
    """Sections [fit], [fit.replicas] of an estimated table's file, how far prices are known: section -> key -> text."""
    steps = shape()["replicas"]["constant_steps"]
    constants_w = [constant.watts * math.exp(constant.sd * step) for step in steps]
    intervals = [f"{price} = {_interval(pj, prices.replicas[price])}" for price, pj in prices.pj.items()]
    fit = {
        "form": '"one shape for 16 GPUs, factors by process, a scale and constant power for each, relative errors"',
        "interval_pj": f"{{ {', '.join(intervals)} }}",
        "interval_constant_w": _interval(constant.watts, constants_w),
    }
    drawn = {**prices.replicas, "w": constants_w}
    numbers = {price: f"[{', '.join(map(_number, values))}]" for price, values in drawn.items()}
    return {"fit": fit, "fit.replicas": numbers}


class _Constant(Struct, frozen=True):
    """Constant power of an estimated table: W, the standard deviation of its logarithm, and where it is from."""

    watts: float
    sd: float
    source: str


def _constant(board: DataSheet, idle_w: float | None, idle_from: str) -> _Constant:
    """Constant power: idle power, else what is published of the board, else its kind's share of the power limit."""
    shares = shape()["constant"]
    if idle_w is not None:
        return _Constant(idle_w, shares["idle_known_sd"], idle_from)
    if board.constant_w is not None:
        return _Constant(board.constant_w, shares["idle_known_sd"], "what is published of this board")
    assert board.limit_w is not None
    kind, boards = "any", "boards of all kinds"
    if board.memory in _BOARDS:
        kind, boards = board.memory, _BOARDS[board.memory]
    if kind == "gddr" and _chip(board.name).process == _NEWEST:
        kind, boards = "gddr_5nm", f"{boards} and chips of {_NEWEST}"
    share = shares[kind]
    source = f"{100 * share['share']:.0f} % of the power limit of {board.limit_w:g} W, the mean of {boards}"
    sd = share["sd"]
    if kind != "laptop" and board.limit_w < shares["least_limit_w"]:
        source += f", of which none was below {shares['least_limit_w']:g} W"
        sd *= 2
    return _Constant(share["share"] * board.limit_w, sd, source)


_NEWEST = "5 and 4 nm"
_BOARDS = {"gddr": "boards with GDDR memory", "hbm": "boards with HBM memory", "laptop": "laptops"}


@lru_cache(maxsize=1)
def shape() -> Mapping[str, Any]:
    """The shape of prices that estimates share, as its file has it: `pj`, `process`, `constant`, ..."""
    return Document.read(_PRIORS / "shape.toml").data


class Chip(Struct, frozen=True):
    """What a compute capability tells of a chip, by `chips.toml`. lanes: FP32 units of an SM. tensor: its FP16 flops...

    full_rate: FP64 at full rate; None: not known.
    """

    process: str
    lanes: float
    tensor: float
    boost_mhz: float
    full_rate: bool | None


@lru_cache(maxsize=1)
def chips() -> Mapping[str, Chip]:
    """Compute capability -> the `Chip` that `chips.toml` describes for it."""
    data = Document.read(_PRIORS / "chips.toml").data["chip"]
    return {capability: Chip(**chip) for capability, chip in data.items()}


def _chip(device_name: str) -> Chip:
    """The `Chip` of a GPU: that of its first known capability, else a likely one. full_rate: as all of them have it."""
    known = [chips()[capability] for capability in capabilities_of_label(device_name) if capability in chips()]
    likely = next(iter(known), chips()[_LIKELY_CHIP])
    return replace(likely, full_rate=only({chip.full_rate for chip in known}))


def _watts_per_gflop(board: DataSheet) -> float:
    """Power limit over peak of FP32 in W a Gflop/s; where the data sheet lacks one, the median of boards like it."""
    single = board.peaks.get("sp_gflops")
    if single and board.limit_w:
        return board.limit_w / single
    alike = [sheet for capability in capabilities_of_label(board.name) for sheet in sheets_with(capability)]
    rated = [(sheet.limit_w, sheet.peaks["sp_gflops"]) for sheet in alike or sheets() if "sp_gflops" in sheet.peaks]
    known = [limit_w / gflops for limit_w, gflops in rated if limit_w]
    return statistics.median(known) if known else _watts_per_gflop(DataSheet("any"))


def _multiprocessors(board: DataSheet) -> _Busy | None:
    """(About how many multiprocessors a board has, the MHz at which all reach its FP32 peak); None: nothing tells."""
    if board.limit_w is None:
        return None
    chip = _chip(board.name)
    single = board.peaks.get("sp_gflops") or board.limit_w / _watts_per_gflop(board)
    number = board.sms or max(1, round(1e3 * single / (2 * chip.lanes * chip.boost_mhz)))
    return number, 1e3 * single / (2 * chip.lanes * number)


def sm_cycles_per_s(device_name: str) -> float | None:
    """The cycles of all multiprocessors of a GPU together in a second, by its data sheet; None: there is none."""
    number, mhz = _multiprocessors(data_sheet(device_name) or DataSheet(device_name)) or (0, 0.0)
    return number * mhz * 1e6 or None


def shape_prices(board: DataSheet, constant_w: float) -> Prices:
    """The shape's prices for a board with this constant power in W; none of FP64 where nothing tells its rate."""
    chip = _chip(board.name)
    factor = shape()["process"][chip.process]
    pj = {name: price * factor for name, price in shape()["pj"].items()} | {_DRAM: shape()["pj"][_DRAM]}
    pj[SM_CYCLE] *= chip.lanes / 128
    of_limit = 1 - (constant_w / board.limit_w if board.limit_w else shape()["constant"]["any"]["share"])
    flops_per_gflop = chip.tensor or chips()[_LIKELY_CHIP].tensor
    pj[TENSOR_FLOP] = shape()["tensor"]["share"] * of_limit * 1e3 * _watts_per_gflop(board) / flops_per_gflop
    kinds = {name: name for name in pj if name not in (_FULL_RATE, _LOW_RATE)}
    if chip.full_rate is not None:
        kinds = {_FP64: _FULL_RATE if chip.full_rate else _LOW_RATE, **kinds}
    factors = shape()["replicas"]
    prices = {name: pj[kind] for name, kind in kinds.items()}
    return Prices(prices, {name: [prices[name] * drawn for drawn in factors[kind]] for name, kind in kinds.items()})


def _interval(value: float, replicas: Iterable[float]) -> str:
    """The interval of an estimate as a file has it, "[low, high]": it holds 90 % of the replicas, and the value."""
    edges = statistics.quantiles(replicas, n=20, method="inclusive")
    return f"[{_number(min(edges[0], value))}, {_number(max(edges[-1], value))}]"


def _number(value: float) -> str:
    return f"{float(f'{value:.4g}'):g}"
