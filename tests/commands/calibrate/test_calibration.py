"""Calibration without a GPU: the manifest, the plan, what is made of results, and a whole session on a stand-in."""

import json
import math
import re
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace
from standin_gpu import CONSTANT_W, DEVICE, PRICES, StandIn, StandInMeter, Time, hands

from eprof import costs
from eprof.base.errors import CollectError, DefinitionError, EprofError, LogError, UsageError
from eprof.base.gpus import DataSheet
from eprof.base.toml import Document
from eprof.cli.output import Progress
from eprof.commands.calibrate import command as calibrate
from eprof.commands.calibrate import cuda, results, table
from eprof.commands.calibrate import manifest as manifests
from eprof.commands.calibrate import manifest as schedule
from eprof.commands.calibrate.device import Compiled
from eprof.commands.calibrate.results import fraction, peaks, resource
from eprof.commands.calibrate.sass import Instruction, tally
from eprof.commands.calibrate.session import Request, Session, label
from eprof.costs import estimate

MANIFEST = manifests.load()
H100 = (9, 0)
# Two HMMA for a product of 16 x 16 matrices on an H100: 32 threads count one each, and 8192 flops.
FLOP_PJ = PRICES["tensor"] * 2 * 32 / 8192


# ---- the manifest


def test_the_manifest_covers_what_it_should():
    words = {word for one in MANIFEST.benchmarks for word in one.count}
    wanted = {f"fp{bits}_{kind}" for bits in (16, 32, 64) for kind in ("fma", "add", "mul")}
    wanted |= {"integer", "special", "conversion", "tensor", "shared_read", "shared_write", "l1_read", "random"}
    wanted |= {f"{level}_{way}" for level in ("l2", "dram") for way in ("read", "write")}
    assert words == wanted
    assert all(one.source in ("arithmetic.cu", "memory.cu") for one in MANIFEST.benchmarks)
    intensities = {
        round(2 * one.count["fp32_fma"]({"threads": 1, "iterations": 1}) / one.count["dram_read"]({"threads": 1, "iterations": 1}), 3)
        for one in MANIFEST.benchmarks
        if set(one.count) == {"fp32_fma", "dram_read"}
    }  # fmt: skip
    assert len(intensities) >= 5
    assert min(intensities) == 0.5
    assert max(intensities) > 30


def test_every_price_can_be_told_from_the_others():
    """The benchmarks of a capability determine their words: the matrix of rates has full rank, constant included."""
    for capability in ((3, 5), (6, 1), (7, 0), H100):
        chosen = schedule.choose(MANIFEST, capability)
        counts = [results.accessed(MANIFEST.counts(one, capability, 1, 1), capability) for one in chosen]
        table = pd.DataFrame(counts).fillna(0.0).drop(columns="control")
        table = table.T.groupby(resource).sum().T
        table = table.loc[:, table.any()]
        table["constant"] = 100.0
        scaled = table.to_numpy() / table.to_numpy().max(axis=0)
        assert np.linalg.matrix_rank(scaled, tol=1e-3) == table.shape[1], capability


@pytest.mark.parametrize(
    ("capability", "l1_read", "l1_write"),
    [((3, 5), 1, 4), ((6, 1), 1 + 2 + 32, 4), ((7, 0), 1 + 2 + 32, 4 + 8 + 64)],
)
def test_what_passes_l2_passes_l1_where_that_serves_it(capability, l1_read, l1_write):
    """Loads from Maxwell on, stores from Volta on."""
    served = {"l1_read": 1, "l2_read": 2, "dram_read": 32, "l1_write": 4, "l2_write": 8, "dram_write": 64}
    counts = results.accessed(served, capability)
    assert (counts["l1_read"], counts["l1_write"]) == (l1_read, l1_write)
    assert (counts["l2_read"], counts["l2_write"], counts["dram_read"]) == (34, 72, 32)


@pytest.mark.parametrize(
    ("capability", "there", "not_there"),
    [
        ("3.0", ["fp32_fma", "read"], ["l1_read", "fp16_fma", "tensor", "sleep"]),
        ("3.5", ["l1_read", "integer_mad"], ["fp16_fma", "tensor"]),
        ("6.1", ["fp16_fma"], ["integer_mad", "tensor"]),
        ("7.0", ["tensor", "sleep", "integer_mad"], []),
        ("12.0", ["tensor"], []),
    ],
)
def test_a_gpu_gets_the_benchmarks_that_it_has_the_hardware_for(capability, there, not_there):
    names = {one.name for one in schedule.choose(MANIFEST, manifests.capability_of(capability))}
    assert set(there) <= names
    assert not set(not_there) & names


def test_counts_are_formulas_of_the_launch():
    one = MANIFEST.named("mix_36")
    assert MANIFEST.counts(one, H100, 1000, 7, overhead=False) == {"dram_read": 64 * 7000, "fp32_fma": 144 * 7000}
    assert MANIFEST.counts(one, H100, 1000, 7)["integer"] == 6 * 7000
    tensor = MANIFEST.named("tensor")
    found = [
        MANIFEST.counts(tensor, one, 32, 1, overhead=False)["tensor"] / 32 for one in ((7, 0), (7, 5), (8, 6), (12, 0))
    ]
    # 32 products of 4096 multiply-adds a turn: 8, 32, 64 and 64 multiply-adds a thread and instruction.
    assert [32 * 4096 / 32 / one for one in found] == [8, 32, 64, 64]


BROKEN = [
    ("schema = 1", "schema = 2", "`schema` must be 1", 13),
    ('count = { fp32_fma = "32 *', 'count = { fp32_fmaa = "32 *', "`fp32_fmaa` is not a word of the vocabulary", 46),
    ('count = { fp32_fma = "32 * threads', 'count = { fp32_fma = "32 * lanes', "uses `lanes`", 46),
    ('region = "dram"', 'region = "ram"', "Invalid enum value 'ram'", None),
    ('name = "integer_mad"', 'name = "integer"', "two benchmarks `integer`", None),
    ('blocks = "1"', 'blocks = "blocks"', "uses `blocks`", None),
    ("least = 0.8", "least = 80", "Expected `float` <= 1.0", None),
    ('"7.5" = 4', '"turing" = 4', "`turing` is not a compute capability", None),
    ("spread = 8", "spraed = 8", "unknown field `spraed`", None),
]


@pytest.mark.parametrize(("old", "new", "sentence", "line"), BROKEN, ids=lambda one: str(one)[:25])
def test_a_mistake_in_the_manifest_is_found(old, new, sentence, line):
    text = (manifests.home() / "benchmarks.toml").read_text()
    assert old in text
    with pytest.raises(DefinitionError) as caught:
        manifests.parse(Document.parse(text.replace(old, new, 1), "benchmarks.toml"))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("benchmarks.toml:")
    if line is not None and "schema" not in old:
        assert text.splitlines()[int(str(caught.value).split(":")[1]) - 1].startswith(("count", "[[benchmark]]"))


# ---- the plan


def test_the_budget_of_six_minutes_holds_every_benchmark_once():
    timing = schedule.Timing()
    count = max(len(schedule.choose(MANIFEST, one)) for one in ((3, 5), (7, 0), H100, (12, 0)))
    assert count <= timing.benchmarks()
    assert timing.expected_s(count) <= timing.budget_s == 360


def test_budget_arithmetic():
    timing = schedule.Timing(budget_s=25 + 10 * 6.9 + 1, rounds=3)
    assert timing.benchmark_s == pytest.approx(6.9)
    assert timing.benchmarks() == 10
    assert timing.expected_s(4) == pytest.approx(25 + 10 * 6.9)
    assert timing.expected_s(2) == pytest.approx(25 + 6 * 6.9)
    assert schedule.Timing(budget_s=5).benchmarks() == 0


def test_names_of_benchmarks_are_checked():
    assert [one.name for one in schedule.choose(MANIFEST, H100, ["tensor", "read"])] == ["read", "tensor"]
    with pytest.raises(UsageError, match="no benchmark `raed`"):
        schedule.choose(MANIFEST, H100, ["raed"])


# ---- peaks


def test_fraction_of_peak():
    known = peaks(MANIFEST, DEVICE, 1500.0, None)
    assert known["fp32"] == 128 * 100 * 1.5e9
    assert known["fp64"] == known["fp32"] / 2
    assert known["dram"] == 2 * 2e9 * 5120 / 8
    counts = {"dram_read": 1e9, "dram_write": 1e9, "fp32_fma": 1e9}
    reached, bound = fraction(counts, 2e9 / known["dram"] * 2, known)
    assert (round(reached, 9), bound) == (0.5, "dram")
    assert fraction({"l2_read": 1e9}, 1.0, known) == (None, None)


# ---- a session on the stand-in


def session(tmp_path, gpu, said=None, hand=None, **request):
    request = {"timing": schedule.Timing(rounds=1), **request}
    tell = (lambda sentence: None) if said is None else said.append
    return Session(Request(tmp_path / "dir", **request), tell, hand or hands(gpu))


def run(one):
    one.prepare()
    one.measure()
    return one.rows()


def fitted(frame):
    """Prices in pJ by kind and constant power, by plain least squares: not the fit that is shipped, an independent one."""
    kinds = {kind: frame[[word for word in frame.columns if resource(word) == kind]].sum(axis=1) for kind in PRICES}
    rates = pd.DataFrame(kinds).div(frame["time_s"], axis=0) / 1e12
    matrix = np.column_stack([rates.to_numpy(), np.ones(len(frame))]) / frame["power_w"].to_numpy()[:, None]
    scale = np.abs(matrix).max(axis=0)
    solution = np.linalg.lstsq(matrix / scale, np.ones(len(frame)), rcond=None)[0] / scale
    return dict(zip([*PRICES, "constant"], solution, strict=True))


def test_known_prices_come_back_through_the_whole_session(tmp_path):
    gpu = StandIn(Time())
    one = session(tmp_path, gpu)
    rows = run(one)
    assert [row.reasons for row in rows if not row.used] == []
    frame = pd.read_csv(one.save(rows))
    assert len(frame) == len(rows) == len(one.benchmarks)
    found = fitted(frame)
    assert found.pop("constant") == pytest.approx(CONSTANT_W, rel=1e-6)
    assert found == pytest.approx({**PRICES, "tensor": FLOP_PJ}, rel=1e-6)
    assert gpu.time.seconds < 360
    assert one.missing() == []


def test_the_table_has_the_known_prices(tmp_path):
    """From benchmarks to a file of costs that eprof itself reads and prices with."""
    pytest.importorskip("scipy")
    from eprof import costs
    from eprof.commands.calibrate import table

    gpu = StandIn(Time())
    one = session(tmp_path, gpu)
    rows = run(one)
    made = table.make(one, one.save(rows), rows, "My GPU")
    path = tmp_path / "my-gpu.toml"
    path.write_text(made.text)
    found, mistakes = costs.examine(str(path))
    assert mistakes == []
    priced = found.at(None)
    for word, kind in (
        ("fp32_fma", "fp32"),
        ("fp64_add", "fp64"),
        ("l2_write", "l2"),
        ("dram_read", "dram"),
        ("random", "random"),
    ):
        assert priced.charges[word].pj == pytest.approx(PRICES[kind], rel=1e-3)
    assert priced.charges["tensor_fp16"].pj == pytest.approx(FLOP_PJ, rel=1e-3)
    assert priced.constant_power_w == pytest.approx(CONSTANT_W, rel=1e-3)
    assert "the table holds there alone" in " ".join(made.notes)
    assert "2.5 nJ each beside their bytes" in " ".join(made.notes)
    (chased,) = (row for row in rows if row.benchmark == "chase")
    assert priced.peaks.random_gaccess_per_s == pytest.approx(chased.counts["random"] / chased.time_s / 1e9, rel=1e-5)


def test_an_interrupted_session_goes_on(tmp_path):
    """Stopped by the budget, then by a crash in the middle of a line: nothing is measured twice, nothing is lost."""
    gpu = StandIn(Time())
    first = session(tmp_path, gpu, timing=schedule.Timing(budget_s=100, rounds=1))
    early = run(first)
    assert 5 < len(early) < len(first.benchmarks)
    assert "for want of time" in first.missing()[0]
    with first.events_file.open("a") as file:
        file.write('{"event": "meas')
    gpu.launched.clear()
    second = session(tmp_path, gpu, resume=True)
    rows = run(second)
    assert len(rows) == len(second.benchmarks)
    assert second.missing() == []
    again = {row.benchmark for row in early} & set(gpu.launched)
    assert again <= {"fp32_fma"}, "only the warm-up runs again what was measured"
    assert [row for row in rows if row.benchmark in {one.benchmark for one in early}] == early
    gpu.launched.clear()
    run(session(tmp_path, gpu, resume=True))
    assert gpu.launched == []


class Shown(Progress):
    def __init__(self):
        self.lines = []

    def update(self, line):
        self.lines.append(line())

    def wipe(self):
        self.lines.append("")


def test_progress_is_shown_while_the_benchmarks_run(tmp_path):
    gpu, shown = StandIn(Time()), Shown()

    def run_and_tick(plan, log, timeout_s, tick):
        results_so_far = tmp_path / "dir" / "results.jsonl"
        results_so_far.write_text('{"event": "began", "name": "read", "setting": "in force"}\n{"ev')
        tick()
        results_so_far.unlink()
        return plain.run(plan, log, timeout_s, tick)

    plain = hands(gpu)
    one = Session(
        Request(tmp_path / "dir", only=("read", "integer"), timing=schedule.Timing(rounds=1)),
        lambda sentence: None,
        plain._replace(run=run_and_tick),
        shown,
    )
    assert len(run(one)) == 2
    assert shown.lines[0].startswith("in force · 0 of 2 benchmarks · read · at most 3")
    assert shown.lines[-1] == "", "wiped at the end"


def test_rounds_fill_the_budget_and_medians_are_taken(tmp_path):
    gpu = StandIn(Time())
    one = session(tmp_path, gpu, timing=schedule.Timing(rounds=3, budget_s=100), only=("read", "fp32_fma", "integer"))
    rows = run(one)
    assert [row.rounds for row in rows] == [3, 3, 3]


def test_a_benchmark_that_crashes_the_gpu_does_not_take_the_others_with_it(tmp_path):
    said = []
    gpu = StandIn(Time(), crash_at=("special", "mix_special_conversion"))
    one = session(tmp_path, gpu, said)
    rows = run(one)
    assert len(rows) == len(one.benchmarks) - 2
    assert "special failed" in said[0]
    assert "illegal memory access" in said[0]
    assert "special at in force failed" in one.missing()[0]
    assert "special" not in pd.read_csv(one.save(rows)).columns, "what was not measured is no column of zeros"


def test_a_worker_that_cannot_begin_is_an_error(tmp_path):
    gpu = StandIn(Time())
    hand = hands(gpu, run=lambda *_: "There is no power meter for this GPU: NVML: no.")
    with pytest.raises(CollectError, match="cannot be run: There is no power meter"):
        run(session(tmp_path, gpu, hand=hand))


def test_slow_fast_and_throttled_benchmarks_are_left_out_with_the_reason(tmp_path):
    gpu = StandIn(
        Time(),
        speed_of={"fp64_fma": 0.3, "read": 1.4},
        clock_of={"tensor": 1100.0, "mix_132": 1490.0},
    )
    one = session(tmp_path, gpu)
    rows = {row.benchmark: row for row in run(one)}
    why = {name: row.reasons[0] for name, row in rows.items() if row.reasons}
    assert why == {
        "fp64_fma": "it ran at 30% of the peak of fp64, less than 80%",
        "read": "it ran at 140% of the peak of dram: it cannot have done what it claims",
        "tensor": "it ran at 1100 MHz (software power cap), the setting is 1500 MHz",
    }
    frame = pd.read_csv(one.save(list(rows.values())))
    assert not set(why) & set(frame["benchmark"])
    assert pd.read_csv(one.request.directory / "rows.csv").set_index("benchmark").loc["tensor", "why"] == why["tensor"]


def test_without_power_there_is_nothing_to_fit(tmp_path):
    gpu = StandIn(Time())
    one = session(tmp_path, gpu, hand=hands(gpu, StandInMeter(gpu, blind=True)), only=("read",))
    rows = run(one)
    assert rows[0].reasons == ("the meter gave no power",)
    with pytest.raises(EprofError, match="No benchmark gave a row"):
        one.save(rows)


def test_counts_that_need_a_profiler_are_not_believed(tmp_path):
    gpu = StandIn(Time())
    assert "read_sectors" not in {one.name for one in schedule.choose(MANIFEST, H100)}
    rows = run(session(tmp_path, gpu, only=("read_sectors",)))
    assert rows[0].reasons[0].startswith("its counts are not confirmed: memory may fetch more")


def test_machine_code_that_differs_is_left_out(tmp_path):
    gpu = StandIn(Time())
    code = "\n".join(
        ["\t\tFunction : fp32_fma", *(f"        /*{16 * i:04x}*/   FFMA R1, R2, R3, R4 ;" for i in range(64)),
         "        /*0400*/   IADD3 R9, R9, 0x1, RZ ;", "        /*0410*/   ISETP.GE.AND P0, PT, R9, R8, PT ;",
         "        /*0420*/   @!P0 BRA 0x0 ;", "        /*0430*/   EXIT ;"]
    )  # fmt: skip
    one = session(tmp_path, gpu, hand=hands(gpu, disassemble=lambda image: (code, "")), only=("fp32_fma", "read"))
    rows = run(one)
    assert rows[0].reasons == ("a turn of its loop has 64 of fp32_fma in machine code, not 128",)
    assert rows[1].reasons == ("its machine code has 0 loops instead of one",)
    assert "0 of 2 benchmarks" in one.notes[0]


def test_what_is_printed_of_each_benchmark(tmp_path, capsys):
    gpu = StandIn(Time(), speed_of={"read": 0.3}, clock_of={"tensor": 1490.0})
    one = session(tmp_path, gpu, only=("read", "fp32_fma", "tensor"))
    rows = run(one)
    shaky = replace(rows[0], notes=("its clock moved by 3%",))
    unknown = replace(rows[0], power_w=None, fraction=None, bound=None, core_mhz=math.nan, memory_mhz=math.nan)
    calibrate._show([*rows, shaky, unknown])
    _, fma, read, tensor, odd, nothing, last = (line.split(maxsplit=6) for line in capsys.readouterr().out.splitlines())
    watts = {row.benchmark: f"{row.power_w:.1f}" for row in rows}
    assert fma == ["fp32_fma", "1500/2000", watts["fp32_fma"], "W", "90%", "fp32"]
    why = "it ran at 30% of the peak of dram, less than 60%"
    assert read == ["read", "1500/2000", watts["read"], "W", "30%", "dram", why]
    assert tensor[:4] == ["tensor", "1500/2000", watts["tensor"], "W"] and odd == [*fma, "(its clock moved by 3%)"]
    assert nothing == ["fp32_fma", "-", "-", "-", "-"] and last[:3] == ["4", "of", "5"]


@pytest.mark.parametrize(("rounds", "duration"), [(1, "78 s"), (3, "2 minutes")])
def test_how_long_all_settings_will_take_is_said_before(tmp_path, capsys, rounds, duration):
    """Of each setting 25 s, and 6.9 s a benchmark and round: 2 x 38.8 s, 2 x 66.4 s."""
    timing = schedule.Timing(rounds=rounds)
    one = session(
        tmp_path, StandIn(Time()), settings=((1500, None), (900, None)), only=("read", "integer"), timing=timing
    )
    calibrate._prepare(one, SimpleNamespace(quiet=False))
    said = capsys.readouterr().err
    assert "Stand-in (compute capability 9.0), nothing." in said
    assert f"2 benchmarks at 2 settings, about {duration}; raw results go to" in said and "budget" not in said


def test_a_dry_run_tells_the_time_of_all_settings(tmp_path, capsys):
    asked = Request(tmp_path, settings=((1500, None), (900, None)), only=("read", "integer"))
    calibrate._dry_run(asked, hands(StandIn(Time())))
    last = "# 2 benchmarks of 6.9 s, 2 settings: about 133 s; 6 measurements a setting"
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_rounds_that_differ_and_clocks_that_move_are_noted(tmp_path):
    """Power and clocks of one result, told again otherwise: the median of three, and what was odd."""
    one = session(tmp_path, StandIn(Time()), only=("read",))
    (first,) = run(one)
    event = next(each for each in results.read(one.events_file) if each["event"] == "measured")
    others = [
        {**event, "power_w": share * event["power_w"], "seen": {**event["seen"], "core_mhz_spread": spread}}
        for share, spread in ((1.1, 0.0), (0.96, 0.02))
    ]
    judged = results.rows(MANIFEST, one.benchmarks, one.device, [event, *others], None, {})
    (row,) = judged
    assert row.power_w == pytest.approx(first.power_w) and row.rounds == 3 and row.used
    assert row.notes == (f"its rounds differ by {row.power_spread:.0%} in power", "its clock moved by 2%")
    assert 0.05 < row.power_spread < 0.15 and first.notes == ()
    told = results.everything(judged).iloc[0]
    assert told["notes"] == "; ".join(row.notes) and told["fraction_of_peak"] == row.fraction


def test_a_table_says_what_it_rests_on_and_what_the_gpu_can_do_in_a_cycle(tmp_path):
    pytest.importorskip("scipy")
    one = session(tmp_path, StandIn(Time(), speed_of={"fp64_fma": 0.3}))
    rows = run(one)
    rows = [replace(row, temperature_c=41.0 + 20 * (place % 2)) for place, row in enumerate(rows)]
    head = table._head(one, rows, "My GPU!")
    assert (head.name, head.device) == ("my-gpu", "Stand-in (compute capability 9.0)")
    assert f", at 41 to 61 degrees C; {len(rows) - 1} rows" in head.source
    assert "fp64_fma was left out: it ran at 30% of the peak of fp64, less than 80%." in head.notes
    # 100 multiprocessors with 128 lanes, half as many for FP64, two flops each; 5120 bits, twice a cycle.
    chase = next(row for row in rows if row.benchmark == "chase")
    assert head.peaks == {
        "sp_flop_per_core_cycle": pytest.approx(25600),
        "dp_flop_per_core_cycle": pytest.approx(12800),
        "dram_byte_per_memory_cycle": pytest.approx(1280),
        "random_access_per_memory_cycle": pytest.approx(chase.counts["random"] / chase.time_s / 2e9),
    }
    (said,) = (note for note in table.make(one, one.save(rows), rows, "x").notes if "at random" in note)
    number = (
        f"{chase.counts['random'] / chase.time_s / 1e9:.3g} billion accesses of memory a second at random, 2.5 nJ each"
    )
    assert said == f"chase: {number} beside their bytes."


def test_settings_are_held_one_after_the_other_and_given_back(tmp_path):
    gpu, seen = StandIn(Time()), []

    @contextmanager
    def held(bus, setting):
        gpu.core_mhz = gpu.last_mhz = float(setting[0])
        seen.append(("held", setting))
        yield
        seen.append(("given back", setting))

    asked = ((1500, None), (900, 2000))
    one = session(tmp_path, gpu, hand=hands(gpu, held=held), settings=asked, only=("read", "fp32_fma"))
    rows = run(one)
    assert seen == [(word, setting) for setting in asked for word in ("held", "given back")]
    assert [(row.benchmark, row.core_mhz, row.memory_mhz) for row in rows] == [
        (name, mhz, 2000.0) for mhz in (1500.0, 900.0) for name in ("fp32_fma", "read")
    ]
    assert all(row.used for row in rows)


def test_a_clock_that_the_gpu_has_not_is_refused_before_anything_runs(tmp_path):
    gpu = StandIn(Time())
    one = session(tmp_path, gpu, settings=((1250, None),))
    with pytest.raises(CollectError, match="no core clock of 1250 MHz; near it are 900, 1200, 1500"):
        one.prepare()
    assert not (tmp_path / "dir").exists()
    with pytest.raises(CollectError, match="no memory clock of 5 MHz; it has 2000"):
        session(tmp_path, gpu, settings=((1200, 5),)).prepare()


def test_a_directory_is_neither_overwritten_nor_mixed_up(tmp_path):
    gpu = StandIn(Time())
    run(session(tmp_path, gpu, only=("read",)))
    with pytest.raises(EprofError, match="holds a calibration already"):
        session(tmp_path, gpu).prepare()
    other = StandIn(Time(), device={**DEVICE, "name": "Other"})
    with pytest.raises(EprofError, match="was measured on Stand-in"):
        session(tmp_path, other, resume=True).prepare()


def test_a_directory_without_results_or_without_a_description_is_gone_on_with(tmp_path):
    gpu = StandIn(Time())
    run(session(tmp_path, gpu, only=("read",)))
    (tmp_path / "dir" / "calibration.json").unlink(missing_ok=True)
    gpu.launched.clear()
    run(session(tmp_path, gpu, only=("read",), resume=True))
    assert gpu.launched == [], "what was measured stands"
    (tmp_path / "dir" / "calibration.json").write_text(json.dumps({"device": {"name": "A GPU that measured nothing"}}))
    session(tmp_path, gpu).events_file.unlink()
    assert run(session(tmp_path, gpu, only=("read",)))


def test_damaged_results_are_named(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"event": "began", "name": "read", "setting": "in force"}\nrubbish\n{"event": "note"}\n')
    with pytest.raises(LogError, match=r"results.jsonl:2: not a result"):
        results.read(path)
    path.write_text('{"event": "began", "name": "read", "setting": "in force"}\nrubb')
    assert results.crashed(results.read(path)) == "read"


def test_the_clock_in_force_is_that_of_most_benchmarks(tmp_path):
    """Most benchmarks at 1200 MHz; one that boosts is the exception, not the rule."""
    gpu = StandIn(Time(), core_mhz=1200.0, clock_of={"light_warp": 1500.0})
    rows = run(session(tmp_path, gpu))
    assert {row.core_mhz for row in rows} == {1200.0}
    assert [row.benchmark for row in rows if not row.used] == ["light_warp"]


def test_labels():
    assert [label(one) for one in (None, (1500, None), (1500, 2600))] == ["in force", "1500", "1500/2600"]


# ---- clocks through NVML


class Refusal(Exception):
    def __init__(self, value):
        self.value = value
        super().__init__("Insufficient Permissions" if value == 4 else "Not Supported")


class Library:
    """NVML as far as clocks go: which calls are refused, and what was called."""

    NVMLError, NVML_ERROR_NO_PERMISSION, NVML_CLOCK_MEM = Refusal, 4, 2

    def __init__(self, **refused):
        self.refused, self.called = refused, []

    def __getattr__(self, name):
        def call(*arguments):
            self.called.append((name.removeprefix("nvmlDevice"), *arguments[1:]))
            if name in self.refused:
                raise Refusal(self.refused[name])
            return 2000 if name == "nvmlDeviceGetClockInfo" else "handle"

        return call


@pytest.fixture
def nvml(monkeypatch):
    def use(**refused):
        library = Library(**refused)
        monkeypatch.setattr(cuda.nvml, "load", lambda: (library, ""))
        return library

    return use


def test_clocks_are_locked_and_given_back_even_after_an_error(nvml):
    library = nvml()
    with pytest.raises(ZeroDivisionError), cuda.held("0000:01:00.0", (1500, 1000)):
        raise ZeroDivisionError
    assert ("SetGpuLockedClocks", 1500, 1500) in library.called
    assert ("SetMemoryLockedClocks", 1000, 1000) in library.called
    assert {"ResetGpuLockedClocks", "ResetMemoryLockedClocks"} <= {name for name, *_ in library.called[-3:]}


def test_nothing_is_touched_unless_asked_for(nvml):
    library = nvml()
    with cuda.held("0000:01:00.0", None):
        pass
    assert library.called == []


def test_older_gpus_get_application_clocks(nvml):
    library = nvml(nvmlDeviceSetGpuLockedClocks=3)
    with cuda.held("0000:01:00.0", (1500, None)):
        pass
    assert ("SetApplicationsClocks", 2000, 1500) in library.called


def test_clocks_that_may_not_be_set_are_one_sentence(nvml):
    nvml(nvmlDeviceSetGpuLockedClocks=4)
    sentence = "cannot be set to 1500 MHz .Insufficient Permissions.. It needs root"
    with pytest.raises(CollectError, match=sentence), cuda.held("0000:01:00.0", (1500, None)):
        raise AssertionError("must not run")


def test_calibration_json_says_what_was_measured_on_what(tmp_path):
    gpu = StandIn(Time())
    one = session(tmp_path, gpu, only=("read",))
    run(one)
    about = json.loads((tmp_path / "dir" / "calibration.json").read_text())
    assert about["schema"] == "eprof.calibration/1"
    assert about["device"]["name"] == "Stand-in"
    assert about["settings"] == ["in force"]
    assert "not checked in machine code" in about["notes"][0]
    assert isinstance(one.images[0], Compiled)


def test_clocks_that_nobody_tells_are_no_zero():
    seen = {"read": [{"seen": {"core_mhz": None, "memory_mhz": None}}]}
    assert str(results._clocks(seen, None, {"core_khz": 0, "memory_khz": None})) == "(nan, nan)"
    assert results._clocks(seen, None, {"core_khz": 1.5e6, "memory_khz": 9e5}) == (1500.0, 900.0)


# ---- --quick


def quick_table(tmp_path, gpu):
    """The table of `--quick` on a stand-in, loaded, and the rows that it was made from."""
    one = session(tmp_path, gpu, quick=True, timing=schedule.QUICK)
    rows = run(one)
    made = table.make_quick(one, rows, "mine")
    path = tmp_path / "mine.toml"
    path.write_text(made.text)
    return costs.load(str(path)), {row.benchmark: row for row in rows}, made.notes[0]


def test_quick_runs_few_benchmarks_in_about_a_minute_with_zeros_and_random_operands():
    chosen = [one.name for one in schedule.choose_quick(MANIFEST, H100)]
    assert chosen[:4] == ["light_warp", "sleep", "fp32_fma", "fp32_fma (zeros)"]
    assert "tensor (zeros)" in chosen
    assert schedule.QUICK.expected_s(len(chosen)) <= 60
    assert not any(
        name.startswith(("tensor", "sleep")) for name in (one.name for one in schedule.choose_quick(MANIFEST, (6, 1)))
    )


def test_quick_scales_the_shared_prices_to_the_runs(tmp_path):
    """The stand-in takes 0.6 of its joules above idle with zeros: so do both factors, and every interval shows it."""
    mine, rows, note = quick_table(tmp_path, StandIn(Time()))
    shared = estimate.shape_prices(DataSheet("H100 PCIe"), CONSTANT_W).pj
    prices = {price.name: price.pj for price in mine.at().prices.values()}
    core = prices["fp32_instruction"] / shared["fp32_instruction"]
    memory = prices["dram_byte"] / shared["dram_byte"]
    assert prices["shared_byte"] / shared["shared_byte"] == pytest.approx(core, rel=2e-3)
    assert mine.basis == "estimated"
    assert mine.at().constant_power_w == pytest.approx(CONSTANT_W, rel=0.02)
    found = [float(number) for number in re.findall(r"\d+\.\d\d(?= (?:\(|to|for))", note)]
    assert found[0] / found[1] == pytest.approx(0.6, abs=0.02)
    assert core == pytest.approx((found[0] + found[1]) / 2, rel=0.02)
    assert found[2] / found[3] == pytest.approx(0.6, abs=0.02)
    assert memory == pytest.approx((found[2] + found[3]) / 2, rel=0.02)
    # What the stand-in's tensor cores take with random operands, issue and loop included, is the upper end.
    row = rows["tensor"]
    upper_pj = (row.power_w - CONSTANT_W) * row.time_s / row.counts["tensor_fp16"] * 1e12
    assert prices["tensor_fp16_flop"] == pytest.approx(0.8 * upper_pj, rel=0.03)
    low, high = mine.replica_intervals().prices_pj["tensor_fp16_flop"]
    assert 0.6 * upper_pj * 0.97 <= low < high <= upper_pj * 1.01


def test_quick_without_one_of_its_runs_says_which(tmp_path):
    one = session(tmp_path, StandIn(Time()), quick=True, timing=schedule.QUICK)
    rows = [row for row in run(one) if row.benchmark != "copy (zeros)"]
    with pytest.raises(EprofError, match=r"needs the benchmark copy \(zeros\)"):
        table.make_quick(one, rows, "mine")


def test_the_short_calibration_charges_each_term_for_its_own_words():
    for term, words in table._TERMS.items():
        own = term.removesuffix("_byte").removesuffix("_instruction")
        assert words and all(word == own or word.startswith(f"{own}_") for word in words), term


def test_a_core_clock_goes_with_some_memory_clocks_alone():
    known = {5000: [900, 800], 9000: [1500, 1400]}
    cuda.check([(1500, 9000), (900, None)], known)
    with pytest.raises(CollectError, match="no core clock of 1500 MHz; near it are 800, 900"):
        cuda.check([(1500, 5000)], known)


def test_an_access_has_the_bytes_that_its_opcode_says():
    opcodes = ("LDG.E.128", "LDG.E", "LDG.E.U8", "STG.E.64", "STS.U16", "NOP", "IMAD.MOV.U32")
    counts = tally([Instruction(0, opcode, "") for opcode in opcodes])
    assert counts == {"read": 16 + 4 + 1, "write": 8, "shared_write": 2, "misc": 1}
