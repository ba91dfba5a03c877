"""`RULES` that a cost table must keep as a whole: checks of its file and of the table made of it, after `file.py`.

Each raises DefinitionError for the first mistake that it sees, with its place in the file.
"""

import math
from collections.abc import Mapping

from eprof.base.toml import Node
from eprof.base.vocabulary import LEVEL_PARTS, PARTS, TENSOR_PARTS
from eprof.costs.parts import CONSTANT_POWER, CORE, DOMAINS, MEMORY, NEEDS_INTERVALS, Point, Price, Range
from eprof.costs.table import CostTable

PRICES = ("pj", "pj_per_v2", "pj_at_reference")
LIMIT = "power_limit_w"  # of the board: it holds at every setting
PEAK_TERMS: Mapping[str, tuple[str, str | None]] = {
    "sp_gflops": ("sp_gflops", None),
    "dp_gflops": ("dp_gflops", None),
    "dram_gb_per_s": ("dram_gb_per_s", None),
    "sp_flop_per_core_cycle": ("sp_gflops", CORE),
    "dp_flop_per_core_cycle": ("dp_gflops", CORE),
    "dram_byte_per_memory_cycle": ("dram_gb_per_s", MEMORY),
    "dram_path_byte_per_core_cycle": ("dram_path_gb_per_s", CORE),
    "random_gaccess_per_s": ("random_gaccess_per_s", None),
    "random_access_per_memory_cycle": ("random_gaccess_per_s", MEMORY),
    LIMIT: (LIMIT, None),
}


def _voltage_text(volts: float | None, entry: Node, domain: str) -> str:
    """A voltage in a message as the setting `entry` writes it: relative, or in mV."""
    if volts is None:
        return "no voltage"
    return f"{volts:g}" if f"{domain}_v_rel" in entry else f"{1e3 * volts:g} mV"


def _clocks_once(root: Node, table: CostTable) -> None:
    """Check a cost table's settings, with those of each board: a pair of clocks stands once; a clock, one voltage."""
    own = list(zip(root["setting"].entries(), table.settings, strict=False))
    of_boards = zip((place["setting"].entries() for place in root["board"].entries()), table.boards, strict=True)
    boards = [zip(entries, board.settings, strict=True) for entries, board in of_boards]
    for settings in ([], *boards):
        labels: set[str] = set()
        volts_at: dict[tuple[str, float | None], float | None] = {}
        for entry, setting in (*own, *settings):
            if setting.label in labels:
                raise entry.error(f"setting {setting.label} is listed twice.")
            labels.add(setting.label)
            for domain in DOMAINS:
                mhz, volts = setting.mhz(domain), setting.volts(domain)
                first = volts_at.setdefault((domain, mhz), volts)
                if first != volts:
                    was, now = _voltage_text(first, entry, domain), _voltage_text(volts, entry, domain)
                    raise entry.error(f"{domain} {mhz:g} MHz has {now} here but {was} above; a clock has one voltage.")


def _voltages_suffice(root: Node, table: CostTable) -> None:
    """Check a cost table: prices or watts a volt need a voltage at every setting; prices without volts hold at one.

    The highest clock of a board is among those whose voltages are known. Prices at a reference go with relative
    voltages, prices a square volt with millivolts.
    """
    known = [setting.core_mhz for setting in table.settings if setting.core_mhz]
    for place, board in zip(root["board"].entries(), table.boards, strict=True):
        if board.core_mhz and not (known and min(known) <= board.core_mhz <= max(known)):
            raise place["core_mhz"].error(f"no setting tells the voltage at {board.core_mhz:g} MHz; list one there.")
    settings = [*table.settings, *(setting for board in table.boards for setting in board.settings)]
    if "pj" in root and len(settings) > 1:
        raise root["pj"].error("prices in [pj] hold at one setting; give voltages and [pj_per_v2] for several.")
    domains = {rate.domain for rate in table.rates} | {term.domain for term in table.constant.terms}
    right, wrong, unit = "mv", "v_rel", "pj_per_v2 or pj"
    if table.relative:
        right, wrong, unit = "v_rel", "mv", "pj_at_reference"
    places = [entry for place in (root, *root["board"].entries()) for entry in place["setting"].entries()]
    if "setting" not in root:
        places.insert(0, root)
    for place, setting in zip(places, settings, strict=True):
        for domain in DOMAINS:
            key = f"{domain}_{wrong}"
            if key in place:
                raise place[key].error(f"`{key}` does not go with prices in [{unit}].")
            if domain in domains and setting.volts(domain) is None:
                needed = f"`{domain}_{right}`: there are prices or watts a volt."
                raise place.error(f"setting {setting.label} needs {needed}")


def _clocks_suffice(root: Node, table: CostTable) -> None:
    """Check a cost table: a peak in Gflop/s or GB/s holds at one setting; a peak a cycle needs the clock.

    Time by component needs one core clock to go by, and the peak of DRAM.
    """
    for key, (_, domain) in PEAK_TERMS.items():
        term = root["peak"][key]
        if term.value is None:
            continue
        if domain is None and key != LIMIT and len(table.settings) > 1:
            raise term.error(f"`{key}` holds at one setting; with several, give it a cycle.")
        if domain is not None and table.default.core_mhz is None:
            raise term.error(f"`{key}` needs a clock; list the setting.")
    units = root["time_components"]
    if units.value is None:
        return
    if (table.default.core_mhz is None) == ("core_mhz" not in units):
        raise units.error("say `core_mhz` here where the table lists no setting, and only there.")
    if "dram_gb_per_s" not in table.peak.terms:
        raise units.error("time by component needs the peak of DRAM; say it in [peak].")


def _prices_named(root: Node, table: CostTable) -> None:
    """Check a cost table: charges use all prices; [fit.replicas], [sources] and `wider` name prices of it."""
    used = {name for stated in table.statements.values() if stated.formula for name in stated.formula.names}
    unit = next(root[unit] for unit in PRICES if unit in root)
    for rate in table.rates:
        if rate.name not in used:
            place = unit if rate.domain is None else unit[rate.domain]
            raise place[rate.name].error(f"no charge uses the price `{rate.name}`; use it or take it out.")
    known = {rate.name for rate in table.rates} | {term.name for term in table.constant.terms}
    for name, values in root["fit"]["replicas"].items():
        if name not in known:
            raise values.error(f"`{name}` is neither a price nor a term of this table.")
    priced = sorted({rate.name for rate in table.rates} | {CONSTANT_POWER})
    boards = root["board"].entries()
    for node in (root["sources"], *(board["wider"] for board in boards)):
        for name, entry in node.items():
            if name not in priced:
                raise entry.error(f"`{name}` is not a price of this table; use one of: {', '.join(priced)}.")


def _intervals_hold_prices(root: Node, table: CostTable) -> None:
    """Check a cost table: a price's interval holds it, at the default setting; so does that of constant power."""
    costs = table.at()
    for name, range_ in table.intervals.prices_pj.items():
        place = root["interval_pj"][name]
        if name not in costs.prices:
            raise place.error(f"`{name}` is not a price of this table.")
        _check_holds(place, name, range_, costs.prices[name].pj, "pJ")
    on_boards = [table.on(board.devices[0], board.memory_mhz) for board in table.boards]
    places = [root["interval_constant_w"], *root["board"].entries()]
    for place, made in zip(places, [table, *on_boards], strict=True):
        if made.intervals.constant_w is not None:
            _check_holds(place, "constant power", made.intervals.constant_w, made.at().constant_power_w, "W")


def _check_holds(place: Node, name: str, range_: Range, value: float, unit: str) -> None:
    """Check that the interval of `name` holds its value; that of 0 must be [0, 0]."""
    low, high = range_
    if not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
        span = f"{low:g} to {high:g} {unit}"
        raise place.error(f"the interval of {name}, {span}, does not hold it: it is {value:g} {unit}.")
    if value == 0 and high > 0:
        raise place.error(f"{name} is 0 {unit}, so its interval can only be [0, 0]; give it a price.")


def _certainty_stated(root: Node, table: CostTable) -> None:
    """Check a cost table not measured by its user: each price says where it is from and how far it is known."""
    if table.basis not in NEEDS_INTERVALS:
        return
    prices = [rate.name for rate in table.rates]
    known = set(table.intervals.prices_pj)
    if table.intervals.constant_w is not None:
        known.add(CONSTANT_POWER)
    if table.fit.number:
        known |= set(table.fit.replicas) | {CONSTANT_POWER}
    no_interval = [name for name in (*prices, CONSTANT_POWER) if name not in known]
    no_source = [name for name in (*prices, CONSTANT_POWER) if name not in table.sources]
    lacks = {"no interval": no_interval, "no source": no_source}
    if no_interval or no_source:
        said = "; ".join(f"{lack}: {', '.join(names)}" for lack, names in lacks.items() if names)
        raise root["basis"].error(
            f"a table whose basis is {table.basis} needs [interval_pj], interval_constant_w and [sources] for all that "
            f"it charges ({said})."
        )


def _charges_are_numbers(root: Node, table: CostTable) -> None:
    """Check a cost table: every charge is finite and not negative at every setting."""
    for setting in table.settings:
        point = Point(setting, "")
        prices = {rate.name: Price(rate.name, *rate.at(point)) for rate in table.rates}
        for word, statement in table.statements.items():
            try:
                pj = statement.charge(prices).pj
            except (ZeroDivisionError, OverflowError):
                pj = math.nan
            if not math.isfinite(pj) or pj < 0:
                raise root["charge"][word].error(f"`{word}` would pay {pj:g} pJ at {setting.label}.")


def _totals_agree(root: Node, table: CostTable) -> None:
    """Check a cost table: a class total stands in for its parts, is stated if they are, and lies between theirs."""
    charges = table.at().charges
    for total, parts in PARTS.items():
        of_parts = [charges[part] for part in parts if part in charges]
        do_parts_pay = any(charge.pays for charge in of_parts)
        if do_parts_pay and total not in table.statements and total not in LEVEL_PARTS:
            raise root["charge"].error(
                f"the parts of `{total}` pay, so say what `{total}` pays where a log tells no parts (or `unpriced`)."
            )
        if total in charges and charges[total].pays and total not in TENSOR_PARTS:
            entry, pj = root["charge"][total], charges[total].pj
            if not do_parts_pay:
                raise entry.error(f"`{total}` pays but none of {', '.join(parts)} does.")
            low, high = min(charge.pj for charge in of_parts), max(charge.pj for charge in of_parts)
            if not low * (1 - 1e-9) <= pj <= high * (1 + 1e-9):
                span = f"{low:g} and {high:g} pJ"
                raise entry.error(f"`{total}` would pay {pj:g} pJ, which is not between its parts' {span}.")


RULES = (
    _clocks_once,
    _voltages_suffice,
    _clocks_suffice,
    _prices_named,
    _certainty_stated,
    _intervals_hold_prices,
    _charges_are_numbers,
    _totals_agree,
)
