"""eprof's numbers beside the oracle's: what the two must agree on."""

import math
import re

from frames_support import combine
from oracle import totals, words
from oracle.amounts import amount

from eprof.base.marks import Mark
from eprof.logs import read as read_log

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


def wrong_words(profile, rows, prices, costs, profiler, capability=None):
    """(disagreements of instructions, bytes and joules with the oracle; how many were compared)."""
    made = profile.energy(costs)
    counts = made.counts
    table, marks_of, split = counts.table, counts.marks, made.split.table
    place = placed(counts.kernels["device"], counts.kernels["kernel"])
    found, compared = [], 0
    for (device, name), kernel in totals(rows).items():
        own = kernel.capability or capability or capability_of(device)
        # A GPU that only the program's own output names has no number there.
        at = place.get((index(device), name), place.get((None, name)))
        for word, truth in words(kernel, own, prices.books, profiler).items() if own else ():
            value, marks = table[word].iloc[at], int(marks_of[word].iloc[at])
            if math.isnan(value) and not marks:
                continue  # the class as a whole stands for its kinds, or they for it
            said = disagreement(value, marks, truth)
            joules = split[word].iloc[at] if word in split else math.nan
            # Where the board's power limit binds, all prices give way by one factor, which the costs tell.
            pj = prices.pj.get(word, math.nan if value else 0.0) * made.costs.held
            if not math.isclose(joules, value * pj * 1e-12, rel_tol=CLOSE) and not math.isnan(joules):
                said = f"{joules} J for {value}, at {pj} pJ each"
            compared += 1
            found += [f"{name}: {word}: {said}"] if said else []
        found += wrong_constant(counts.kernels.iloc[at], split["constant"].iloc[at], prices)
    return found, compared


def wrong_constant(kernel, joules, prices):
    """Constant energy is constant power over the kernel's time."""
    truth = kernel["time_s"] * prices.watts
    same = math.isnan(joules) and math.isnan(truth) or math.isclose(joules, truth, rel_tol=CLOSE)
    return [] if same else [f"{kernel['kernel']}: constant: {joules} J, and is {truth} J"]
