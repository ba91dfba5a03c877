"""Logs made for the oracle: of launches whose counts are known, in nvprof's and ncu's formats."""

from dataclasses import dataclass

from hypothesis import strategies as st
from logs_support import METRICS, TRACE, TRACE_UNITS, profiled

DEVICES = ("Tesla K20c (0)", "GeForce GTX 980 (0)", "Tesla V100-SXM2-16GB (0)")
TOTALS = '"Device","Kernel","Invocations","Event Name","Min","Max","Avg","Total"'
KERNELS = ("axpy(int, float*)", "void sum<int=4>(double*)", "_Z4copyPf")
ADDED = ("flop_count_dp_fma", "flop_count_dp_add", "flop_count_dp_mul", "inst_integer", "inst_executed")
MOVED = ("l2_read_transactions", "l2_write_transactions", "dram_read_transactions", "dram_write_transactions")
INSIDE = ("inst_fp_32", "flop_count_sp_special", "inst_fp_64", "shared_load_transactions")
NUMBERS = st.one_of(st.integers(0, 20), st.integers(0, 10**6), st.integers(10**9, 10**13))
SASS = [
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in ("dfma", "dadd", "dmul", "control", "misc")
]
NCU = [*SASS, "dram__bytes_read.sum", "dram__bytes_write.sum", "smsp__inst_executed.sum"]
HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
    '"Section Name","Metric Name","Metric Unit","Metric Value"'
)


@dataclass
class Run:
    """One run of a program: its launches, (kernel, counter -> count), and which counters were asked for."""

    process: int
    device: str
    launches: list[tuple[str, dict[str, int]]]
    counters: tuple[str, ...]

    def kernels(self):
        return dict.fromkeys(kernel for kernel, _ in self.launches)

    def of(self, kernel):
        return [counts for name, counts in self.launches if name == kernel]


@st.composite
def runs(draw, counters=ADDED, device=None, alike=False, least=1, most=3, fewer=True):
    """Runs of one program on one device. alike: launches of a kernel are the same, so that averages are exact.

    fewer: the runs ask for some of the counters, and each may lack one of them: further runs, and not passes.
    """
    device = device or draw(st.sampled_from(DEVICES))
    names = draw(st.lists(st.sampled_from(KERNELS), min_size=1, max_size=2, unique=True))
    counts = st.fixed_dictionaries(dict.fromkeys(counters, NUMBERS))
    wanted = draw(st.lists(st.sampled_from(counters), min_size=1, unique=True)) if fewer else list(counters)
    found = []
    for process in range(draw(st.integers(least, most))):
        launches = []
        for kernel in names:
            number, same = draw(st.integers(1, 4)), draw(counts)
            launches += [(kernel, same if alike else draw(counts)) for _ in range(number)]
        lacks = draw(st.sampled_from([None, *wanted])) if fewer and len(wanted) >= 4 else None
        found.append(Run(100 + process, device, launches, tuple(name for name in wanted if name != lacks)))
    return found


def summary(run, header=METRICS, counters=None, marks=True):
    """A summary with averages; events with totals. Launches of a kernel are to be alike."""
    rows = [header]
    for kernel in run.kernels():
        members = run.of(kernel)
        for name in counters or run.counters:
            value, number = members[0][name], len(members)
            start = f'"{run.device}","{kernel}",{number},"{name}"'
            values = f"{value},{value},{value}"
            rows.append(f"{start},{values},{value * number}" if header == TOTALS else f'{start},"described",{values}')
    return profiled(run.process, *rows) if marks else "\n".join(rows)


def both(run):
    """Events and metrics of one run, two tables of the same launches; `inst_executed` stands in both."""
    events = summary(run, TOTALS, ("inst_executed",), marks=False)
    metrics = summary(run, METRICS, ADDED, marks=False)
    return profiled(
        run.process, f"=={run.process}== Event result:", events, "", f"=={run.process}== Metric result:", metrics
    )


def wide(run, holes=frozenset(), cell='"<OVERFLOW>"'):
    """A row a launch; holes: the (launch, counter) whose cell has no number."""
    head = ",".join(f'"{name}"' for name in ("Device", "Context", "Stream", "Kernel", "Correlation_ID", *run.counters))
    rows = [head, "," * (4 + len(run.counters))]
    for number, (kernel, counts) in enumerate(run.launches):
        cells = [cell if (number, name) in holes else str(counts[name]) for name in run.counters]
        rows.append(f'"{run.device}","1","7","{kernel}",{number},{",".join(cells)}')
    return profiled(run.process, *rows)


def trace(run, milliseconds):
    """A GPU trace of all launches, one behind the other."""
    row = '{:.9f},{},64,1,1,32,1,1,21,0.0,0,,,"{}","1","7","{} [{}]"'
    rows = [
        row.format(0.5 + number * milliseconds / 1000, milliseconds, run.device, kernel, number)
        for number, (kernel, _) in enumerate(run.launches)
    ]
    return profiled(run.process, TRACE, TRACE_UNITS, *rows)


def ncu(runs, holes=frozenset(), capability="7.0"):
    """ncu's long table, a row a launch and metric, of one or more processes."""
    rows = [HEADER]
    for run in runs:
        for number, (kernel, counts) in enumerate(run.launches):
            start = f'"{number}","{run.process}","made","host","{kernel}","1","7","(1, 1, 1)","(1, 1, 1)","0","{capability}","x"'
            for name in run.counters:
                text, unit = _in_unit(name, counts[name])
                value = "n/a" if (number, name) in holes else text
                rows.append(f'{start},"{name}","{unit}","{value}"')
    return "\n".join([*rows, ""])


def _in_unit(name, value):
    """A number as ncu may print it, so that it can be read in one way only, and bytes in a unit that loses no digit."""
    if isinstance(value, dict):
        listed = "; ".join(f"{opcode}: {number}" for opcode, number in value.items())
        return f"{sum(value.values())} ({listed})", "inst"
    if not name.endswith(".sum"):
        return f"{value:,.2f}", ""
    if "bytes" not in name:
        return f"{value:,}", "inst"
    return (f"{value / 1000:,.4f}", "Kbyte") if value % 2 else (str(value), "byte")


@st.composite
def holes(draw, run, counters=None):
    """Some cells of a run without a number, though not all of a kernel's counter."""
    cells = [(number, name) for number in range(len(run.launches)) for name in counters or run.counters]
    chosen = set(draw(st.lists(st.sampled_from(cells), max_size=4, unique=True)))
    for kernel in run.kernels():
        own = [number for number, (name, _) in enumerate(run.launches) if name == kernel]
        for name in run.counters:
            if all((number, name) in chosen for number in own):
                chosen.discard((own[0], name))
    return frozenset(chosen)
