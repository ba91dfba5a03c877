"""Basis, intervals, sources and boards of cost tables: what a table must say, and what its intervals make of energies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eprof import costs
from eprof.base.errors import DefinitionError
from eprof.base.vocabulary import Mark
from eprof.costs.parts import Intervals

TABLE = """
schema = 1
name = "mine"
device = "GPU X"
devices = ["X 40GB"]
source = "a paper"
basis = "published"
books = "accessed"
interval_is = "zero to random operands"
interval_constant_w = [40, 60]
setting = [{ core_mhz = 1000, core_v_rel = 1.0, memory_mhz = 900, memory_v_rel = 1.0, default = true },
    { core_mhz = 500, core_v_rel = 0.5, memory_mhz = 900, memory_v_rel = 1.0 }]

[pj_at_reference.core]
fp32_flop = 10.0

[pj_at_reference.memory]
dram_byte = 100.0

[interval_pj]
fp32_flop = [6, 11]
dram_byte = [50, 120]

[constant_power]
core_w_per_v = 40
w = 10

[sources]
fp32_flop = "table 3, read"
dram_byte = "table 3, read"
constant_power = "table 2, read"

[charge]
fp32_fma = { formula = "2 * fp32_flop", why = "two flops" }
fp32 = { formula = "2 * fp32_flop", why = "two flops" }
dram_read = { formula = "dram_byte", why = "table 3" }
dram_write = { formula = "dram_byte", why = "table 3" }

[[board]]
devices = ["X 80GB"]
constant_power = { core_w_per_v = 40, w = 30 }
memory_mhz = 1600
interval_constant_w = [60, 75]
why = "its idle power, measured"

[[board]]
devices = ["Y", "CC 9.9"]
mark = "assumed"
wider = { dram_byte = 2.0, constant_power = 1.5 }
why = "nobody measured a Y"
"""


def table(tmp_path, text=TABLE):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return costs.load(str(path))


def mistake(tmp_path, old, new):
    path = tmp_path / "mine.toml"
    assert old in TABLE
    path.write_text(TABLE.replace(old, new, 1))
    (only,) = costs.check(str(path))
    return only


def test_a_table_without_basis_says_so_and_one_with_a_fit_is_fitted(tmp_path):
    unstated = TABLE.replace('basis = "published"\n', "")
    assert table(tmp_path, unstated).at().basis is None
    fitted = unstated.replace("[interval_pj]\nfp32_flop = [6, 11]\ndram_byte = [50, 120]\n", "")
    fitted = fitted.replace("interval_constant_w = [40, 60]\n", "").replace(
        'interval_is = "zero to random operands"', ""
    )
    assert table(tmp_path, fitted + '\n[fit]\nform = "any"\n').at().basis == "fitted"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("dram_byte = [50, 120]\n", "", "no interval: dram_byte)"),
        ("interval_constant_w = [40, 60]\n", "", "no interval: constant_power)"),
        ('fp32_flop = "table 3, read"\n', "", "no source: fp32_flop)"),
        (
            "fp32_flop = [6, 11]",
            "fp32_flop = [6, 9]",
            "the interval of fp32_flop, 6 to 9 pJ, does not hold it: it is 10 pJ",
        ),
        ("fp32_flop = [6, 11]", "fp32_flop = [11, 6]", "two ascending numbers"),
        ("fp32_flop = [6, 11]", "fp32_flop = [-1, 11]", "must not be negative"),
        ("fp32_flop = [6, 11]", "fp32_flop = [6, 11, 12]", "two ascending numbers"),
        ("fp32_flop = [6, 11]", "fp32_flop = 6", "two ascending numbers"),
        (
            "interval_constant_w = [40, 60]",
            "interval_constant_w = [60, 70]",
            "interval of constant power, 60 to 70 W, does not hold it: it is 50 W",
        ),
        ("interval_constant_w = [60, 75]", "interval_constant_w = [80, 90]", "does not hold it: it is 70 W"),
        ('interval_is = "zero to random operands"', "", "`interval_is` is missing"),
        ('basis = "published"', 'basis = "guessed"', "use one of: measured, fitted, published, estimated"),
        ("fp32_flop = [6, 11]", "fp32_flop = [6, 11]\nl2_byte = [1, 2]", "`l2_byte` is not a price of this table"),
        ("wider = { dram_byte", "wider = { l2_byte", "`l2_byte` is not a price of this table"),
        ("dram_byte = 2.0", "dram_byte = 0.5", "a number from 1 to 100"),
        ('devices = ["Y", "CC 9.9"]\n', "", "a board needs `devices`"),
        ('mark = "assumed"', 'mark = "perhaps"', "use one of: assumed"),
    ],
)
def test_what_a_published_table_lacks_or_contradicts_is_one_sentence(tmp_path, old, new, said):
    assert said in mistake(tmp_path, old, new)


def test_boards_have_their_own_constant_power_and_assumed_ones_wider_intervals(tmp_path):
    own = table(tmp_path)
    assert own.on("NVIDIA X 40GB (0)") is own
    other = own.on("NVIDIA X 80GB")
    assert other.is_for("X 80GB") and not own.is_for("X 80GB") and own.serves("X 80GB")
    assert other.at().constant_power_w == 70 and other.intervals.constant_w == (60, 75)
    assert other.default.label == "1000/1600" and other.at("500/1600").setting.core_v == 0.5
    assumed = own.on("Y")
    assert not assumed.is_for("Y") and assumed.serves("Y") and not assumed.serves("X 80GB")
    assert assumed.on("Y").intervals == assumed.intervals
    assert assumed.intervals.prices_pj == {"fp32_flop": (6, 11), "dram_byte": (25, 240)}
    assert assumed.intervals.constant_w == pytest.approx((40 / 1.5, 90))
    assert assumed.assumption == "nobody measured a Y" and not own.assumption
    assert own.on("Z") is own and not own.serves("Z")
    assert own.serves("ncu device 3 (CC 9.9)") and not own.serves("ncu device 3 (CC 9.0)")


def test_a_board_may_run_at_more_clocks_than_the_table(tmp_path):
    more = "memory_mhz = 1600\nsetting = [{ core_mhz = 1200, core_v_rel = 1.2, memory_mhz = 900, memory_v_rel = 1.0 }]"
    own = table(tmp_path, TABLE.replace("memory_mhz = 1600", more))
    assert own.on("X 80GB").at("1200/1600").prices["fp32_flop"].pj == pytest.approx(10 * 1.2**2)
    assert [setting.core_mhz for setting in own.settings] == [1000, 500]
    assert "is listed twice" in mistake(tmp_path, "memory_mhz = 1600", more.replace("1200", "500"))
    unknown = more.replace("core_v_rel = 1.2, ", "")
    assert "needs `core_v_rel`" in mistake(tmp_path, "memory_mhz = 1600", unknown)


def test_a_board_may_run_at_fewer_clocks_than_the_table(tmp_path):
    own = table(tmp_path, TABLE.replace("memory_mhz = 1600", "core_mhz = 750\nmemory_mhz = 1600"))
    board = own.on("X 80GB")
    assert [setting.label for setting in board.settings] == ["750/1600", "500/1600"] and board.default.core_mhz == 750
    share = 0.75**2
    assert board.at().prices["fp32_flop"].pj == pytest.approx(10 * share)
    assert board.at().prices["dram_byte"].pj == 100 and own.default.core_mhz == 1000
    prices = [costs.prices["fp32_flop"].pj for costs in board.replicas()]
    assert (min(prices), max(prices)) == pytest.approx((6 * share, 11 * share))
    said = mistake(tmp_path, "memory_mhz = 1600", "core_mhz = 1600")
    assert "no setting tells the voltage at 1600 MHz" in said


def test_replicas_hold_the_table_itself_and_the_ends_of_every_interval(tmp_path):
    replicas = table(tmp_path).replicas("500/900")
    prices = [(costs.prices["fp32_flop"].pj, costs.prices["dram_byte"].pj) for costs in replicas]
    scale = 0.5**2  # of the voltage; that of the memory stays
    assert min(prices) == pytest.approx((6 * scale, 50))
    assert max(prices) == pytest.approx((11 * scale, 120))
    assert (10 * scale, 100) in prices
    constant = {round(costs.constant_power_w, 9) for costs in replicas}
    assert constant == {round(30 * factor, 9) for factor in (40 / 50, 1, 60 / 50)}
    assert table(tmp_path).interval_share == 1.0
    spread = table(tmp_path).replica_intervals("500/900")
    assert spread.prices_pj == {"fp32_flop": pytest.approx((6 * scale, 11 * scale)), "dram_byte": (50, 120)}
    assert spread.constant_w == pytest.approx((30 * 40 / 50, 30 * 60 / 50))


CARRIED = """
[core_voltage]
are = "carried over from a GPU W's"
interval_fall = [0.4, 1.5]
mark = "assumed"

[pj_at_reference.core]"""


def carried(text=CARRIED):
    return TABLE.replace("[pj_at_reference.core]", text)


def test_voltages_that_nobody_read_are_assumed_and_widen_the_interval_at_other_clocks(tmp_path):
    own, known = table(tmp_path, carried()), table(tmp_path)
    assert own.replica_intervals("1000/900") == known.replica_intervals("1000/900")
    assert own.at() == known.at() and not own.at("1000/900").marks & Mark.ASSUMED
    prices = [costs.prices["fp32_flop"].pj for costs in own.replicas("500/900")]
    assert min(prices) == pytest.approx(6 * (1 - 1.5 * 0.5) ** 2) and max(prices) == pytest.approx(11 * 0.8**2)
    for setting in ("500/900", "750/900"):
        there = own.at(setting)
        assert there.prices["fp32_flop"].pj == known.at(setting).prices["fp32_flop"].pj
        assert there.charges["fp32_fma"].marks & Mark.ASSUMED and there.constant_marks & Mark.ASSUMED
        assert not there.charges["dram_read"].marks & Mark.ASSUMED
        assert there.notes == (
            "Core voltages of mine at other clocks than 1000 MHz are carried over from a GPU W's; they may fall 0.4 to "
            "1.5 times as much.",
        )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[0.4, 1.5]", "[1.1, 1.5]", "it must hold 1"),
        ("[0.4, 1.5]", "[0.4, 2.5]", "2 is the most"),
        ('are = "carried over from a GPU W\'s"\n', "", "`are` is missing"),
        ('mark = "assumed"\n', "", "`mark`"),
    ],
)
def test_what_is_said_of_voltages_that_nobody_read_is_whole(tmp_path, old, new, said):
    assert old in CARRIED
    with pytest.raises(DefinitionError, match=said):
        table(tmp_path, carried(CARRIED.replace(old, new)))


def test_a_price_without_an_interval_is_the_tables_in_every_replica(tmp_path):
    unstated = TABLE.replace('basis = "published"\n', "").replace("dram_byte = [50, 120]\n", "")
    replicas = table(tmp_path, unstated).replicas("1000/900")
    assert {6, 10, 11} < {costs.prices["fp32_flop"].pj for costs in replicas}
    assert {costs.prices["dram_byte"].pj for costs in replicas} == {100}


ENDS = st.floats(0.01, 1.0), st.floats(1.0, 5.0)


@given(
    ranges=st.lists(st.tuples(*ENDS), min_size=2, max_size=2),
    constant=st.tuples(*ENDS),
    counts=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    moves=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_no_state_of_the_operands_leaves_the_span_of_the_replicas(ranges, constant, counts, moves):
    """Counts may be negative: they are those of a difference of two runs."""
    intervals = Intervals({"a": ranges[0], "b": ranges[1]}, constant, "zero to random")

    def total(a, b, w):
        return counts[0] * a + counts[1] * b + counts[2] * w

    def moved(ends, by):
        return 1 + (ends[1] - 1) * by if by > 0 else 1 + (1 - ends[0]) * by

    spanned = [total(f["a"], f["b"], w) for f, w, _ in intervals.replicas({"a": 1.0, "b": 1.0}, 1.0)]
    here = total(moved(ranges[0], moves[0]), moved(ranges[1], moves[0]), moved(constant, moves[1]))
    assert min(spanned) - 1e-9 <= here <= max(spanned) + 1e-9
    assert min(spanned) <= sum(counts) + 1e-9 and max(spanned) >= sum(counts) - 1e-9


def test_intervals_beside_a_fit_without_replicas_are_checked_and_used(tmp_path):
    fit = '\n[fit]\nform = "any"\n'
    assert table(tmp_path, TABLE + fit).replicas()
    with pytest.raises(DefinitionError, match="does not hold it"):
        table(tmp_path, TABLE.replace("fp32_flop = [6, 11]", "fp32_flop = [6, 9]") + fit)


@pytest.mark.parametrize("within", ["0", "0.5", "-1", "nan", "true", '"wide"'])
def test_the_error_of_a_fit_is_a_factor_of_one_or_more(tmp_path, within):
    with pytest.raises(DefinitionError, match="within"):
        table(tmp_path, f"{TABLE}\n[fit]\nwithin = {within}\n")


def test_intervals_without_width_make_no_replicas():
    assert costs.load("fermi-keckler").replicas() == ()
    assert costs.load("gtx580").replicas() == ()


@pytest.mark.parametrize("name", ["v100", "gtx980", "gtx1080ti"])
def test_refits_are_the_replicas_of_a_fitted_table(name):
    fitted = costs.load(name)
    assert fitted.interval_share == 0.9
    assert len(fitted.replicas()) == fitted.fit.number
    low, high = fitted.replica_intervals().prices_pj["dram_byte"]
    assert low < fitted.at().prices["dram_byte"].pj < high
    assert fitted.interval_is == "90 % of the fits to programs drawn at random"


@pytest.mark.parametrize("name", costs.tables())
def test_every_table_says_what_it_rests_on(name):
    assert costs.load(name).basis in costs.BASES
