"""Cost tables: the published numbers come back, settings are found or computed, reasons are told."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from eprof import costs
from eprof.base.errors import CostError, DefinitionError
from eprof.base.vocabulary import (
    BYTES,
    COMPUTATION_WORDS,
    COUNTS,
    CPU,
    LEVEL_PARTS,
    NONE,
    OF_CPUS,
    OF_GPUS,
    PARTS,
    TENSOR_PARTS,
    Mark,
)
from eprof.costs import file as costfile
from eprof.counts.definition_files import capability_of
from eprof.profile.rooflines import machine

ROOT = Path(__file__).parents[2]
INCLUSIVE = ["b300", "fermi-keckler", "gtx-titan", "gtx580", "gtx680", "i7-950", "jetson-tk1"]
FITTED = ["gtx1080ti", "gtx980", "v100"]
TABLES = sorted(path.stem for path in (ROOT / "costs").glob("*.toml"))

# [FMM] Table I as printed: core MHz, mV, memory MHz, mV; pJ of SP, DP, Int, SM, L2, Mem; W.
TABLE_I = """
852 1030 924 1010 29.0 139.1 60.0 35.4 90.2 377.0 6.8
396  770 924 1010 16.2  77.7 33.5 19.8 50.4 377.0 6.1
852 1030 528  880 29.0 139.1 60.0 35.4 90.2 286.2 6.3
648  890 528  880 21.7 103.8 44.8 26.4 67.3 286.2 5.9
396  770 528  880 16.2  77.7 33.5 19.8 50.4 286.2 5.6
852 1030 204  800 29.0 139.1 60.0 35.4 90.2 236.5 6.0
648  890 204  800 21.7 103.8 44.8 26.4 67.3 236.5 5.6
396  770 204  800 16.2  77.7 33.5 19.8 50.4 236.5 5.2
756  950 924 1010 24.7 118.3 51.0 30.1 76.7 377.0 6.6
180  760 528  880 15.8  75.7 32.7 19.3 49.1 286.2 5.5
540  840 528  880 19.3  92.5 39.9 23.5 59.9 286.2 5.8
540  840 204  800 19.3  92.5 39.9 23.5 59.9 236.5 5.4
756  950 204  800 24.7 118.3 51.0 30.1 76.7 236.5 5.8
 72  760  68  800 15.8  75.7 32.7 19.3 49.1 236.5 5.2
756  950  68  800 24.7 118.3 51.0 30.1 76.7 236.5 5.8
180  760 924 1010 15.8  75.7 32.7 19.3 49.1 377.0 6.0
"""
ROWS = [[float(cell) for cell in line.split()] for line in TABLE_I.strip().splitlines()]
COLUMNS = ["sp_flop", "dp_flop", "int_instruction", "shared_byte", "l2_byte", "dram_byte"]
LABELS = [f"{row[0]:g}/{row[2]:g}" for row in ROWS]


def tk1(setting=None):
    return costs.load("jetson-tk1").at(setting)


@pytest.mark.parametrize(("label", "row"), list(zip(LABELS, ROWS, strict=True)), ids=LABELS)
def test_a_row_of_table_i_comes_back(label, row):
    at = tk1(label)
    assert [at.setting.core_v, at.setting.memory_v] == [row[1] / 1e3, row[3] / 1e3]
    printed = dict(zip(COLUMNS, row[4:10], strict=True))
    found = {name: round(at.prices[name].pj, 1) for name in COLUMNS}
    if row[1] == 840:  # no constant gives both this cell and 90.2 pJ at 1030 mV
        assert found.pop("l2_byte") == 60.0
        assert printed.pop("l2_byte") == 59.9
    assert found == printed
    assert round(at.constant_power_w, 1) == row[10]
    assert not any(price.marks for price in at.prices.values()) and not at.constant_marks


def test_the_table_lists_the_sixteen_settings_of_table_i_and_no_other():
    table = costs.load("jetson-tk1")
    assert [one.label for one in table.settings] == LABELS
    assert table.default.label == "852/924"


def test_constants_give_the_table_by_the_models_equations():
    given = tomllib.loads((ROOT / "costs" / "jetson-tk1.toml").read_text())
    core, memory, power = given["pj_per_v2"]["core"], given["pj_per_v2"]["memory"], given["constant_power"]
    at = tk1("648/204")
    assert at.prices["dp_flop"].pj == core["dp_flop"] * 0.89**2
    assert at.prices["dram_byte"].pj == memory["dram_byte"] * 0.8**2
    assert at.constant_power_w == pytest.approx(
        power["core_w_per_v"] * 0.89 + power["memory_w_per_v"] * 0.8 + power["w"], rel=1e-15
    )


def test_every_table_is_listed():
    assert costs.tables() == TABLES and {*INCLUSIVE, *FITTED} <= set(TABLES)


def test_the_guide_has_a_row_for_every_table():
    """docs/costs.md lists the tables that come with eprof, and none else, a row each."""
    guide = (ROOT / "docs" / "costs.md").read_text()
    section = guide.partition("## The tables that come with eprof\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `([a-z0-9.-]+)` \|", section, re.MULTILINE)) == TABLES


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_right_and_says_something_of_every_word(name):
    assert costs.check(str(ROOT / "costs" / f"{name}.toml")) == []
    table = costs.load(name)
    assert table.name == name
    at = table.at()
    foreign = OF_GPUS if table.processor == CPU and table.fit.data else OF_CPUS
    assert set(at.charges) | set(at.unpriced) >= set(COUNTS) - {*TENSOR_PARTS["tensor"], *foreign}
    assert not set(at.charges) & set(at.unpriced)
    assert all(charge.why for charge in at.charges.values())
    assert at.books == "served" or name not in INCLUSIVE
    assert at.source and table.year and at.peaks.why and at.constant_why
    assert len(at.charges["dram_read"].why) < 120
    assert all(capability_of(device) for device in table.devices if not device.startswith("AMD "))


@pytest.mark.parametrize("name", TABLES)
def test_a_class_total_is_priced_like_its_parts(name):
    charges = costs.load(name).at().charges
    for total, parts in PARTS.items():
        paying = [charges[part].pj for part in parts if part in charges and charges[part].pays]
        if total in charges and (charges[total].pays or paying):
            # An instruction of tensor cores does many flops.
            assert total in TENSOR_PARTS or min(paying) <= charges[total].pj <= max(paying)
            same = total in LEVEL_PARTS and len(set(paying)) == 1
            # Counters that tell no kinds count operations, and so they were fitted.
            same |= charges[total].formula == f"{total}_flop"
            assert same or charges[total].marks & (Mark.ASSUMED | Mark.ESTIMATED)
        else:
            assert not paying or total in TENSOR_PARTS


@pytest.mark.parametrize("name", INCLUSIVE)
def test_inclusive_costs_grow_with_the_distance_from_the_core(name):
    charges = costs.load(name).at().charges
    levels = [charges[f"{level}_read"].pj for level in ("l1", "l2", "dram") if f"{level}_read" in charges]
    assert levels == sorted(levels)


def test_no_two_tables_are_for_the_same_device():
    devices = [device.lower() for name in TABLES for device in costs.load(name).devices]
    assert len(devices) == len(set(devices))


@pytest.mark.parametrize(
    ("logged", "name"),
    [
        ("GK20A (0)", "jetson-tk1"),
        ("GeForce GTX 680", "gtx680"),
        ("NVIDIA GeForce GTX 580 (1)", "gtx580"),
        ("geforce  gtx 580", "gtx580"),
        ("GeForce GTX 680M", None),
        ("Quadro GP100 (0)", "p100"),
        ("Tesla K20c (0)", None),
        ("", None),
    ],
)
def test_a_logs_device_finds_its_table(logged, name):
    found = costs.for_device(logged)
    assert (found.name if found else None) == name


def test_another_board_with_the_same_chip_is_assumed_to_cost_the_same():
    own, other = costs.load("p100"), costs.for_device("Quadro GP100")
    assert other.at().charges["fp64_fma"].pj == own.at().charges["fp64_fma"].pj
    assert "same chip" in other.assumption and not own.assumption


# The other platforms of [T] tables 2 to 5: sp, dp (pJ/flop), DRAM, L1 or shared, L2 (pJ/B), W, peaks (Gflop/s, GB/s)
PLATFORMS = {
    "gtx580": (99.7, 212, 513, 149, 257, 122, 1581.06, 197.63, 192.4),
    "gtx680": (43.2, 262.9, 437.5, 51, 195, 66.37, 3532.8, 147.2, 192.2),
    "i7-950": (371, 670, 795, None, None, 122, 106.56, 53.28, 25.6),
    "fermi-keckler": (None, 25, 360, None, None, 0, None, 515, 144),
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_the_thesis_tables_come_back(name):
    at = costs.load(name).at()
    near = at.prices.get("l1_byte") or at.prices.get("shared_byte")
    prices = [at.prices.get("sp_flop"), at.prices["dp_flop"], at.prices["dram_byte"], near, at.prices.get("l2_byte")]
    found = [price.pj if price else None for price in prices]
    peaks = [at.peaks.sp_gflops, at.peaks.dp_gflops, at.peaks.dram_gb_per_s]
    assert (*found, at.constant_power_w, *peaks) == PLATFORMS[name]


def test_what_the_thesis_prints_of_the_titan_comes_back():
    """[T] 4.4.3, 4.4.4, 5.2.3.1: a byte, and four results that its table 6, which is lost, would give."""
    table = costs.load("gtx-titan")
    at = table.at()
    usable_w, streamed_pj = 160.0, 515.0
    assert at.prices["dram_byte"].pj == 267
    assert (at.constant_power_w + usable_w) / 2 == at.constant_power_w + usable_w / 8 == 140
    titan = machine(at, "fp32")
    assert titan.energy_balance == pytest.approx(8, abs=0.05) and titan.time_balance == pytest.approx(16.3, abs=0.05)
    # pi0 tau_mem tells the bandwidth that was reached; at that, an eighth of the power leaves 0.31 of the speed.
    reached = replace(titan, dram_byte_per_s=at.constant_power_w / (streamed_pj * 1e-12))
    throttled = replace(reached, usable_power_w=usable_w / 8)
    assert float(throttled.roofline(0.25) / reached.roofline(0.25)) == pytest.approx(0.31, abs=0.005)
    low, high = table.intervals.prices_pj["sp_flop"]
    assert (low, high) == pytest.approx((267 / 8.5, 267 / 7.5), abs=0.05)
    assert at.charges["fp32_fma"].marks & Mark.ESTIMATED and at.constant_marks & Mark.ESTIMATED
    assert costs.for_device("GeForce GTX TITAN") is None


def balances(at, kind):
    """Time and energy balance, flop/B: B_tau = tau_mem/tau_flop, B_eps = eps_mem/eps_flop (docs/model.md)."""
    gflops = at.peaks.dp_gflops if kind == "dp" else at.peaks.sp_gflops
    return gflops / at.peaks.dram_gb_per_s, at.prices["dram_byte"].pj / at.prices[f"{kind}_flop"].pj


def test_balances_of_the_thesis():
    time, energy = balances(costs.load("fermi-keckler").at(), "dp")
    assert (round(time, 1), energy) == (3.6, 14.4)
    time, energy = balances(costs.load("gtx580").at(), "dp")
    assert (round(time, 1), round(energy, 1)) == (1.0, 2.4)
    time, energy = balances(costs.load("gtx580").at(), "sp")
    assert (round(time, 1), round(energy, 1)) == (8.2, 5.1)
    time, energy = balances(costs.load("i7-950").at(), "dp")
    assert (round(time, 1), round(energy, 1)) == (2.1, 1.2)
    time, energy = balances(costs.load("i7-950").at(), "sp")
    assert (round(time, 1), round(energy, 1)) == (4.2, 2.1)


def test_integers_take_24_percent_of_computation_as_the_seed_found():
    charges = tk1().charges
    integers, doubles = 0.60 * charges["integer"].pj, 0.40 * charges["fp64_fma"].pj
    assert integers / (integers + doubles) == pytest.approx(0.24, abs=0.005)  # [FMM] IV-C: about 23 %
    one_flop = 0.40 * tk1().prices["dp_flop"].pj
    assert integers / (integers + one_flop) == pytest.approx(0.39, abs=0.005)


def test_data_energy_splits_as_the_seed_found():
    charges = tk1().charges
    share = {"dram_read": 0.13, "l2_read": 0.38, "l1_read": 0.455}
    joules = {word: part * charges[word].pj for word, part in share.items()}
    found = {word: one / sum(joules.values()) for word, one in joules.items()}
    assert found["dram_read"] == pytest.approx(0.50, abs=0.01)  # "up to 50 %"
    assert found["l2_read"] == pytest.approx(0.35, abs=0.01)  # "30-40 %"
    assert found["l1_read"] == pytest.approx(0.15, abs=0.02)  # "10-20 %"


def test_a_listed_setting_is_exact():
    at = tk1(" 540/528 MHz ")
    assert at.setting_from == "asked for; the table lists it"
    assert at.setting == costs.Setting(540, 0.84, 528, 0.88)
    assert at.marks == Mark.ASSUMED


def test_an_unlisted_pair_of_listed_clocks_is_computed_and_not_estimated():
    at = tk1("72/924")
    assert at.setting == costs.Setting(72, 0.76, 924, 1.01)
    assert "not list the pair" in at.setting_from
    assert not at.marks & Mark.ESTIMATED
    assert at.prices["dram_byte"] == tk1("852/924").prices["dram_byte"]
    assert at.prices["dp_flop"] == tk1("180/528").prices["dp_flop"]


def test_a_clock_between_listed_ones_is_interpolated_and_marked_where_it_matters():
    at = tk1("612/528")  # S5 of [FMM] table IV
    assert at.setting.core_v == pytest.approx(0.840 + (0.890 - 0.840) * 72 / 108)
    assert "core voltage interpolated between 540 and 648 MHz" in at.setting_from
    assert "memory" not in at.setting_from
    assert at.charges["fp64_fma"].marks == Mark.ESTIMATED
    assert at.charges["l1_read"].marks == Mark.ESTIMATED | Mark.ASSUMED
    assert at.charges["dram_read"].marks == NONE
    assert at.charges["control"].marks == NONE
    assert at.constant_marks == Mark.ESTIMATED
    memory = tk1("852/792")  # S4
    assert memory.charges["fp64_fma"].marks == NONE
    assert memory.charges["dram_read"].marks == Mark.ESTIMATED
    assert memory.constant_marks == Mark.ESTIMATED
    assert memory.setting.memory_v == pytest.approx(0.880 + 0.130 * 264 / 396)


@pytest.mark.parametrize("setting", ["900/924", "852/60", "71/68", "852/1000"])
def test_a_setting_out_of_range_lists_what_there_is(setting):
    with pytest.raises(CostError, match=re.escape(f"jetson-tk1 has no setting {setting}")) as caught:
        tk1(setting)
    assert "core 72 to 852 MHz and memory 68 to 924 MHz" in str(caught.value)
    assert all(label in str(caught.value) for label in LABELS)


@pytest.mark.parametrize("setting", ["852", "", "852/", "fast", "852/924/1", "-852/924", "nan/924", "1e3/924"])
def test_a_setting_that_is_none_is_refused(setting):
    with pytest.raises(CostError, match="is not a setting; write core and memory clock in MHz, such as 852/924"):
        tk1(setting)


def test_a_table_with_one_setting_refuses_others():
    with pytest.raises(CostError, match="gtx680 holds at one setting only"):
        costs.load("gtx680").at("1006/1502")
    assert costs.load("gtx680").at().setting.label == "fixed"


def test_peaks_grow_with_the_clock_of_their_domain():
    fast, slow = tk1().peaks, tk1("426/462").peaks
    assert (fast.sp_gflops, fast.dp_gflops, fast.dram_gb_per_s) == pytest.approx((327.168, 13.632, 14.784))
    assert fast.sp_gflops / fast.dp_gflops == 24  # [FMM] II-B
    assert slow.sp_gflops == pytest.approx(fast.sp_gflops / 2)
    assert slow.dram_gb_per_s == pytest.approx(fast.dram_gb_per_s / 2)


def test_an_unknown_name_lists_the_known_ones_and_the_close_one():
    with pytest.raises(CostError, match=r"no cost table `jetson_tk1`. Did you mean `jetson-tk1`\?") as caught:
        costs.load("jetson_tk1")
    assert all(name in str(caught.value) for name in TABLES)
    with pytest.raises(CostError, match=f"There are {TABLES[0]}, {TABLES[1]}"):
        costs.load("zzz")
    with pytest.raises(CostError, match='One of another GPU makes `eprof costs --estimate "MI250" --tdp-w WATTS'):
        costs.load("MI250")
    assert costs.load("MI100").device == "AMD Instinct MI100", "whose data sheet is at hand"


def test_a_file_is_loaded_by_its_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text((ROOT / "costs" / "gtx680.toml").read_text())
    assert costs.load(str(path)).path == str(path)
    with pytest.raises(DefinitionError, match=r"other.toml: cannot be read \(No such file"):
        costs.load(str(tmp_path / "other.toml"))


@pytest.mark.parametrize("name", TABLES)
def test_explain_is_plain_data_that_says_it_all(name):
    told = costs.load(name).explain()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert [row["word"] for row in told["charges"]] == list(COUNTS)
    at = costs.load(name).at()
    assert (told["constant"]["power_w"], told["constant"]["why"]) == (at.constant_power_w, at.constant_why)
    for row in told["charges"]:
        assert row["why"] and row["unit"] == COUNTS[row["word"]].unit
        charge = at.charges.get(row["word"])
        assert row["pj"] == (charge.pj if charge else None)
        assert row["status"] == ("unpriced" if charge is None else "pays" if charge.pays else "nothing")
        assert ("missing" in row["marks"]) == (charge is None)
    assert told["constant"]["power_w"] == at.constant_power_w


OF_TWO_PRICES = """\
schema = 1
name = "mine"
device = "My GPU"
source = "measured"
books = "accessed"
[[setting]]
core_mhz = 500
core_mv = 800
memory_mhz = 900
memory_mv = 1000
[[setting]]
core_mhz = 1000
core_mv = 1000
memory_mhz = 900
memory_mv = 1000
default = true
[[setting]]
core_mhz = 1000
core_mv = 1000
memory_mhz = 600
memory_mv = 900
[pj_per_v2]
core = { l2_byte = 30.0 }
memory = { dram_byte = 100.0 }
[constant_power]
core_w_per_v = 10.0
w = 5.0
[charge]
l2_read = { formula = "l2_byte" }
dram_read = { formula = "l2_byte + dram_byte" }
dram_write = { formula = "dram_byte + l2_byte", mark = "assumed", why = "as reads" }
[fit]
rows = 10
[fit.replicas]
l2_byte = [20.0, 40.0]
w = [4.0, 7.0]
core_w_per_v = [10.0, 20.0]
"""


@pytest.fixture
def of_two_prices(tmp_path):
    (tmp_path / "mine.toml").write_text(OF_TWO_PRICES)
    return costs.load(str(tmp_path / "mine.toml"))


def test_a_charge_of_several_prices_has_the_marks_of_each(of_two_prices):
    """Between listed clocks a voltage is interpolated: one of the two prices rests on each of them."""
    for setting in ("750/900", "1000/750"):
        charges = of_two_prices.at(setting).charges
        assert charges["dram_read"].marks == Mark.ESTIMATED
        assert charges["dram_write"].marks == Mark.ESTIMATED | Mark.ASSUMED
    assert of_two_prices.at().charges["dram_write"].marks == Mark.ASSUMED


def test_replicas_of_a_fit_have_their_own_constant_power(of_two_prices):
    """Where the table has 15 W, the replicas have 14 and 27; at 0.8 V 12 and 23. What has no replicas stays."""
    one, other = of_two_prices.replicas()
    assert [at.constant_power_w for at in (one, other)] == pytest.approx([14, 27])
    assert [at.constant_power_w for at in of_two_prices.replicas("500/900")] == pytest.approx([12, 23])
    assert [at.prices["l2_byte"].pj for at in (one, other)] == pytest.approx([20, 40])
    assert [at.prices["dram_byte"].pj for at in (one, other)] == pytest.approx([100, 100])


def test_the_power_limit_of_the_gtx_580_is_that_of_the_thesis():
    """[T] table 3 and figure 6: 244 W, which single precision would exceed."""
    assert costs.load("gtx580").at().peaks.power_limit_w == 244
    assert costs.load("gtx580").explain()["peaks"]["power_limit_w"] == 244
    assert costs.load("jetson-tk1").at().peaks.power_limit_w is None


def test_a_power_limit_holds_at_every_setting(tmp_path):
    (tmp_path / "mine.toml").write_text(OF_TWO_PRICES.replace("[charge]", "[peak]\npower_limit_w = 50.0\n[charge]"))
    table = costs.load(str(tmp_path / "mine.toml"))
    assert table.at().peaks.power_limit_w == table.at("500/900").peaks.power_limit_w == 50


def test_explain_puts_the_numbers_in():
    told = costs.load("jetson-tk1").explain("612/792")
    row = next(row for row in told["charges"] if row["word"] == "fp64_fma")
    assert row["formula"] == "2 * dp_flop"
    assert row["numbers"] == "2 * 99.982"
    assert row["marks"] == ["estimated"]
    price = next(price for price in told["prices"] if price["name"] == "dp_flop")
    assert price["formula"] == "131.088 * 0.87333^2"
    assert told["constant"]["formula"] == "2.806 * 0.87333 + 3.858 * 0.96667 + 0"
    assert [one["label"] for one in told["settings"] if one["default"]] == ["852/924"]
    assert told["setting"]["label"] == "612/792"


def test_costs_load_without_pandas():
    code = "import sys; from eprof import costs; costs.load('jetson-tk1').at(); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_words_are_charged_in_their_own_unit():
    for name in TABLES:
        for word, charge in costs.load(name).at().charges.items():
            if charge.pays:
                assert ("byte" in charge.formula) == (word in BYTES)
                assert (word in COMPUTATION_WORDS) != (word in BYTES)


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), flags=re.DOTALL)


def test_the_worked_example_of_the_guide_is_a_right_table(tmp_path):
    examples = [text for text in blocks(ROOT / "docs" / "costs.md", "toml") if "schema = 1" in text]
    assert examples
    for number, text in enumerate(examples):
        path = tmp_path / f"example{number}.toml"
        path.write_text(text)
        assert costs.check(str(path)) == []
        at = costs.load(str(path)).at()
        assert at.charges["dram_read"].pays and at.constant_power_w > 0


def test_the_guide_lists_every_table_and_every_key():
    text = (ROOT / "docs" / "costs.md").read_text()
    for name in TABLES:
        assert f"`{name}`" in text
    for key in (
        *costfile._KEYS,
        *costfile.PEAK_TERMS,
        *costfile._CONSTANT_TERMS,
        *costfile._STATEMENT_KINDS,
        *costfile._MARKS,
    ):
        assert f"`{key}`" in text, key


@pytest.mark.parametrize("name", costs.tables())
def test_a_device_that_a_table_lists_finds_a_table_however_it_is_spelled(name):
    table = costs.load(name)
    for device in (*table.devices, *(device for board in table.boards for device in board.devices)):
        for spelled in (device, f"NVIDIA {device} (0)", device.upper().replace(" ", "  ")):
            found = costs.for_device(spelled)
            assert found is not None and found.serves(spelled)


def test_a_table_needs_no_memory_voltage_where_nothing_goes_with_it(tmp_path):
    words = ("fp32", "fp32_fma", "fp32_add", "fp32_mul", "fp32_other")
    charges = "\n".join(f'{word} = {{ formula = "fp32_instruction", why = "w" }}' for word in words)
    path = tmp_path / "own.toml"
    path.write_text(
        f"""
schema = 1
name = "own"
device = "Own"
source = "s"
basis = "measured"
books = "served"
setting = [
    {{ core_mhz = 1000, core_mv = 900, memory_mhz = 800, default = true }},
    {{ core_mhz = 500, core_mv = 700, memory_mhz = 800 }},
]
[pj_per_v2.core]
fp32_instruction = 10
[constant_power]
w = 3
[charge]
{charges}
"""
    )
    table = costs.load(str(path))
    assert table.at("750/800").prices["fp32_instruction"].pj == pytest.approx(10 * 0.8**2)
    assert table.nearest(752, 790) == "752/800"
    with pytest.raises(CostError, match="its voltages are known for core 500 to 1000 MHz"):
        table.at("750/900")


@pytest.mark.parametrize(("cores", "mhz", "dram"), [(1, None, 40), (1, 1000, 20), (52, None, 307.2), (52, 200, 208)])
def test_peaks_as_run_are_those_of_the_cores_at_their_clock_and_of_dram_no_more_than_comes_to_them(cores, mhz, dram):
    """A core of a Xeon 8470: 64 and 32 flops and 20 bytes of DRAM a cycle, at 2 GHz if no log tells; a socket 307."""
    priced = replace(costs.load("sapphirerapids").in_sockets(cores / 52).at(), cores_mhz=mhz)
    peaks, cycles = priced.peaks_as_run, cores * (mhz or 2000) / 1e3
    assert (peaks.sp_gflops, peaks.dp_gflops) == pytest.approx((64 * cycles, 32 * cycles))
    assert peaks.dram_gb_per_s == pytest.approx(dram)
    assert peaks.power_limit_w == priced.peaks.power_limit_w
