"""eprof's numbers beside the oracle's: what the two must agree on."""

import math
import re

from frames_support import combine
from msgspec.structs import replace
from oracle import totals, words
from oracle.amounts import amount
from oracle.limits import factors

from eprof.base.vocabulary import Mark
from eprof.logs import read as read_log
from eprof.profile.priced_profile import board_limit_w

CLOSE = 1e-9
MISSING, ESTIMATED = int(Mark.MISSING), int(Mark.ESTIMATED)
CAPABILITIES = {
    "GTX 760": "3.0",
    "K20": "3.5",
    "K40": "3.5",
    "GTX TITAN": "3.5",
    "GTX 950": "5.2",
    "GTX 980": "5.2",
    "GTX 1070": "6.1",
    "GTX 1080": "6.1",
    "TITAN X (Pascal)": "6.1",
    "V100": "7.0",
}


def disagreement(value, marks, truth):
    """What is wrong with a number of eprof's, or None. A number without a mark is exact, with MISSING a lower bound."""
    known = not math.isnan(value)
    if truth.is_exact and not known:
        return f"not known, and is {truth.low!r}"
    if not known:
        return None
    if marks & MISSING:
        bounded = value <= truth.low * (1 + CLOSE)
        return None if bounded else f"at least {value!r} is no bound, for it is {truth}"
    if not truth.is_exact and not marks:
        return f"{value!r} without a mark, for it is {truth}"
    if not truth.is_exact and not truth.estimated:
        return f"{value!r} is not said to be a lower bound, for it is {truth}"
    return None if math.isclose(value, truth.guess, rel_tol=CLOSE) else f"{value!r}, for it is {truth}"


def index(device):
    """The number of a device, which is all that two names of it may share."""
    found = re.search(r"(?:ncu |device |\()(\d+)", device) if isinstance(device, str) else None
    return int(found[1]) if found else None


def placed(devices, names):
    """Where eprof has a kernel, by the number of its device and its name; by name alone, if the oracle knows no device."""
    places = {(None, name): at for at, name in enumerate(names)}
    return places | {(index(device), name): at for at, (device, name) in enumerate(zip(devices, names, strict=True))}


def capability_of(device):
    return next((number for name, number in CAPABILITIES.items() if name in (device or "")), None)


def wrong_counters(paths, rows):
    """(disagreements of counters, launches and times with the oracle; how many were compared)."""
    joined = combine([read_log(path) for path in paths])
    place = placed(joined.kernels["device"], joined.kernels["kernel"])
    values, marks = (
        {name: cells.to_numpy() for name, cells in table.items()} for table in (joined.counters, joined.marks)
    )
    found, compared = [], 0
    for (device, name), kernel in totals(rows).items():
        at = place.get((index(device), name))
        if at is None:
            found.append(f"{name} on {device}: no such kernel in eprof")
            continue
        row = joined.kernels.iloc[at]
        pairs = {"launches": (row["launches"], 0, amount(kernel.launches))}
        if kernel.time_s is not None:
            pairs["time"] = (row["time_s"], row["time_marks"], kernel.time_s)
        for counter, truth in kernel.counters.items():
            if joined.units.get(counter) == "count":
                pairs[counter] = (values[counter][at], int(marks[counter][at]), truth)
        compared += len(pairs)
        found += [f"{name}: {what}: {said}" for what, pair in pairs.items() if (said := disagreement(*pair))]
    return found, compared


def wrong_words(profile, kernels, prices, costs, profiler, capability=None):
    """(disagreements of instructions, bytes and joules with the oracle; how many were compared).

    kernels: the oracle's `totals`. prices: of all, or by the name of each GPU.
    """
    made = profile.energy(costs)
    if not made.gpus:
        return _wrong_words(made, kernels, prices, profiler, capability)
    found, compared = [], 0
    for gpu in made.gpus:
        device = gpu.profile.counted[0].device
        own = {key: kernel for key, kernel in kernels.items() if key[0] == device.label}
        # What it is in the profile of all, among the rows of others.
        gpu = replace(gpu, counts=made.counts.chosen(made.places_of(gpu)), split=made.split.chosen(made.places_of(gpu)))
        more, number = _wrong_words(gpu, own, prices[device.name], profiler, capability)
        found, compared = found + more, compared + number
    return found, compared


def _wrong_words(made, kernels, prices, profiler, capability):
    counts = made.counts
    table, marks_of, split = map(_columns, (counts.table, counts.marks, made.split.table))
    rows = _records(counts.kernels)
    # Every word of a kernel gives way by one factor, and only as far as power goes: `oracle.limits` tells which.
    factors = below_limits(made, prices)
    place = placed(counts.kernels["device"], counts.kernels["kernel"])
    found, compared = [], 0
    for (device, name), kernel in kernels.items():
        own = kernel.capability or capability or capability_of(device)
        # A GPU that only the program's own output names has no number there.
        at = place.get((index(device), name), place.get((None, name)))
        for word, truth in words(kernel, own, prices.books, profiler).items() if own else ():
            value, marks = table[word][at], int(marks_of[word][at])
            if math.isnan(value) and not marks:
                continue  # the class as a whole stands for its kinds, or they for it
            said = disagreement(value, marks, truth)
            joules = split[word][at] if word in split else math.nan
            pj = prices.pj.get(word, math.nan if value else 0.0) * factors[at]
            if not math.isclose(joules, value * pj * 1e-12, rel_tol=CLOSE) and not math.isnan(joules):
                said = f"{joules} J for {value}, at {pj} pJ each"
            compared += 1
            found += [f"{name}: {word}: {said}"] if said else []
        found += wrong_constant(rows[at], split["constant"][at], prices)
    return found, compared


def _columns(table):
    """The cells of each column as a list: pandas takes as long for one cell as for all of them."""
    return {name: table[name].tolist() for name in table.columns}


def _records(table):
    columns = _columns(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def below_limits(made, prices):
    """The factor of each kernel by the oracle, from eprof's own counts, times and the limits of its boards."""
    rows, table = made.counts.kernels, made.counts.table
    # A class that counters do not take apart pays what eprof makes of its parts' prices.
    pj = {word: charge.pj for word, charge in made.costs.charges.items() if charge.pays} | prices.pj
    works = [
        math.fsum(value * pj[word] * 1e-12 for word, value in row.items() if word in pj and value == value)
        for row in _records(table)
    ]
    limits = {part.device.label: board_limit_w(made, part.device) for part in made.profile.counted}
    whole = [
        time if not mark & MISSING else math.nan for time, mark in zip(rows["time_s"], rows["time_marks"], strict=True)
    ]
    return factors(works, whole, rows["launches"].tolist(), rows["device"].tolist(), limits, prices.watts, made.total_s)


def wrong_constant(kernel, joules, prices):
    """Constant energy is constant power over the kernel's time."""
    truth = kernel["time_s"] * prices.watts
    same = math.isnan(joules) and math.isnan(truth) or math.isclose(joules, truth, rel_tol=CLOSE)
    return [] if same else [f"{kernel['kernel']}: constant: {joules} J, and is {truth} J"]
