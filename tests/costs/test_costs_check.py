"""Mistakes in a cost table: each is reported in a sentence with file and line."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof import costs
from eprof.base.errors import DefinitionError, EprofError
from eprof.base.toml import Document, line_of
from eprof.costs import file as costfile

ROOT = Path(__file__).parents[2]

RIGHT = """\
schema = 1
name = "small"
device = "A small GPU"
devices = ["Small"]
source = "measured by us"
year = 2026
books = "served"
notes = ["handle with care"]

setting = [
    { core_mhz = 1000, core_mv = 1000, memory_mhz = 500, memory_mv = 900, default = true },
    { core_mhz = 500, core_mv = 800, memory_mhz = 500, memory_mv = 900 },
]

[pj_per_v2]
core = { dp_flop = 10.0, sp_flop = 5.0 }
memory = { dram_byte = 100.0 }

[constant_power]
core_w_per_v = 1.0
memory_w_per_v = 2.0
w = 3.0
why = "fitted"

[peak]
dp_flop_per_core_cycle = 2
dram_byte_per_memory_cycle = 16
why = "data sheet"

[charge]
fp64_fma = { formula = "2 * dp_flop", why = "an FMA is two" }
fp64 = { formula = "2 * dp_flop", why = "kinds not told apart", mark = "assumed" }
fp32_add = { formula = "sp_flop + sp_flop / 2" }
fp32 = { unpriced = "only adds were measured" }
control = { nothing = "contained in the others" }
dram_read = { formula = "dram_byte" }
"""
ONE_SETTING = """\
schema = 1
name = "one"
device = "One"
source = "measured"
books = "accessed"
[pj]
dram_byte = 100.0
[constant_power]
w = 3
[charge]
dram_read = { formula = "dram_byte" }
"""


def checked(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path, costs.check(str(path))


def test_the_right_ones_are_right(tmp_path):
    for text in (RIGHT, ONE_SETTING):
        path, wrong = checked(tmp_path, text)
        assert wrong == []
        costs.load(str(path)).explain()


def test_a_table_with_one_setting_may_know_its_clocks(tmp_path):
    text = ONE_SETTING.replace("[pj]", "setting = [{ core_mhz = 1410, memory_mhz = 1215 }]\n[pj]")
    path, wrong = checked(tmp_path, text)
    assert wrong == []
    assert costs.load(str(path)).at("1410/1215").setting.label == "1410/1215"
    with pytest.raises(EprofError, match="holds at one setting only"):
        costs.load(str(path)).at("1410/1200")


def test_settings_may_be_tables_of_their_own(tmp_path):
    text = RIGHT.replace(RIGHT[RIGHT.index("setting = [") : RIGHT.index("[pj_per_v2]")], "")
    tables = "".join(
        f"[[setting]]\ncore_mhz = {mhz}\ncore_mv = {mv}\nmemory_mhz = 500\nmemory_mv = 900\ndefault = {default}\n"
        for mhz, mv, default in ((1000, 1000, "true"), (500, 80, "false"))
    )
    _, wrong = checked(tmp_path, text + tables)
    number = (text + tables).splitlines().index("core_mv = 80") + 1
    assert wrong == [f"{tmp_path}/mine.toml:{number}: `core_mv` is in millivolts: 80 is not between 200 and 3000."]


# (what to replace, by what, the line that is pointed at, what is said)
MISTAKES = {
    "no TOML": ('name = "small"', 'name = "small', 2, "not valid TOML"),
    "a key twice": ("w = 3.0", "w = 3.0\nw = 4.0", 23, "not valid TOML"),
    "schema": ("schema = 1", "schema = 2", 1, "`schema` must be 1, the form that this eprof reads, not 2."),
    "no schema": ("schema = 1\n", "", 1, "`schema` must be 1, the form that this eprof reads, not None."),
    "schema true": ("schema = 1", "schema = true", 1, "`schema` must be 1"),
    "unknown key": ("year = 2026", "yaer = 2026", 6, "unknown key `yaer`; use one of: basis, board,"),
    "unknown unit": (
        "[pj_per_v2]",
        "[nj_per_v2]",
        15,
        "unknown unit `nj_per_v2`; prices stand in [pj] or [pj_per_v2].",
    ),
    "unknown unit J": ("[pj_per_v2]", "[J]", 15, "unknown unit `J`"),
    "no source": ('source = "measured by us"\n', "", 1, "`source` is missing; it must be a text."),
    "empty source": ('"measured by us"', '" "', 5, "`source` must be a text, not ' '."),
    "number as device": ('"A small GPU"', "3", 3, "`device` must be a text, not 3."),
    "no name": ('name = "small"\n', "", 1, "`name` is missing"),
    "bad name": ('"small"', '"My GPU"', 2, "`name` may have small letters, digits, `-` and `.`, not `My GPU`."),
    "devices": ('["Small"]', '"Small"', 4, "`devices` must be a list of texts, not 'Small'."),
    "a device": ('["Small"]', "[3]", 4, "`devices` must be a text, not 3."),
    "notes": ('["handle with care"]', "[[]]", 8, "`notes` must be a text, not []."),
    "year": ("year = 2026", 'year = "2026"', 6, "`year` must be a whole number, not '2026'."),
    "books": ('"served"', '"kept"', 7, "`books` is 'kept'; use one of: served, accessed."),
    "no books": ('books = "served"\n', "", 1, "`books` is missing; use one of: served, accessed."),
    "setting no list": ("[\n    {", "3\nx = [\n    {", 10, "`setting` must be a list of settings"),
    "no settings": ("setting = [", "setting = []\ny = [", 10, "`setting` must be a list of settings"),
    "setting no table": (
        "{ core_mhz = 500, core_mv = 800, memory_mhz = 500, memory_mv = 900 }",
        '"500/500"',
        10,
        "a setting must be",
    ),
    "unit of a setting": ("core_mv = 800", "core_v = 0.8", 12, "unknown key `core_v`; use one of: core_mhz, core_mv,"),
    "volts as millivolts": (
        "core_mv = 800",
        "core_mv = 0.8",
        12,
        "`core_mv` is in millivolts: 0.8 is not between 200 and 3000.",
    ),
    "no clock": ("core_mhz = 500, ", "", 12, "a setting needs `core_mhz`."),
    "clock of 0": ("core_mhz = 500", "core_mhz = 0", 12, "`core_mhz` must be more than 0."),
    "negative clock": ("core_mhz = 500", "core_mhz = -5", 12, "`core_mhz` must not be negative, but it is -5."),
    "text as clock": ("core_mhz = 500", 'core_mhz = "500"', 12, "`core_mhz` must be a number, not '500'."),
    "true as clock": ("core_mhz = 500", "core_mhz = true", 12, "`core_mhz` must be a number, not True."),
    "two defaults": (
        "memory_mv = 900 },",
        "memory_mv = 900, default = true },",
        12,
        "1000/500 and 500/500 are both the default",
    ),
    "no default": (", default = true", "", 10, "no setting is the default; write `default = true` in one of them."),
    "default 1": ("default = true", "default = 1", 11, "`default` must be true or false, not 1."),
    "same setting twice": (
        "core_mhz = 500, core_mv = 800",
        "core_mhz = 1000, core_mv = 1000",
        12,
        "setting 1000/500 is listed twice.",
    ),
    "two voltages": (
        "500, memory_mv = 900 }",
        "500, memory_mv = 950 }",
        12,
        "memory 500 MHz has 950 mV here but 900 mV above",
    ),
    "no voltage": ("core_mhz = 500, core_mv = 800", "core_mhz = 500", 12, "setting 500/500 needs `core_mv`"),
    "negative price": ("dp_flop = 10.0", "dp_flop = -10.0", 16, "`dp_flop` must not be negative, but it is -10."),
    "infinite price": ("dram_byte = 100.0", "dram_byte = inf", 17, "`dram_byte` must be finite, not inf."),
    "price not a number": ("dram_byte = 100.0", "dram_byte = nan", 17, "`dram_byte` must be finite, not nan."),
    "enormous price": ("dram_byte = 100.0", "dram_byte = 1" + "0" * 400, 17, "`dram_byte` must be finite, not inf."),
    "text as price": ("dram_byte = 100.0", 'dram_byte = "100 pJ"', 17, "`dram_byte` must be a number, not '100 pJ'."),
    "price of what": (
        "sp_flop = 5.0",
        "sp = 5.0",
        16,
        "`sp` does not say what it is the price of; end it with one of: _flop, _instruction, _cycle, _byte, _access.",
    ),
    "unknown domain": ("memory = { dram", "uncore = { dram", 17, "unknown key `uncore`; use one of: core, memory."),
    "domain no table": (
        "memory = { dram_byte = 100.0 }",
        "memory = 100.0",
        17,
        "`memory` must be a table of keys and values, not 100.0.",
    ),
    "price in both": (
        "{ dram_byte = 100.0 }",
        "{ dram_byte = 100.0, dp_flop = 1 }",
        17,
        "price `dp_flop` stands in both domains.",
    ),
    "both units": (
        "[constant_power]",
        "[pj]\nx_byte = 1\n[constant_power]",
        19,
        "prices stand either in [pj] or in [pj_per_v2]; both are here.",
    ),
    "one price, two settings": (
        "[pj_per_v2]\ncore = { dp_flop = 10.0, sp_flop = 5.0 }\nmemory = { dram_byte = 100.0 }",
        "[pj]\ndp_flop = 10\nsp_flop = 5\ndram_byte = 1",
        15,
        "prices in [pj] hold at one setting",
    ),
    "unused price": (
        "sp_flop = 5.0",
        "sp_flop = 5.0, l2_byte = 3.0",
        16,
        "no charge uses the price `l2_byte`; use it or take it out.",
    ),
    "no constant power": (
        '[constant_power]\ncore_w_per_v = 1.0\nmemory_w_per_v = 2.0\nw = 3.0\nwhy = "fitted"\n',
        "",
        1,
        "[constant_power] is missing",
    ),
    "unit of power": (
        "w = 3.0",
        "mw = 3000.0",
        22,
        "unknown key `mw`; use one of: core_w_per_mhz_v2, core_w_per_v, cores, mark, memory_w_per_mhz_v2, memory_w_per_v, per, "
        "w, why.",
    ),
    "negative power": ("w = 3.0", "w = -3.0", 22, "`w` must not be negative, but it is -3."),
    "no power": ("core_w_per_v = 1.0\nmemory_w_per_v = 2.0\nw = 3.0\n", "", 19, "[constant_power] gives no power"),
    "unit of a peak": ("dp_flop_per_core_cycle = 2", "dp_tflops = 2", 26, "unknown key `dp_tflops`"),
    "peak of 0": (
        "dp_flop_per_core_cycle = 2",
        "dp_flop_per_core_cycle = 0",
        26,
        "`dp_flop_per_core_cycle` must be more than 0.",
    ),
    "peak twice": (
        "dp_flop_per_core_cycle = 2",
        "dp_flop_per_core_cycle = 2\ndp_gflops = 2",
        26,
        "`dp_flop_per_core_cycle` says again what `dp_gflops` says",
    ),
    "peak of one setting": (
        "dp_flop_per_core_cycle = 2",
        "dp_gflops = 2",
        26,
        "`dp_gflops` holds at one setting; with several, give it a cycle.",
    ),
    "unknown word": (
        "fp64_fma = {",
        "fp64_fam = {",
        31,
        "`fp64_fam` is not a word of the vocabulary. Did you mean `fp64_fma`?",
    ),
    "no word at all": (
        "control = {",
        "zzzzzz = {",
        35,
        "`zzzzzz` is not a word of the vocabulary. Use one of: tensor,",
    ),
    "charge no table": (
        '{ nothing = "contained in the others" }',
        "0",
        35,
        "`control` must be a table of keys and values, not 0.",
    ),
    "neither": (
        '{ nothing = "contained in the others" }',
        '{ why = "?" }',
        35,
        "`control` needs exactly one of: formula, nothing, unpriced.",
    ),
    "both": (
        '{ nothing = "contained in the others" }',
        '{ nothing = "a", formula = "dp_flop" }',
        35,
        "`control` needs exactly one of",
    ),
    "no reason": (
        '{ nothing = "contained in the others" }',
        "{ nothing = true }",
        35,
        "`nothing` must be a text, not True.",
    ),
    "empty reason": ('"contained in the others"', '""', 35, "`nothing` must be a text, not ''."),
    "why of nothing": ('"contained in the others"', '"a", why = "b"', 35, "`why` goes with a formula"),
    "unknown key of a charge": ('why = "an FMA is two"', 'because = "an FMA is two"', 31, "unknown key `because`"),
    "unknown mark": (
        'mark = "assumed"',
        'mark = "missing"',
        32,
        "`mark` is 'missing'; use one of: assumed, estimated, simulated.",
    ),
    "list as mark": ('mark = "assumed"', "mark = []", 32, "`mark` is []; use one of"),
    "mark without why": (
        'formula = "dram_byte"',
        'formula = "dram_byte", mark = "assumed"',
        36,
        "what is marked assumed needs a `why`.",
    ),
    "unknown price": (
        '2 * dp_flop", why = "an',
        '2 * hp_flop", why = "an',
        31,
        "the formula uses `hp_flop`, which is not defined here; known: dp_flop, dram_byte, sp_flop.",
    ),
    "no formula": ('"dram_byte"', '"__import__(1)"', 36, "is not allowed in a formula"),
    "formula a number": (
        'formula = "dram_byte"',
        "formula = 3",
        36,
        "`formula` must be a formula, written as a text, not 3.",
    ),
    "only a number": ('"dram_byte"', '"3"', 36, "`3` must be a sum of prices, each times a number."),
    "a number added": (
        '"dram_byte"',
        '"dram_byte + 3"',
        36,
        "`dram_byte + 3` must be a sum of prices, each times a number.",
    ),
    "prices multiplied": ('"dram_byte"', '"dram_byte * dram_byte"', 36, "must be a sum of prices"),
    "division by 0": ('"dram_byte"', '"dram_byte / 0"', 36, "the formula divides by zero"),
    "flops for a byte": (
        '"dram_byte"',
        '"dp_flop"',
        36,
        "`dram_read` counts bytes, but `dp_flop` is not a price of one.",
    ),
    "bytes for an instruction": (
        "sp_flop + sp_flop / 2",
        "sp_flop + dram_byte",
        33,
        "`fp32_add` counts instructions, but `dram_byte` is not a price of one.",
    ),
    "negative charge": (
        "sp_flop + sp_flop / 2",
        "sp_flop - 2 * sp_flop",
        33,
        "`fp32_add` would pay -5 pJ at 1000/500.",
    ),
    "total not stated": (
        'fp32 = { unpriced = "only adds were measured" }\n',
        "",
        30,
        "the parts of `fp32` pay, so say what `fp32` pays",
    ),
    "total without parts": (
        'fp64_fma = { formula = "2 * dp_flop", why = "an FMA is two" }\n',
        "",
        31,
        "`fp64` pays but none of fp64_fma, fp64_add, fp64_mul, fp64_other does.",
    ),
    "total off its parts": (
        'fp64 = { formula = "2 * dp_flop"',
        'fp64 = { formula = "3 * dp_flop"',
        32,
        "`fp64` would pay 30 pJ, which is not between its parts' 20 and 20 pJ.",
    ),
    "no charges": (RIGHT[RIGHT.index("[charge]") :], "", 1, "[charge] is missing or empty"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_file_and_line(tmp_path, mistake):
    old, new, line, said = MISTAKES[mistake]
    assert old in RIGHT
    path, wrong = checked(tmp_path, RIGHT.replace(old, new, 1))
    assert wrong, "not noticed"
    assert any(said in one and one.startswith(f"{path}:{line}: ") for one in wrong), wrong
    with pytest.raises(DefinitionError) as caught:
        costs.load(str(path))
    assert str(caught.value) == wrong[0]
    assert all(one.endswith((".", "?")) for one in wrong)


def test_clocks_are_needed_for_peaks_a_cycle(tmp_path):
    _, wrong = checked(tmp_path, ONE_SETTING.replace("[pj]", "[peak]\nsp_flop_per_core_cycle = 2\n[pj]"))
    assert wrong == [f"{tmp_path}/mine.toml:7: `sp_flop_per_core_cycle` needs a clock; list the setting."]


def test_voltages_are_needed_for_watts_a_volt(tmp_path):
    _, wrong = checked(tmp_path, ONE_SETTING.replace("w = 3", "core_w_per_v = 3"))
    assert wrong == [f"{tmp_path}/mine.toml:1: setting fixed needs `core_mv`: there are prices or watts a volt."]


def test_all_mistakes_are_told_at_once(tmp_path):
    text = RIGHT.replace('"served"', '"kept"').replace("w = 3.0", "w = -3.0").replace("fp64_fma =", "fp64_fam =")
    _, wrong = checked(tmp_path, text.replace('"dram_byte"', '"dram"'))
    assert len(wrong) == 4
    assert [re.search(r":(\d+): ", one)[1] for one in wrong] == ["7", "22", "31", "36"]


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    assert "cannot be read" in costs.check(str(tmp_path / "no.toml"))[0]
    assert "cannot be read" in costs.check(str(tmp_path))[0]
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    assert "not UTF-8" in costs.check(str(tmp_path / "latin.toml"))[0]


def test_prices_that_could_not_be_read_do_not_hide_other_mistakes(tmp_path):
    text = RIGHT.replace("dp_flop = 10.0", "dp_flop = -1").replace("control =", "contrl =")
    _, wrong = checked(tmp_path, text)
    assert len(wrong) == 2


TK1 = (ROOT / "costs" / "jetson-tk1.toml").read_text()


@settings(max_examples=100)
@given(st.integers(0, len(TK1)))
def test_any_prefix_of_a_table_loads_or_tells(length):
    try:
        costfile.checked(Document.parse(TK1[:length], "x.toml"))
    except EprofError as err:
        assert str(err).startswith("x.toml")


@settings(max_examples=100)
@given(st.integers(0, len(RIGHT) - 1), st.sampled_from(list("0-{}[]\"'=.,# \nx")))
def test_any_wrong_letter_loads_or_tells(place, letter):
    try:
        costfile.checked(Document.parse(RIGHT[:place] + letter + RIGHT[place + 1 :], "x.toml"))
    except EprofError as err:
        assert str(err).startswith("x.toml")


def test_comments_are_not_mistaken_for_entries():
    text = "# name = 'no'\nname = 'yes'\n[charge]\n# special = none\nspecial = { nothing = 'x' }\n"
    assert line_of(text, "name") == 2
    assert line_of(text, "charge", "special", "nothing") == 5


UNITS = """\
[time_components]
number = 16
lanes = { fp32 = 32, load_store = 16 }
schedulers = 2
latency_cycles = 600
transaction_byte = 128
blocks = 8
warps = 48
registers = 32768
shared_byte = 49152
source = "a guide"
"""


def test_multiprocessors_that_are_right(tmp_path):
    path, wrong = checked(tmp_path, RIGHT.replace("[charge]", UNITS + "[charge]"))
    assert wrong == []
    assert costs.load(str(path)).explain()["time_components"]["lanes"] == {"fp32": 32, "load_store": 16}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("number = 16", "number = 0", "`number` must be more than 0"),
        ("number = 16\n", "", "`number` is missing"),
        ("warps = 48", 'warps = "48"', "`warps` must be a number"),
        ("fp32 = 32, ", "", "`lanes` must say how many units of one multiprocessor work on fp32"),
        ("fp32 = 32", "fp32 = -1", "`fp32` must not be negative"),
        ("fp32 = 32", "fp33 = 32", "unknown key `fp33`"),
        ("schedulers", "scheduler", "unknown key `scheduler`"),
        ('source = "a guide"', 'source = ""', "`source`"),
        ('source = "a guide"', 'source = "a guide"\nmark = "assumed"', "needs a `why`"),
        ('source = "a guide"', 'source = "a guide"\ncore_mhz = 1000', "say `core_mhz` here where the table lists no"),
        ("dram_byte_per_memory_cycle = 16\n", "", "time by component needs the peak of DRAM"),
    ],
)
def test_multiprocessors_that_are_wrong(tmp_path, old, new, said):
    text = RIGHT.replace("[charge]", UNITS + "[charge]")
    assert old in text
    path, wrong = checked(tmp_path, text.replace(old, new, 1))
    assert any(said in each and each.startswith(f"{path}:") for each in wrong), wrong
