"""Adding up rows while a log is read changes nothing that is told of it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from conftest import SHARED
from frames_support import combine
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_support import (
    K20C,
    METRICS,
    NAMES,
    TRACE,
    TRACE_UNITS,
    launch,
    metric,
    profiled,
    read,
    read_tuned,
    real,
    write,
)

from eprof.base.errors import EprofError
from eprof.logs.stream import Tuning
from eprof.nvidia import folding
from eprof.profilers.ncu import LONG as LONG_FORM
from eprof.profilers.ncu.launches import Long
from eprof.profilers.nvprof import reader, sqlite
from eprof.profilers.nvprof import tables as section
from eprof.readers.sections import CsvSection

LINE_BY_LINE, TOGETHER = Tuning(chunk_bytes=64), Tuning(chunk_bytes=256, fast_from=1)
WIDE = '"Device","Context","Stream","Kernel","inst_integer","dram_read_throughput","l2_read_transactions"'


def ordered(launches):
    """The rows by device and kernel, and counters by name: adding up changes which comes first, and no more."""
    order = launches.kernels.sort_values(["device", "kernel"]).index
    parts = {
        name: getattr(launches, name).loc[order].reset_index(drop=True) for name in ("kernels", "counters", "marks")
    }
    by_name = {name: parts[name].sort_index(axis="columns") for name in ("counters", "marks")}
    return replace(launches, **parts | by_name)


def same(one, other):
    one, other = ordered(one), ordered(other)
    times = ["time_s", "least_s", "most_s"]
    assert one.kernels.drop(columns=times).equals(other.kernels.drop(columns=times))
    np.testing.assert_allclose(one.kernels[times], other.kernels[times], rtol=1e-12)
    assert list(one.counters) == list(other.counters) and one.units == other.units
    np.testing.assert_allclose(one.counters.to_numpy(), other.counters.to_numpy(), rtol=1e-12)
    assert one.marks.equals(other.marks)
    assert len(one.warnings) == len(other.warnings)  # they name the first kernel, which may be another


@pytest.fixture
def every_second(monkeypatch):
    """Every second row is handed over and added up at once, where this is called."""

    def start():
        monkeypatch.setattr(section, "_HELD_LINES", 2)
        monkeypatch.setattr(folding, "_HELD_ROWS", 2)

    return start


@pytest.mark.parametrize("name", NAMES)
def test_real_logs_say_the_same_when_rows_are_added_up_on_the_way(name, every_second):
    path = real(name)
    try:
        plain = read(path)
    except EprofError:
        pytest.skip("no log")
    every_second()
    folded = read(path)
    assert folded.notes == plain.notes
    same(combine([folded]), combine([plain]))


def test_the_shortest_and_the_longest_launch_are_told_of_launches_that_ncu_timed(every_second, tmp_path):
    """Synthetic: 1 to 5 us, of launches one after the other that are added up on the way."""
    header = '"ID","Process ID","Kernel Name","Device","CC","Metric Name","Metric Unit","Metric Value"'
    rows = [f'"{each}","7","k","0","8.0","gpu__time_duration.sum","ns","{1000 * (1 + each)}"' for each in range(5)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    every_second()
    (row,) = combine([read(path)]).kernels.to_dict("records")
    assert (row["least_s"], row["most_s"], row["launches"]) == (pytest.approx(1e-6), pytest.approx(5e-6), 5)


cells = st.sampled_from(["5", "7", "<OVERFLOW>", ""])
rows = st.lists(
    st.tuples(st.integers(1, 2), st.sampled_from("abc"), cells, st.sampled_from(["1.5", "2.5", ""]), cells),
    min_size=1,
    max_size=12,
)


@settings(max_examples=10)
@given(runs=st.lists(rows, min_size=1, max_size=3), tuning=st.sampled_from([LINE_BY_LINE, TOGETHER]))
def test_launches_with_holes_stay_lower_bounds(tmp_path, every_second, runs, tuning):
    text = "".join(
        profiled(pid, WIDE, ",,,,,GB/s,", *(f'"{K20C[:-3]}({d})","1","7","{k}",{x},{y},{z}' for d, k, x, y, z in run))
        for pid, run in enumerate(runs)
    )
    path = write(tmp_path, text)
    plain = read(path)
    every_second()
    same(combine([read_tuned(path, tuning)]), combine([plain]))


def test_memory_grows_with_kernels_not_with_launches(tmp_path):
    path = write(tmp_path, profiled(1, TRACE, TRACE_UNITS, *(launch(1.0 + i % 7) for i in range(5000))))
    log = read_tuned(path, Tuning(chunk_bytes=4096, fast_from=1))
    assert len(log.tables[0].rows) == 1
    assert log.tables[0].rows.frame()["launches"].sum() == 5000
    same(combine([log]), combine([read(path)]))


def test_a_long_log_that_ends_in_zeros_is_read(tmp_path):
    """As disks leave it that lost power: the last block is empty without them."""
    text = profiled(1, TRACE, TRACE_UNITS, *[launch(1.0)] * 100)
    path = write(tmp_path, text.encode() + bytes(9000))
    log = read_tuned(path, Tuning(chunk_bytes=4096, fast_from=1))
    assert log.tables[0].rows.launches.sum() == 100
    assert "the file holds NUL bytes; lines with them were left out" in log.notes


@pytest.mark.parametrize("tuning", [Tuning(), Tuning(chunk_bytes=4096, fast_from=1)], ids=["whole", "in blocks"])
@pytest.mark.parametrize("hole", [1, 9000], ids=["a byte", "blocks"])
def test_digits_beside_nul_bytes_are_not_put_together(tmp_path, tuning, hole):
    rows = [metric("inst_integer", 12345, kernel=f"k{n}") for n in range(200)]
    text = profiled(1, "==1== Metric result:", METRICS, *rows).encode()
    at = text.index(b"12345", len(text) // 2) + 2
    log = read_tuned(write(tmp_path, text[:at] + bytes(hole) + text[at + 1 :]), tuning)
    assert log.tables[0].lacks_rows
    counted = combine([log]).counters["inst_integer"].dropna()
    assert len(counted) == 199 and counted.nunique() == 1


def test_a_kernel_timed_in_one_table_and_counted_in_two_of_a_run_is_no_kernel_with_holes(tmp_path):
    tables = [
        line
        for name in ("inst_integer", "l2_read_transactions")
        for line in (
            f'"Device","Context","Stream","Kernel","{name}"',
            f'"{K20C}","1","7","a",5',
            f'"{K20C}","1","7","a",6',
            "",
        )
    ]
    found = combine([read(write(tmp_path, profiled(1, *tables)))])
    assert list(found.kernels["launches"]) == [2]
    assert found.counters.to_numpy().tolist() == [[11, 11]] and not found.marks.to_numpy().any()


NCU = SHARED / "ncu"
NCU_NAMES = sorted(path.name for path in NCU.glob("*.[ct][sx][vt]")) if NCU.is_dir() else []


@pytest.mark.parametrize("name", NCU_NAMES)
def test_real_logs_of_ncu_say_the_same_when_launches_are_added_up_on_the_way(name):
    path = NCU / name
    try:
        plain = read(path)
    except EprofError:
        pytest.skip("no log")
    folded = read_tuned(path, Tuning(chunk_bytes=1 << 14, fold_rows=50))
    assert folded.notes == plain.notes and folded.runs == plain.runs and folded.format == plain.format
    same(combine([folded]), combine([plain]))


LONG = '"ID","Process ID","Process Name","Kernel Name","Device","CC","Metric Name","Metric Unit","Metric Value"'
ncu_cells = st.sampled_from(["1,024", "2,048", "n/a", ""])
ncu_launches = st.lists(
    st.tuples(st.sampled_from(["7", "8"]), st.sampled_from("ab"), ncu_cells, st.sampled_from(["1.5", "n/a"])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=10)
@given(launches=ncu_launches, raw=st.booleans(), fold_rows=st.integers(2, 9))
def test_launches_of_ncu_with_holes_stay_lower_bounds(tmp_path, launches, raw, fold_rows):
    count, rate = "smsp__inst_executed.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"
    if raw:
        lines = [
            f'"ID","Process ID","Process Name","Kernel Name","Device","CC","{count}","{rate}"',
            '"","","","","","","inst","%"',
        ]
        lines += [f'"{n}","{pid}","p","{k}","0","7.0","{x}","{y}"' for n, (pid, k, x, y) in enumerate(launches)]
    else:
        lines = [LONG]
        for n, (pid, k, x, y) in enumerate(launches):
            start = f'"{n}","{pid}","p","{k}","0","7.0"'
            lines += [f'{start},"{count}","inst","{x}"', f'{start},"{rate}","%","{y}"']
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    plain = combine([read(path)])
    same(combine([read_tuned(path, Tuning(chunk_bytes=100, fold_rows=fold_rows))]), plain)


def test_memory_of_a_log_of_ncu_grows_with_kernels(tmp_path):
    rows = [f'"{n}","7","p","k{n % 3}","0","7.0","smsp__inst_executed.sum","inst","{n + 1}"' for n in range(3000)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([LONG, *rows]) + "\n")
    log = read_tuned(path, Tuning(chunk_bytes=4096, fold_rows=100))
    assert len(log.tables[0].rows) == 3
    assert log.tables[0].rows.frame()["launches"].sum() == 3000
    assert log.tables[0].counters.frame()["smsp__inst_executed.sum"].sum() == sum(range(1, 3001))
    same(combine([log]), combine([read(path)]))


def test_a_launch_of_ncu_that_comes_again_far_behind_is_told(tmp_path):
    rows = [f'"{n % 900}","7","p","k","0","7.0","smsp__inst_executed.sum","inst","1"' for n in range(1000)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([LONG, *rows]) + "\n")
    with pytest.raises(EprofError, match="launch 0 of process 7 comes far behind launch 8"):
        read_tuned(path, Tuning(chunk_bytes=4096, fold_rows=100))


@given(
    st.lists(st.sampled_from(["", "x", "1,2", '"a",1', "1,2,", "==9== x", '"Device",1', ","]), min_size=1),
    st.booleans(),
)
def test_lines_that_may_be_no_rows_are_found_from_any_place_on(lines, is_cut):
    """Rows begin with a quote or a digit; headers begin as rows do."""
    data = "\n".join(lines).encode() + b"\n" * (not is_cut)
    starts = [0, *(place + 1 for place, byte in enumerate(data) if byte == ord("\n"))]
    starts = [start for start in starts if start < len(data)]
    block = reader.Block(data, True)
    texts = [data[start:].split(b"\n")[0] for start in starts]
    odd = [start for start, text in zip(starts, texts, strict=True) if text not in (b"1,2", b"1,2,", b'"a",1')]
    for place in range(len(data)):
        assert block.next_odd(place) == min((start for start in odd if start >= place), default=len(data))


TEXT_TRACES = [name for name in NAMES if b"Grid Size" in (SHARED / "nvprof" / name).read_bytes()[:20_000]]
DATABASES = [name for name in NAMES if ".nvvp" in name]


@pytest.mark.parametrize("name", TEXT_TRACES + DATABASES)
def test_text_traces_and_databases_are_handed_over_piece_by_piece(name, monkeypatch):
    path = real(name)
    plain = read(path)
    monkeypatch.setattr(section, "_HELD_LINES", 3)
    monkeypatch.setattr(sqlite, "_ROWS", 3)
    folded = read(path)
    assert folded.notes == plain.notes
    same(combine([folded]), combine([plain]))


def test_what_is_carried_along_does_not_grow_with_the_log():
    table = {
        place: pa.array([str(number) for number in numbers]) for place, numbers in enumerate((range(1000), [7] * 1000))
    }
    section = CsvSection(LONG_FORM, ["ID", "Process ID"])
    whole, last = Long.split_last(section, [table])
    assert [len(column) for column in whole.values()] == [999, 999]
    assert last == {0: ["999"], 1: ["7"]}, "lists: a slice of a column would keep all of it"
