"""Traces of the PyTorch profiler: kernels with their operators and modules, and energy by operator."""

import gzip
import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs_support import METRICS, metric, profiled, write

import eprof
from eprof import logs
from eprof.base.errors import LogError
from eprof.base.kernels import match_names
from eprof.commands.report import files, words
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.view import View
from eprof.profile.document import document
from eprof.profile.functions import NOT_TRACED

REAL = Path(__file__).parents[4] / "shared" / "data" / "traces" / "kineto"
FILES = sorted(path.name for path in REAL.glob("*.gz")) if REAL.is_dir() else []
GPU = {"id": 0, "name": "Tesla K20c"}
AXPY, DOT = "axpy(int, float*)", "dot(int, float*)"


def real(name):
    if not (REAL / name).exists():
        pytest.skip(f"needs the real log {name}, which is not part of this project")
    return REAL / name


def row(category, name, ts, dur, tid=1, **arguments):
    """A row of a trace, in µs; the CPU's process is 7."""
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": arguments}


def launched(number, kernel, ts, dur, call_ts, tid=1, call="cudaLaunchKernel"):
    """A launch and its kernel."""
    arguments = {"correlation": number, "device": 0, "stream": 7, "External id": number}
    return [
        row("cuda_runtime", call, call_ts, 1, tid, correlation=number),
        {**row("kernel", kernel, ts, dur, **arguments), "pid": 0, "tid": 7},
    ]


def trace(*rows, gpus=(GPU,)):
    return json.dumps({"schemaVersion": 1, "deviceProperties": list(gpus), "traceEvents": list(rows)})


def module(name, ts, dur):
    return row("python_function", f"nn.Module: {name}", ts, dur)


# Two linear layers in a block: `axpy` runs for both, `dot` for the second alone.
NESTED = [
    row("user_annotation", "step", 0, 100),
    module("Block_0", 1, 98),
    row("python_function", "model.py(3): forward", 2, 90),
    module("Linear_0", 10, 20),
    row("cpu_op", "aten::linear", 11, 18),
    row("cpu_op", "aten::addmm", 12, 10),
    *launched(1, AXPY, 50, 30, 15),
    module("Linear_1", 40, 40),
    row("cpu_op", "aten::addmm", 41, 10),
    *launched(2, AXPY, 80, 10, 45),
    *launched(3, DOT, 90, 5, 46),
    row("gpu_user_annotation", "step", 50, 50),
]


def paths(path):
    """How many launches each operator path has."""
    timeline = logs.combine([logs.read(path)]).timeline
    return Counter(timeline.operator.texts().tolist())


def test_a_launch_belongs_to_the_innermost_operator_and_the_modules_around_it(tmp_path):
    assert paths(write(tmp_path, trace(*NESTED))) == {
        "step > Block_0 > Linear_0 > aten::addmm": 1,
        "step > Block_0 > Linear_1 > aten::addmm": 2,
    }


def test_what_passes_in_a_trace_before_the_gpus_first_work_is_told(tmp_path):
    log = logs.read(write(tmp_path, trace(*NESTED)))
    assert log.idle.before_s == pytest.approx(50e-6)
    alone = logs.read(write(tmp_path, trace(*(each for each in NESTED if each["cat"] == "kernel")), "gpu.json"))
    assert alone.idle.before_s == 0


def test_a_gpu_of_amd_without_a_name_is_known_by_its_units_and_memory(tmp_path):
    told = {"id": 0, "name": "", "numSms": 304, "totalGlobalMem": 206141652992}
    for more, name in (({}, "AMD Instinct MI300X (0)"), ({"totalGlobalMem": 7}, "GPU without name (0)")):
        log = logs.read(write(tmp_path, trace(*NESTED, gpus=[told | more])))
        assert set(log.tables[0].rows.device.texts()) == {name}


def test_the_order_of_rows_does_not_matter(tmp_path):
    upright = paths(write(tmp_path, trace(*NESTED), "upright.json"))
    assert paths(write(tmp_path, trace(*reversed(NESTED)), "reversed.json")) == upright


def test_only_the_thread_of_the_launch_counts(tmp_path):
    other = row("cpu_op", "aten::other", 0, 100, tid=2)
    assert paths(write(tmp_path, trace(other, *launched(1, AXPY, 50, 5, 15)))) == {"(outside of operators)": 1}


def test_a_backward_pass_is_named_by_its_function(tmp_path):
    rows = [
        row("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 0, 50),
        row("cpu_op", "AddmmBackward0", 1, 40),
        row("cpu_op", "aten::mm", 2, 30),
        *launched(1, AXPY, 50, 5, 15),
        *launched(2, AXPY, 60, 5, 45),
    ]
    assert paths(write(tmp_path, trace(*rows))) == {"AddmmBackward0 > aten::mm": 1, "AddmmBackward0": 1}


def test_kernels_without_their_launch_say_so(tmp_path):
    rows = [row("cpu_op", "aten::mm", 0, 50), *launched(1, AXPY, 50, 5, 15)[1:]]
    assert paths(write(tmp_path, trace(*rows))) == {"(launch not in the trace)": 1}


def test_times_are_those_of_kernels_alone(tmp_path):
    log = logs.read(write(tmp_path, trace(*NESTED, row("gpu_memcpy", "Memcpy HtoD", 5, 40))))
    assert log.tables[0].rows.time_s.sum() == pytest.approx(45e-6)
    assert "1 copies (0.04 ms)" in " ".join(log.notes)


def test_a_trace_of_a_pytorch_before_1_12_is_the_same(tmp_path):
    """It called the categories otherwise, and told a stream as "stream 7"."""
    new = trace(*NESTED, row("gpu_memcpy", "Memcpy HtoD", 5, 40))
    names = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "cuda_runtime": "Runtime", "cpu_op": "Operator"}
    old = re.sub(r'"cat": "(\w+)"', lambda found: f'"cat": "{names.get(found[1], found[1])}"', new)
    assert old != new and paths(write(tmp_path, old)) == paths(write(tmp_path, new))
    was, now = (logs.read(write(tmp_path, text)) for text in (old, new))
    assert was.notes == now.notes and was.idle == now.idle


def test_a_trace_of_the_cpu_alone_is_refused(tmp_path):
    path = write(tmp_path, trace(row("cpu_op", "aten::mm", 0, 5)))
    with pytest.raises(LogError, match="no kernels.*ProfilerActivity.CUDA"):
        logs.read(path)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_trace_that_is_cut_off_is_refused(tmp_path, share):
    text = trace(*NESTED)
    with pytest.raises(LogError, match="cut off or damaged"):
        logs.read(write(tmp_path, text[: int(share * len(text))]))


def test_a_printed_table_is_named_with_the_call_that_writes_a_trace(tmp_path):
    path = tmp_path / "table.txt"
    head = "Name    Self CPU %      Self CPU   CPU total %     CPU total     Self CUDA    CUDA total    # of Calls"
    table = f"# {'-' * 30}\n# {head}\n# aten::mm  0.39%  586.0us  0.63%  945.0us  14.7ms  15.0ms  20\n"
    path.write_text(table)
    with pytest.raises(LogError, match="export_chrome_trace"):
        logs.read(path)
    path.write_text(table + profiled(1, METRICS, metric("inst_executed", "5")))
    assert logs.read(path).tables  # a log of nvprof behind it is read


def test_json_that_is_no_trace_is_refused(tmp_path):
    with pytest.raises(LogError, match="no trace of the PyTorch profiler"):
        logs.read(write(tmp_path, '{"schemaVersion": 1, "traceEvents": 7}'))


@pytest.mark.parametrize(
    "damage",
    [
        ('"correlation": 1,', '"correlation": {},'),
        ('"ts": 50', '"ts": 1e300'),
        ('"dur": 30', '"dur": "long"'),
        ('"args": {"correlation": 3', '"args": [], "x": {"correlation": 3'),
    ],
)
def test_odd_values_are_told_in_one_sentence(tmp_path, damage):
    text = trace(*NESTED)
    assert damage[0] in text
    with pytest.raises(LogError, match="no trace of the PyTorch profiler"):
        logs.read(write(tmp_path, text.replace(*damage)))


def test_a_launch_that_ends_before_it_starts_has_no_time(tmp_path):
    rows = [row("cpu_op", "aten::mm", 0, 50), *launched(1, AXPY, 50, 5, 15), *launched(2, DOT, 60, -3, 16)]
    launches = logs.combine([logs.read(write(tmp_path, trace(*rows)))])
    assert dict(zip(launches.rows.kernel, launches.rows.time_s.tolist(), strict=True))[AXPY] == pytest.approx(5e-6)
    assert math.isnan(dict(zip(launches.rows.kernel, launches.rows.time_s.tolist(), strict=True))[DOT])


def test_a_trace_may_be_one_long_line(tmp_path):
    rows = [*NESTED, row("cpu_op", "aten::x", 200, 1, padding="x" * (5 << 20))]
    assert sum(paths(write(tmp_path, trace(*rows), packed=True)).values()) == 3


def test_amd_numbers_devices_otherwise_than_it_lists_them(tmp_path):
    rows = launched(1, AXPY, 50, 5, 15)
    rows[1]["args"]["device"] = 2
    log = logs.read(write(tmp_path, trace(*rows, gpus=[{"id": 0, "name": "AMD Instinct MI300X"}])))
    assert log.tables[0].rows.device.names == ("AMD Instinct MI300X (2)",)


@pytest.mark.parametrize(
    ("gpus", "device"),
    [((GPU,), "Tesla K20c (0)"), ((GPU, {**GPU, "id": 1}), "Tesla K20c"), ((), "GPU without name")],
)
def test_a_kernel_that_names_no_device_ran_on_the_only_one(tmp_path, gpus, device):
    rows = launched(1, AXPY, 50, 5, 15)
    del rows[1]["args"]["device"]
    log = logs.read(write(tmp_path, trace(*rows, gpus=gpus)))
    assert log.tables[0].rows.device.names == (device,)


def test_the_stream_is_the_part_where_rows_are_split_by_stream(tmp_path):
    rows = logs.read(write(tmp_path, trace(*NESTED)), parts="stream").tables[0].rows
    assert rows.part.texts().tolist() == ["7"] * 3


# ------------------------------------------------------------------------------------------------------- real files


def rows_of(path):
    with gzip.open(path) as file:
        return [each for each in json.load(file)["traceEvents"] if each.get("ph") == "X"]


def operator_of(kernel, rows):
    """The innermost operator around a kernel's launch, looked for in all rows; None where there is none."""
    number = kernel["args"].get("correlation")
    calls = [row for row in rows if "_runtime" in row["cat"] or "_driver" in row["cat"]]
    (call,) = [row for row in calls if row["args"].get("correlation") == number]
    around = [
        row
        for row in rows
        if row["cat"] == "cpu_op" and row["tid"] == call["tid"] and row["ts"] <= call["ts"] < row["ts"] + row["dur"]
    ]
    inner = max(around, key=lambda row: (row["ts"], -row["dur"]), default=None)
    return "(graph launch)" if "GraphLaunch" in call["name"] else inner and inner["name"]


@pytest.mark.parametrize("name", FILES)
def test_real_traces_have_the_operators_that_a_search_of_all_rows_finds(name):
    rows = rows_of(real(name))
    kernels = [row for row in rows if row["cat"] == "kernel"]
    if not kernels:
        pytest.skip(f"{name} has no kernels")
    (table,) = logs.read(real(name)).tables
    assert len(table.rows) == len(kernels)
    assert table.rows.time_s.sum() == pytest.approx(sum(kernel["dur"] for kernel in kernels) * 1e-6)
    if not any(row["cat"] == "cpu_op" for row in rows):
        assert table.rows.operator is None
        return
    wanted = Counter(operator_of(kernel, rows) for kernel in kernels)
    assert None not in wanted, "the join works for every kernel of these files"
    found = [path.rpartition(" > ")[2] for path in table.rows.operator.texts().tolist()]
    assert Counter(found) == {
        name.removeprefix("autograd::engine::evaluate_function: "): n for name, n in wanted.items()
    }


def test_the_same_model_on_two_gpus_has_the_same_modules():
    operators = []
    for name in ("tracelens-h100-bert-small.json.gz", "tracelens-mi300x-bert-small.json.gz"):
        texts = set(paths(real(name)))
        operators.append({text.rpartition(" > ")[0] for text in texts})
    assert len(operators[0] & operators[1]) >= 0.8 * len(operators[0])
    assert any("BertSdpaSelfAttention_0 > Linear_0" in module for module in operators[0])


def test_a_graph_says_that_it_hides_operators():
    log = logs.read(real("tracelens-mi300x-vllm-hipgraph.json.gz"))
    assert any(note.startswith("421 launches of kernels are of graphs") for note in log.notes)


def test_kernels_of_amds_libraries_tell_whose_tools_count():
    view = View(document(eprof.load(real("tracelens-mi300x-vllm-hipgraph.json.gz")).energy()))
    assert "count with `rocprof-compute profile" in what_to_try(view).text and "ncu" not in what_to_try(view).text


def test_a_trace_of_the_gpu_alone_says_that_it_has_no_operators():
    path = real("tracelens-mi210-gpuonly.json.gz")
    assert any("tells no operators" in note for note in logs.read(path).notes)
    energy = eprof.load(path).energy()
    assert "operators" not in energy.document()
    assert energy.costs.basis == "estimated" and 30 < energy.energy_j / energy.time_s < 100, "an MI210's data sheet"


def test_cupti_counters_in_a_trace_need_no_other_log():
    path = real("hta-cuptiprofiler-a100-2023.json.gz")
    ranges = [row for row in rows_of(path) if row["cat"] == "cuda_profiler_range"]
    energy = eprof.load(path).energy("a100")
    made = document(energy)
    fma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    assert made.counts["fp32_fma"].value == sum(each["args"][fma] for each in ranges)
    assert sum(operator.launches for operator in made.operators) == len(ranges) == made.launches
    # Launch by launch: the two passes of the model do the same, and nothing is shared by time.
    convolutions = [each for each in made.operators if each.name == "aten::cudnn_convolution"]
    assert len(convolutions) == 2
    assert convolutions[0].energy_j.computation == pytest.approx(convolutions[1].energy_j.computation)
    assert not any("estimated" in operator.energy_marks.computation for operator in convolutions)
    alone = eprof.diff(path, path, costs="a100")
    assert alone.typed.old.compared_j == pytest.approx(energy.energy_j), "all operators of a kernel, not its last"
    timed = eprof.diff(real("hta-alexnet-a100-2023.json.gz"), path).typed
    assert not timed.unlike, "both launch each of their common kernels as often"


# ------------------------------------------------------------------------------------------------ energy by operator


def priced(tmp_path, *rows, counters=((AXPY, 100, 2), (DOT, 1000, 1))):
    """Counters of a run and its trace; averages over the launches."""
    lines = [metric("inst_integer", average, kernel, launches) for kernel, average, launches in counters]
    paths = write(tmp_path, profiled(1, METRICS, *lines)), write(tmp_path, trace(*rows), "x.pt.trace.json")
    return eprof.load(*paths).energy("jetson-tk1")


def by_path(made):
    return {(operator.module, operator.name): operator for operator in made.operators}


def test_a_kernel_is_shared_over_its_operators_by_time(tmp_path):
    made = document(priced(tmp_path, *NESTED))
    first, second = (by_path(made)[f"step > Block_0 > Linear_{number}", "aten::addmm"] for number in (0, 1))
    price = made.counts["integer"].energy_j / made.counts["integer"].value
    assert first.energy_j.computation == pytest.approx(0.75 * 200 * price)
    assert second.energy_j.computation == pytest.approx((0.25 * 200 + 1000) * price)
    assert first.energy_j.constant == pytest.approx(30e-6 * made.costs.constant_power_w)
    assert (first.launches, second.launches) == (1, 2)
    assert "estimated" in first.energy_marks.computation and "estimated" not in first.energy_marks.constant


def test_what_one_operator_alone_launches_is_not_estimated(tmp_path):
    alone = [row("cpu_op", "aten::dot", 0, 20), *launched(1, DOT, 50, 5, 5)]
    (operator,) = document(priced(tmp_path, *alone, counters=[(DOT, 1000, 1)])).operators
    assert "estimated" not in operator.energy_marks.computation


def test_kernels_that_the_trace_lacks_have_a_row_of_their_own(tmp_path):
    alone = [row("cpu_op", "aten::dot", 0, 20), *launched(1, DOT, 50, 5, 5)]
    made = document(priced(tmp_path, *alone))
    assert by_path(made)[None, NOT_TRACED].energy_j.computation > 0


ROWS = st.lists(
    st.tuples(st.sampled_from([AXPY, DOT, "copy(int*)"]), st.sampled_from("abcd"), st.integers(0, 1000)), min_size=1
)
COUNTS = st.lists(st.tuples(st.sampled_from([AXPY, DOT, "scale(int*)"]), st.integers(0, 10**9)), min_size=1)


@given(ROWS, COUNTS)
def test_operators_add_up_to_the_whole(tmp_path_factory, launches, counts):
    folder = tmp_path_factory.mktemp("trace")
    rows = []
    for number, (kernel, operator, dur) in enumerate(launches):
        rows += [
            row("cpu_op", f"aten::{operator}", 10 * number, 9),
            *launched(number, kernel, number, dur, 10 * number + 1),
        ]
    counters = [(kernel, average, 1) for kernel, average in dict(counts).items()]
    energy = priced(folder, *rows, counters=counters)
    made = document(energy)
    for part in ("computation", "constant", "total"):
        whole = getattr(made.energy_j, part)
        parts = [getattr(operator.energy_j, part) or 0.0 for operator in made.operators]
        assert math.fsum(parts) == pytest.approx(whole or 0.0, rel=1e-9)
    assert math.fsum(operator.time_s or 0.0 for operator in made.operators) == pytest.approx(made.time_s or 0.0)
    shares = Counter()
    for operator in made.operators:
        shares.update(dict(operator.kernels))
    assert list(shares.values()) == pytest.approx([1.0] * len(made.kernels))
    if made.energy_j.total:
        assert math.fsum(files.stacks(made).values()) == pytest.approx(made.energy_j.total, rel=1e-9)


def test_instances_of_a_module_are_shown_together(tmp_path):
    view = View(document(priced(tmp_path, *NESTED)))
    (operator,) = words.merged_operators(view.document.operators)
    assert (operator.name, operator.module, operator.launches) == ("aten::addmm", "Block > Linear", 3)
    assert operator.energy_j.total == pytest.approx(view.document.energy_j.total)
    assert words.operator_words(view).startswith("aten::addmm in Block > Linear takes 100")


def test_a_flame_graph_begins_with_the_modules(tmp_path):
    stacks = files.stacks(document(priced(tmp_path, *NESTED)))
    assert ("step", "Block_0", "Linear_0", "aten::addmm", AXPY, "Integer") in stacks


def test_every_medium_shows_the_operators(eprof_command, tmp_path):
    counters = write(tmp_path, profiled(1, METRICS, metric("inst_integer", 100, AXPY)))
    path = write(tmp_path, trace(*NESTED), "x.pt.trace.json")
    files = [tmp_path / f"out.{suffix}" for suffix in ("html", "md", "txt")]
    outputs = [word for file in files for word in ("-o", file)]
    done = eprof_command("report", counters, path, "--costs", "jetson-tk1", "-v", *outputs)
    assert done.returncode == 0, done.stderr
    for text in [done.stdout, *(file.read_text() for file in files)]:
        assert "aten::addmm" in text and "Block" in text


def test_hostile_names_of_operators_reach_no_terminal_and_no_page(eprof_command, tmp_path):
    rows = [
        row("user_annotation", "<img src=x onerror=alert(1)>\x1b]0;x\x07", 0, 100),
        row("cpu_op", "</script><script>alert(1)</script>\x1b[31m|`x`\u202e", 1, 90),
        *launched(1, AXPY, 50, 30, 15),
    ]
    path = write(tmp_path, trace(*rows))
    files = [
        tmp_path / f"x.{suffix}" for suffix in ("html", "md", "txt", "prom", "folded", "speedscope.json", "trace.json")
    ]
    outputs = [word for file in files for word in ("-o", file)]
    done = eprof_command("report", path, "--costs", "jetson-tk1", "-v", *outputs)
    assert done.returncode == 0, done.stderr
    texts = [done.stdout, *(file.read_text() for file in files)]
    assert not any(letter in text for text in texts for letter in "\x1b\x07\u202e")
    assert "<script>alert" not in texts[1] and "<img" not in texts[1] and "<img" not in texts[2]


def test_two_traces_go_below_each_other(tmp_path):
    first = write(tmp_path, trace(*NESTED), "rank0.json")
    second = write(tmp_path, trace(*NESTED[:8]), "rank1.json")
    timeline = eprof.load(first, second).timeline
    assert len(timeline) == 4 and timeline.start_ns.tolist() == [50_000, 80_000, 90_000, 50_000]


def test_ncu_and_kineto_spell_pytorch_kernels_differently():
    """As in real logs of both: casts, lambdas, the side of `const`, and parameters that ncu numbers."""
    kineto = (
        "void at::native::elementwise_kernel<4, at::native::copy(at::TensorIteratorBase const&)::"
        "{lambda()#3}::operator()() const::{lambda(float)#1}>(int, std::array<char*, 2ul>)"
    )
    ncu = (
        "void at::native::elementwise_kernel<(int)4, at::native::copy(const at::TensorIteratorBase &)::"
        "[lambda() (instance 3)]::operator ()() const::[lambda(float) (instance 1)]>(int, T2)"
    )
    other = ncu.replace("(instance 3)", "(instance 4)")
    assert match_names({kineto}, {ncu, other}) == ({kineto: ncu}, [])


def test_numbers_that_no_trace_has_are_one_sentence(tmp_path):
    kernel = row("kernel", AXPY, 1, 2, device=0, stream=7)
    for base_ns in (10**30, -1, 2**63 - 1):
        path = tmp_path / "base.json"
        path.write_text(json.dumps({**json.loads(trace(kernel)), "baseTimeNanoseconds": base_ns}))
        with pytest.raises(LogError, match="no trace of the PyTorch profiler"):
            logs.read(path)


@pytest.mark.parametrize("arguments", [None, [1], "text"])
def test_counters_that_are_no_table_are_one_sentence(tmp_path, arguments):
    path = tmp_path / "ranges.json"
    path.write_text(trace({**row("cuda_profiler_range", AXPY, 1, 2), "args": arguments}))
    with pytest.raises(LogError, match="no trace of the PyTorch profiler"):
        logs.read(path)


def test_a_counter_that_is_too_large_is_not_known(tmp_path):
    path = tmp_path / "ranges.json"
    huge = row("cuda_profiler_range", AXPY, 1, 2, **{"smsp__inst_executed.sum": 10**400, "dram__bytes.sum": 5})
    good = row("cuda_profiler_range", AXPY, 3, 2, **{"smsp__inst_executed.sum": 7, "dram__bytes.sum": 5})
    path.write_text(trace(huge, good))
    (table,) = logs.read(path).tables
    assert table.counters["dram__bytes.sum"].tolist() == [5, 5]
    assert [math.isnan(value) for value in table.counters["smsp__inst_executed.sum"]] == [True, False]
