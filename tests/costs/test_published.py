"""Published tables: made of the printed numbers by the stated rule, and checked against runs that they have not seen."""

import sys
from pathlib import Path

import pytest

import eprof
from eprof import costs
from eprof.base.vocabulary import Mark

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "docs" / "studies" / "power"))
import modern  # noqa: E402
import prices  # noqa: E402
import published  # noqa: E402

# [SC25] Table 3 as transcribed: pJ a bit of HBM (control, datapath), L2, L1; pJ a flop of FP64 and of FP16 matrix units.
A100_TABLE_3 = ((8.47, 4.64), (3.11, 1.60), (1.26, 0.33), 28.50, 0.70)
TABLE_3 = {
    "gh200": ((8.69, 2.99), 4.87, 1.45, 23.60, 0.52),
    "mi250x": ((11.82, 1.82), 2.82, 1.54, 15.73, 1.60),
    "mi300a": ((13.47, 1.25), 1.39, 2.11, 11.47, 0.46),
}
SHARES = (8.47 / 13.11, 3.11 / 4.71, 1.26 / 1.59, 0.37 / 0.70, 0.37 / 0.70)  # of control, the A100's
NAMES = ("dram_byte", "l2_byte", "l1_byte", "fp64_flop", "tensor_fp16_flop")


def data():
    if not DATA.is_dir():
        pytest.skip("needs the public measurements, which are not part of this project")
    return DATA


@pytest.mark.parametrize("name", TABLE_3)
def test_prices_and_intervals_follow_from_the_printed_numbers(name):
    table = costs.load(name)
    for price, printed, share in zip(NAMES, TABLE_3[name], SHARES, strict=True):
        control, datapath = printed if isinstance(printed, tuple) else (share * printed, (1 - share) * printed)
        unit = 8 if price.endswith("_byte") else 1
        assert table.at().prices[price].pj == pytest.approx(unit * (control + datapath / 2), rel=0.006)
        low, high = table.intervals.prices_pj[price]
        assert low == pytest.approx(unit * control / 1.25, rel=0.006)
        assert high == pytest.approx(unit * (control + datapath) * 1.15, rel=0.006)


@pytest.mark.parametrize("name", [*TABLE_3, "a100", "h200", "b200", "b300"])
def test_estimated_prices_have_wider_intervals_and_marks(name):
    table = costs.load(name)
    widths = {price: high / max(low, 1e-9) for price, (low, high) in table.intervals.prices_pj.items()}
    estimated = {price for price, source in table.sources.items() if source.startswith("estimated")}
    assert min(widths[price] for price in estimated) > 3
    for charge in table.at().charges.values():
        if charge.formula and any(price in charge.formula for price in estimated):
            assert charge.marks & Mark.ESTIMATED
    assert table.basis == "published"


def test_tables_of_transcribed_numbers_say_so():
    for name in (*TABLE_3, "a100", "h200"):
        table = costs.load(name)
        assert "transcribed, not compared with the paper" in table.source
        assert any("transcribed" in note and "not compared with the paper" in note for note in table.notes)


def test_the_fitted_prices_of_the_a100_are_those_printed_but_for_its_hbm():
    """What was fitted to other boards' watts lies between zero and random operands as printed; HBM below both."""
    prices = {name: price.pj for name, price in costs.load("a100").at().prices.items()}
    hbm, l2, l1, fp64, fp16 = A100_TABLE_3
    assert 8 * l2[0] < prices["l2_byte"] < 8 * sum(l2) and 8 * l1[0] < prices["l1_byte"] < 8 * sum(l1)
    assert prices["tensor_fp16_flop"] == pytest.approx(fp16, rel=0.06)
    assert prices["dram_byte"] + prices["dram_path_byte"] < 8 * hbm[0]
    assert prices["fp64_flop"] == pytest.approx(fp64 * (1 + 0.37 / 0.70) / 2, rel=0.01)


def test_the_tables_have_the_prices_that_the_fits_make():
    fitted = [*modern.streams(data()), *modern.copies()]
    fitted += [run for run in modern.products(data()) if run.operands == "random"]
    made = modern.fit_a100(fitted, modern.relative_volts(data()))
    prices = costs.load("a100").at().prices
    for name, pj in zip(modern.ALL_PRICES, made, strict=True):
        assert prices[name].pj == pytest.approx(pj, rel=0.01), name
    for name, chip in (("h200", modern.H200), ("b200", modern.B200)):
        made = modern.fit_chip(modern.shapes(data(), chip), chip)
        prices = {price: found.pj for price, found in costs.load(name).at().prices.items()}
        prices["dram_byte"] += prices["dram_path_byte"]
        for price, pj in made.items():
            assert prices[price] == pytest.approx(pj, rel=0.01), (name, price)


@pytest.mark.parametrize(
    ("kind", "error", "inside"),
    [
        ("stream, A100-SXM4-80GB", 10, 100),
        ("BabelStream, A100 80GB PCIe", 10, 100),
        ("copies, A100-SXM4-40GB", 10, 100),
    ],
)
def test_streams_on_an_a100_come_out_at_every_clock(kind, error, inside):
    found = published.score(published.of_a100(data())[kind])
    assert max(-found.least, found.most) < error and found.inside >= inside


@pytest.mark.parametrize(
    ("core_mhz", "volts", "power_w", "gb_per_s"),
    [
        (1410, 1.0000, 228.0, 1687.4),
        (1305, 0.9103, 190.0, 1691.8),
        (1200, 0.8552, 169.9, 1696.3),
        (1110, 0.8104, 155.3, 1694.2),
        (1005, 0.7929, 145.1, 1690.8),
    ],
)
def test_babelstream_by_hand_and_as_measured(core_mhz, volts, power_w, gb_per_s):
    """BabelStream on an A100 80GB PCIe (gpu-power-frequency-benchmarks at 2fe08d2): the law, without eprof's code."""
    idle_w = 53.71 * volts + 0.009009 * core_mhz * volts**2
    streamed_w = gb_per_s * 1e-3 * ((11.6 + 29.7 + 24.3) * volts**2 + 15.9)
    active_w = 67e-12 * 108 * core_mhz * 1e6 * volts**2
    by_hand_w = idle_w + streamed_w + active_w
    rates = dict.fromkeys(("l1_read", "l2_read", "dram_read"), gb_per_s * 1e9)
    found = published.predicted("A100 80GB PCIe", rates, core_mhz)
    assert found.power_w == pytest.approx(by_hand_w, rel=1e-6)
    assert found.power_w == pytest.approx(power_w, rel=0.1) and found.holds(power_w)


def test_products_and_programs_on_an_a100_come_out_and_lie_in_narrow_intervals():
    groups = published.of_a100(data())
    random = published.score(groups["products, random, A100-SXM4-80GB"])
    assert random.mean < 6 and random.inside > 95 and random.width < 1.35
    programs = published.score(groups["transformers, A100-PCIE-40GB"])
    assert programs.mean < 10 and programs.inside > 88 and programs.width < 1.35
    rooflines = published.score(groups["roofline, A100-SXM4-40GB"])
    assert rooflines.mean < 8 and rooflines.inside > 95


def test_products_of_an_h200_and_a_b200_come_out_below_the_cap():
    h200, b200 = published.shapes(data(), modern.H200, "H200"), published.shapes(data(), modern.B200, "B200")
    for kind, error in (("compute-bound", 8), ("memory-bound", 6)):
        found = published.score(h200[f"{kind} products, bfloat16, VLLM, H200"])
        assert found.mean < error and found.inside > 90
    fp8 = published.score(h200["memory-bound products, fp8_block, VLLM, H200"])
    assert fp8.mean < 7.5 and fp8.inside > 95
    unseen = published.score(modern.transformers(data(), "h100"))
    assert unseen.rows == 40 and unseen.mean < 12 and unseen.inside > 90
    assert published.score(b200["compute-bound products, nvfp4, VLLM, B200"]).mean < 5
    assert published.score(b200["compute-bound products, bfloat16, VLLM, B200"]).mean < 12


def test_prices_below_the_top_clock_lie_between_what_a_board_at_its_cap_can_have_drawn():
    """A B300 at four caps; an H200 whose clock is not known: at the lowest that its rate allows, and at the top one."""
    kept, carried, left_out = (ratios for _, ratios in published.clock_laws(data()))
    assert min(kept) > 1.1 and min(carried) > 0.85 and max(carried) < 1.02
    assert all(ratio == pytest.approx(1, abs=0.09) for ratio in left_out)
    own = published.score(published.caps(data()))
    assert own.mean < 0.5 and own.rows == 4
    lowest, top = published.at_the_cap(data(), modern.H200, "H200", 132 * 4096)
    assert lowest < 1 < top < 1.05


def test_the_clock_law_of_the_v100_holds_for_programs_that_no_fit_has_seen():
    rows = published.v100_by_clock(data())
    below = rows[rows["mhz"] < 1380]
    for _, programs in below.groupby("source"):
        assert programs["own"].abs().mean() < 0.06 < 0.2 < programs["kept"].abs().mean()
    unseen = rows[(rows["mhz"] > 1380) & (rows["source"] == "microbenchmarks")]
    assert unseen["own"].abs().mean() < 0.09 < 0.15 < unseen["kept"].abs().mean()


@pytest.mark.parametrize("folder", ["yz8", "netsres117", "h100"])
def test_idle_watts_fall_with_the_clock_as_measured(folder):
    device = {"yz8": "A100-PCIE-40GB", "netsres117": "A100-SXM4-80GB", "h100": "H100 80GB HBM3"}[folder]
    assert published.idle_error(data(), folder, device) < (0.03 if folder == "h100" else 0.01)


def test_mixes_of_units_of_the_b300_come_out():
    mixes = list(published.mixes(data()))
    assert len(mixes) == 6
    for row, watts in mixes:
        assert watts == pytest.approx(row.power_w, rel=0.05), row.source


@pytest.mark.parametrize(
    ("device", "table", "assumed"),
    [
        ("NVIDIA A100-SXM4-40GB (0)", "a100", False),
        ("NVIDIA A100-PCIE-40GB", "a100", False),
        ("NVIDIA A100-SXM4-80GB", "a100", False),
        ("NVIDIA A100 80GB PCIe", "a100", True),
        ("ncu device 0 (CC 8.0)", "a100", True),
        ("NVIDIA GH200 480GB", "gh200", False),
        ("NVIDIA H100 80GB HBM3", "h200", True),
        ("NVIDIA H100 PCIe", "h200", True),
        ("NVIDIA H200", "h200", False),
        ("NVIDIA H20", "h200", True),
        ("NVIDIA H800 PCIe", "h200", True),
        ("NVIDIA B200", "b200", False),
        ("NVIDIA GB200", "b200", True),
        ("ncu device 1 (CC 9.0)", "h200", True),
        ("NVIDIA B300 SXM6 AC", "b300", False),
        ("A100-SXM-80GB", "a100", False),
        ("NVIDIA A100-SXM-64GB", "a100", True),
        ("NVIDIA A800-SXM4-80GB", "a100", True),
        ("NVIDIA H100", "h200", True),
        ("NVIDIA H100 NVL", "h200", True),
        ("NVIDIA H200 NVL", "h200", True),
        ("NVIDIA GH200 144G HBM3e", "gh200", True),
        ("NVIDIA GB300", "b300", True),
        ("AMD Instinct MI250X", "mi250x", False),
        ("AMD Instinct MI300A", "mi300a", False),
    ],
)
def test_gpus_are_priced_by_their_names_and_stand_ins_are_assumed(device, table, assumed):
    found = costs.for_device(device)
    assert found.name == table
    assert found.is_for(device) != assumed
    assert bool(found.assumption) == assumed
    assert found.replicas()


@pytest.mark.parametrize(("device", "sp", "dram"), [("H100 PCIe", 51200, 2039), ("H100 NVL", 60000, 3900)])
def test_boards_have_the_peaks_of_their_own_data_sheet(device, sp, dram):
    peaks = costs.for_device(device).at().peaks
    assert (peaks.sp_gflops, peaks.dram_gb_per_s) == pytest.approx((sp, dram), rel=0.01)


@pytest.mark.parametrize(
    ("capability", "told_mhz", "at_mhz", "gpu"),
    [
        ("9.0", 3200, 3201, "H200 SXM"),
        ("9.0", 2610, 2619, "H100 SXM"),
        ("9.0", 1590, 1593, "H100 PCIe"),
        ("9.0", None, 2619, "H100 SXM"),
        ("8.0", 1590, 1593, "A100-SXM4-80GB"),
        ("8.0", 1215, 1215, "A100, which board"),
    ],
)
def test_the_clock_of_its_memory_tells_a_board_that_the_log_does_not_name(capability, told_mhz, at_mhz, gpu):
    found = costs.for_device(f"ncu device 0 (CC {capability})", told_mhz)
    assert found.default.memory_mhz == at_mhz
    assert f"is taken for an {gpu}" in found.assumption


def test_a_slice_of_a_gpu_does_not_get_the_constant_power_of_the_whole():
    assert costs.for_device("NVIDIA A100-SXM4-40GB MIG 1g.5gb") is None


def test_a_tensor_instruction_of_the_a100_is_between_two_shapes():
    """m16n8k8 has 2048 flops for 32 threads, m16n8k16 has 4096."""
    table = costs.load("a100")
    prices, ranges = table.at().prices, table.intervals.prices_pj
    assert 64 < prices["tensor_instruction"].pj / prices["tensor_fp16_flop"].pj < 128
    low, high = ranges["tensor_fp16_flop"]
    assert ranges["tensor_instruction"] == pytest.approx((64 * low, 128 * high), rel=0.005)


def test_a_real_log_of_cutlass_on_an_a100_has_joules_of_tensor_work():
    """20480^3 multiply-adds a launch, whatever the shape of a matrix instruction: the kernels' names tell it."""
    log = DATA / "ncu" / "a100-pcie-cutlass-details-program-output.csv"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    document = eprof.load(log).energy().document()
    products = [kernel for kernel in document["kernels"] if "gemm" in kernel["name"].lower()]
    assert len(products) == 2
    for kernel in products:
        assert kernel["counts"]["tensor_fp16"]["value"] == kernel["launches"] * 20480**3 * 2
        assert kernel["counts"]["tensor_fp16"]["energy_j"] > 0.1 * kernel["energy_j"]["total"]


@pytest.mark.parametrize("device", ["NVIDIA A30", "NVIDIA GeForce RTX 4090", "ncu device 0 (CC 8.6)"])
def test_a_gpu_without_a_table_gets_none(device):
    assert costs.for_device(device) is None


def test_away_from_the_measured_clock_the_prices_of_the_a100_are_estimates():
    table = costs.load("a100")
    assert not table.at("1410/1215").prices["l2_byte"].marks
    for setting in ("1005/1215", "1250/1215"):
        costs_there = table.at(setting)
        assert costs_there.prices["l2_byte"].marks & Mark.ESTIMATED
        assert costs_there.constant_marks & Mark.ESTIMATED
        assert costs_there.constant_power_w < table.at().constant_power_w


def test_the_guide_has_the_prices_of_the_tables():
    guide = prices.GUIDE.read_text()
    assert prices.BEGIN + prices.markdown() + prices.END in guide, "run python docs/studies/power/prices.py --rewrite"


@pytest.mark.parametrize(
    ("log", "table", "capability"),
    [
        ("ncu-modern/a100-sxm4-silu.ncu-rep", "a100", None),
        ("ncu-modern/h100-pcie-rmsnorm.ncu-rep", "h200", None),
        ("ncu-modern/h100-sxm-text-cublas-tf32.txt", "h200", None),
        ("ncu/cc80-details-page-rules-estimated-speedup.csv", "a100", None),
        ("ncu/a100-details-kernel-time-program-output.csv", "a100", "8.0"),
    ],
)
def test_a_real_log_has_joules_by_default_with_basis_and_an_interval_where_nothing_is_missing(log, table, capability):
    path = data() / log
    document = eprof.load(path, capability=capability).energy().document()
    assert document["costs"]["name"] == table and document["costs"]["basis"] == "published"
    total_j = document["energy_j"]["total"]
    assert total_j > 0
    if "missing" in document["energy_marks"]["total"]:
        return
    low_j, high_j = document["interval_j"]["total"]
    assert document["interval_j"]["share"] == 1
    assert low_j < total_j < high_j
