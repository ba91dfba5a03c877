"""Made-up tables of likwid-perfctr, in both of its forms."""

GOLD = "Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz"


def csv(group, events, region=None, threads=1, seconds=None, calls=1, number=1, cpu=GOLD):
    """One group of one run in CSV. events: (event, counter, a value a thread)."""
    title = "" if region is None else f"Region {region},"
    names = ",".join(f"HWThread {thread}" for thread in range(threads))
    pad = "," * 4
    lines = [
        "STRUCT,Info,3" + pad,
        f"CPU name:,{cpu}{pad}",
        f"CPU type:,Intel Skylake SP processor{pad}",
        f"TABLE,{title}Group {number} Raw,{group},{len(events)}{pad}",
    ]
    if region is not None:
        lines += [f"Region Info,{names}", f"RDTSC Runtime [s],{','.join([f'{seconds:.6f}'] * threads)}"]
        lines += [f"call count,{','.join([str(calls)] * threads)}"]
    lines += [f"Event,Counter,{names}"]
    lines += [f"{event},{counter},{','.join(map(str, values))}{pad}" for event, counter, values in events]
    if threads > 1:
        lines += [f"TABLE,{title}Group {number} Raw STAT,{group},{len(events)}", "Event,Counter,Sum,Min,Max,Avg"]
        lines += [f"{event} STAT,{counter},9,9,9,9" for event, counter, _ in events]
    if seconds is not None:
        lines += [f"TABLE,{title}Group {number} Metric,{group},1", f"Metric,{names}"]
        lines += [f"Runtime (RDTSC) [s],{','.join([f'{seconds:.4f}'] * threads)}", "Clock [MHz]" + ",1895.5" * threads]
    return "\n".join(lines) + "\n"


def box(rows):
    """Rows as a table of text, its header in the first."""
    rule = "+" + "+".join("-" * 24 for _ in rows[0]) + "+"
    drawn = ["|" + "|".join(f"{cell:^24}" for cell in row) + "|" for row in rows]
    return [rule, drawn[0], rule, *drawn[1:], rule, ""]


def text(group, events, region=None, threads=1, seconds=None, calls=1, number=1, cpu=GOLD):
    """The same as text."""
    title = "" if region is None else f"Region {region}, "
    names = [f"HWThread {thread}" for thread in range(threads)]
    lines = ["-" * 80, f"CPU name:\t{cpu}", "CPU type:\tIntel Skylake SP processor", "CPU clock:\t2.59 GHz", "-" * 80]
    lines += ["the program's own output, 1,2,3", "-" * 80, f"{title}Group {number}: {group}"]
    if region is not None:
        times = ["RDTSC Runtime [s]", *[f"{seconds:.6f}"] * threads]
        lines += box([["Region Info", *names], times, ["call count", *[str(calls)] * threads]])
    lines += box([["Event", "Counter", *names], *([event, slot, *map(str, each)] for event, slot, each in events)])
    if threads > 1:
        statistics = [[f"{event} STAT", counter, "9", "9", "9", "9"] for event, counter, _ in events]
        lines += box([["Event", "Counter", "Sum", "Min", "Max", "Avg"], *statistics])
    if seconds is not None:
        lines += box([["Metric", *names], ["Runtime (RDTSC) [s]", *[f"{seconds:.4f}"] * threads]])
    return "\n".join(lines) + "\n"
