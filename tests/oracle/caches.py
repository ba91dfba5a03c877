"""Caches of a GPU a second time, slow and plain: sets are dictionaries, lists are walked from their beginning.

An access is (key, address, bytes, kind), kind "load", "store" or "atomic". A group is a list of phases (between barriers), a
phase a list of work-items, a work-item its accesses in order.
"""

from collections import OrderedDict

SECTOR, LINE, WARP = 32, 128, 32


class Cache:
    """Sets of lines, the latest last; of a line the sectors that are valid and those that are dirty."""

    def __init__(self, size, line, ways):
        self.line, self.ways = line, ways
        self.sets = [OrderedDict() for _ in range(size // (line * ways) or bool(size))]

    def entry(self, number, make=True):
        lines = self.sets[
            (number ^ number >> 4 ^ number >> 9 ^ number >> 15 ^ number >> 23 ^ number >> 36) % len(self.sets)
        ]
        evicted = set()
        if number not in lines:
            if not make:
                return None, evicted
            if len(lines) == self.ways:
                evicted = lines.popitem(last=False)[1][1]
            lines[number] = (set(), set())
        lines.move_to_end(number)
        return lines[number], evicted


def requests_of(items):
    """The requests of a warp: (kind, sectors in the order of their lines), lanes matched by key."""
    merged = []  # [key, lanes, kind, sectors]
    for lane, accesses in enumerate(items):
        place = -1
        for key, address, size, kind in accesses:
            found = next((at for at, r in enumerate(merged) if r[0] == key and lane not in r[1]), None)
            if found is None:
                found = place + 1
                merged.insert(found, [key, set(), kind, []])
            place = found
            merged[place][1].add(lane)
            for sector in range(address // SECTOR, (address + size - 1) // SECTOR + 1):
                if sector not in merged[place][3]:
                    merged[place][3].append(sector)
    return [(kind, sectors) for _, _, kind, sectors in merged]


def trace_of(group):
    """The requests of a group in the order in which its warps make them."""
    trace = []
    for phase in group:
        warps = [requests_of(phase[first : first + WARP]) for first in range(0, len(phase), WARP)]
        for turn in range(max(map(len, warps), default=0)):
            trace += [warp[turn] for warp in warps if turn < len(warp)]
    return trace


class Machine:
    """One idea of how many groups are in flight on a multiprocessor."""

    def __init__(self, gpu, in_flight, is_staggered, l1_bytes):
        self.gpu, self.in_flight, self.is_staggered, self.l1_bytes = gpu, in_flight, is_staggered, l1_bytes
        self.l2 = Cache(gpu["l2_bytes"], gpu["l2_line"], gpu["l2_ways"])

    def run(self, traces):
        """The counts of one launch."""
        sms = self.gpu["sms"]
        counts = dict.fromkeys([*COUNTS, ALONE], 0)
        l1s = [Cache(self.l1_bytes, LINE, self.gpu["l1_ways"] or 1) for _ in range(sms)]
        waiting = list(enumerate(traces))
        places = [None] * min(sms * self.in_flight, len(traces))
        delay = 1 + len(traces[0]) // self.in_flight if self.is_staggered else 0
        turn = 0
        while waiting or any(places):
            for place in range(len(places)):
                if place // sms * delay > turn:
                    continue
                if places[place] is None and waiting:
                    places[place] = list(waiting.pop(0)[1])
                if places[place]:
                    self._serve(l1s[place % sms], *places[place].pop(0), counts)
                if not places[place]:
                    places[place] = None
            turn += 1
        counts["dram left dirty"] = sum(len(d) for lines in self.l2.sets for _, d in lines.values())
        return counts

    def _serve(self, l1, kind, sectors, counts):
        by_line = OrderedDict()
        for sector in sectors:
            by_line.setdefault(sector // 4, set()).add(sector)
        for line, wanted in by_line.items():
            rest = set(wanted)
            if l1.sets:
                entry, _ = l1.entry(line, make=kind == "load")
                if kind == "load":
                    counts["l1 load hits"] += len(wanted & entry[0])
                    rest -= entry[0]
                    entry[0].update(wanted)
                elif entry is not None and (kind == "atomic" or not self.gpu.get("l1_keeps_stores")):
                    entry[0].difference_update(wanted)
            self._to_l2(kind, rest, counts)

    def _to_l2(self, kind, sectors, counts):
        each = self.gpu["l2_line"] // SECTOR
        for line in sorted({sector // each for sector in sectors}):
            wanted = {sector for sector in sectors if sector // each == line}
            (valid, dirty), evicted = self.l2.entry(line)
            counts["dram writes"] += len(evicted)
            before = len(valid)
            if kind != "store":
                counts["l2 reads"] += len(wanted)
                counts["l2 read hits"] += len(wanted & valid)
                counts["dram reads"] += len(wanted - valid)
                valid |= wanted
            if kind != "load":
                counts["l2 writes"] += len(wanted)
                valid |= wanted
                dirty |= wanted
            counts[ALONE] += (len(valid) == 1) - (before == 1)


COUNTS = ("l1 load hits", "l2 reads", "l2 read hits", "l2 writes", "dram reads", "dram writes", "dram left dirty")
ALONE = "dram sectors alone"  # in their line of 128 bytes


def resident(gpu, items, local_bytes):
    """Groups that a multiprocessor has room for."""
    limits = [gpu["groups"], gpu["warps"] // -(-items // WARP)]
    if local_bytes:
        limits.append(gpu["local"] // local_bytes)
    return max(1, min(limits))


def launch(gpu, groups, items, local_bytes=0, machines=None):
    """What the caches of `gpu` make of a launch: {name: count, "NAME least", "NAME most"}."""
    traces = [trace_of(group) for group in groups]
    counts = {"work-items": len(groups) * items, "warps": len(groups) * -(-items // WARP)}
    for kind in ("load", "store", "atomic"):
        counts[f"{kind} requests"] = sum(k == kind for trace in traces for k, _ in trace)
        counts[f"{kind} sectors"] = sum(len(s) for trace in traces for k, s in trace if k == kind)
    runs = [machine.run(traces) for machine in machines or orders(gpu, items, local_bytes)]
    for name in [*COUNTS, *[ALONE] * (gpu["l2_line"] == LINE)]:
        seen = [run[name] for run in runs]
        counts |= {name: seen[0], f"{name} least": min(seen), f"{name} most": max(seen)}
    return counts


def orders(gpu, items, local_bytes):
    """As many groups as there is room for, one after the other; one; as many in step. All of them set L1's size."""
    most = resident(gpu, items, local_bytes)
    l1_bytes = gpu["l1_bytes"] - (most * local_bytes if gpu.get("l1_shares") else 0)
    l1_bytes = max(l1_bytes, gpu.get("l1_least", 0), 0)
    return [Machine(gpu, *flight, l1_bytes) for flight in ((most, True), (1, False), (most, False))]
