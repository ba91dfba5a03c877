"""Balances, lines, caps and equal power, against the numbers of the seeds, computed here without eprof's formulas."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

import eprof
from eprof import costs
from eprof.base.errors import CostError
from eprof.base.vocabulary import COUNTS, Mark
from eprof.commands.roofline.document import equal_power
from eprof.energy.attribution import attribute
from eprof.profile.rooflines import PARTS, Machine, at_random, dots_of, machine, machine_data, machines

ROOT = Path(__file__).parents[3]

# [T] tables 2 to 5: pJ/flop, pJ/B, pi0 in W, Gflop/s, GB/s.
PLATFORMS = {
    ("gtx580", "fp32"): (99.7, 513.0, 122.0, 1581.06, 192.4),
    ("gtx580", "fp64"): (212.0, 513.0, 122.0, 197.63, 192.4),
    ("gtx680", "fp32"): (43.2, 437.5, 66.37, 3532.8, 192.2),
    ("gtx680", "fp64"): (262.9, 437.5, 66.37, 147.2, 192.2),
    ("i7-950", "fp32"): (371.0, 795.0, 122.0, 106.56, 25.6),
    ("i7-950", "fp64"): (670.0, 795.0, 122.0, 53.28, 25.6),
    ("fermi-keckler", "fp64"): (25.0, 360.0, 0.0, 515.0, 144.0),
}
INTENSITIES = np.geomspace(0.01, 1000, 61)


def of(name, precision, cap_w=None):
    return machine(costs.load(name).at(), precision, cap_w)


def by_hand(name, precision):
    """B_tau, B_eps, eta, tau_flop, pi_flop of docs/model.md, from the printed table."""
    flop, byte, watts, gflops, gb = PLATFORMS[name, precision]
    eps0 = watts / (gflops * 1e9)
    eta = flop * 1e-12 / (flop * 1e-12 + eps0)
    return gflops / gb, byte / flop, eta, 1 / (gflops * 1e9), flop * 1e-12 * gflops * 1e9


every_platform = pytest.mark.parametrize(("name", "precision"), PLATFORMS)


@every_platform
def test_balances_are_those_of_the_printed_tables(name, precision):
    found, (b_tau, b_eps, eta, *_) = of(name, precision), by_hand(name, precision)
    assert found.time_balance == pytest.approx(b_tau, rel=1e-12)
    assert found.energy_balance == pytest.approx(b_eps, rel=1e-12)
    assert found.balance_gap == pytest.approx(b_eps / b_tau, rel=1e-12)
    assert found.flop_efficiency == pytest.approx(eta, rel=1e-12)


@every_platform
def test_lines_are_those_of_the_closed_forms(name, precision):
    """[R] II-III: T/(W tau), E/(W eps_hat) and P(I), each written out."""
    found, (b_tau, b_eps, eta, tau, pi_flop) = of(name, precision), by_hand(name, precision)
    for at in INTENSITIES:
        bhat = eta * b_eps + (1 - eta) * max(0.0, b_tau - at)
        power = pi_flop / eta * (min(at, b_tau) / b_tau + bhat / max(at, b_tau))
        assert found.roofline(at) * tau == pytest.approx(min(1.0, at / b_tau), rel=1e-9)
        assert found.arch_line(at) * found.flop_j / eta == pytest.approx(1 / (1 + bhat / at), rel=1e-9)
        assert found.power_line(at) == pytest.approx(power, rel=1e-9)


# Where the arch line reaches one half, as [R] figure 4 prints it beside its panels: two figures.
@pytest.mark.parametrize(
    ("name", "precision", "printed"),
    [("gtx580", "fp64", 0.79), ("gtx580", "fp32", 4.5), ("i7-950", "fp64", 1.1), ("i7-950", "fp32", 2.1)],
)
def test_the_arch_line_is_at_one_half_where_bhat_is_the_intensity(name, precision, printed):
    found, (b_tau, b_eps, eta, *_) = of(name, precision), by_hand(name, precision)
    right = eta * b_eps
    left = (eta * b_eps + (1 - eta) * b_tau) / (2 - eta)  # I = Bhat(I), solved for I below B_tau
    expected = right if right >= b_tau else left
    assert found.half_efficiency_intensity == pytest.approx(expected, rel=1e-9)
    assert float(f"{expected:.2g}") == printed
    assert found.race_to_halt  # [R] V-B: in all four cases the time balance is the larger


def test_keckler_fermi():
    """[T] table 2 and figure 2: 3.6 and 14.4 flop/B; power 4.0, 5.0 and 1 in units of pi_flop; no race to halt."""
    found = of("fermi-keckler", "fp64")
    assert round(found.time_balance, 1) == 3.6 and round(found.energy_balance, 1) == 14.4
    relative = [float(found.power_line(at)) / found.flop_power_w for at in (1e-9, found.time_balance, 1e12)]
    assert [round(one, 1) for one in relative] == [4.0, 5.0, 1.0]
    assert found.peak_power_w == pytest.approx(relative[1] * found.flop_power_w)
    assert found.half_efficiency_intensity == pytest.approx(14.4)
    assert not found.race_to_halt


# ---- power caps ([T] 4.2)


@pytest.mark.parametrize("cap_w", [130.0, 180.0, 244.0, 300.0, 378.0, 400.0])
def test_a_power_cap_follows_the_closed_form(cap_w):
    flop, byte, watts, gflops, gb = PLATFORMS["gtx580", "fp32"]
    found = of("gtx580", "fp32", cap_w)
    usable, b_tau = cap_w - watts, gflops / gb
    pi_flop, pi_mem = flop * gflops * 1e-3, byte * gb * 1e-3
    over = pi_mem / (usable - pi_flop) if usable > pi_flop else math.inf
    upper, lower = b_tau * max(1, over), b_tau * max(0.0, min(1, (usable - pi_mem) / pi_flop))
    assert found.balances_under_cap == pytest.approx((lower, upper))
    for at in INTENSITIES:
        expected = usable
        if at >= upper:
            expected = pi_flop + pi_mem * b_tau / at
        elif at <= lower:
            expected = pi_flop * at / b_tau + pi_mem
        assert float(found.power_line(at)) == pytest.approx(watts + expected, rel=1e-9)
        assert float(found.power_line(at)) <= cap_w * (1 + 1e-12)
    assert found.peak_power_w == pytest.approx(min(cap_w, watts + pi_flop + pi_mem))


def test_gtx580_would_draw_more_than_its_244_w():
    """[R] V-B: single precision needs more than the limit; double does not reach 300 W."""
    assert of("gtx580", "fp32").peak_power_w == pytest.approx(122 + 99.7 * 1.58106 + 513 * 0.1924)
    assert of("gtx580", "fp32").peak_power_w > 244
    said = ["the model needs up to 378.3 W, the platform throttles at 244 W; --power-cap gtx580=244 draws that"]
    assert [note for note in of("gtx580", "fp32").notes if "throttles" in note] == said
    assert not [note for note in of("gtx580", "fp32", 244.0).notes if "throttles" in note]
    assert not [note for note in of("gtx680", "fp32").notes if "throttles" in note]


def test_a_cap_below_constant_power_is_refused():
    with pytest.raises(CostError, match="leaves nothing to compute with"):
        of("gtx580", "fp32", 122.0)


def test_without_peaks_or_prices_there_is_no_line():
    with pytest.raises(CostError, match="a price of an FP32 flop"):
        of("fermi-keckler", "fp32")
    assert [one.precision for one in machines(costs.load("fermi-keckler").at())] == ["fp64"]


positive = st.floats(1e-3, 1e3)


@given(positive, positive, positive, positive, st.floats(0, 1e3), st.floats(1e-2, 1e3))
def test_lines_of_any_machine(peak, bandwidth, flop, byte, watts, usable):
    """Power is speed over efficiency; efficiency only grows with intensity, and is half its ceiling where it is said."""
    free = Machine("m", "m", "fixed", "fp32", peak * 1e9, bandwidth * 1e9, flop * 1e-12, byte * 1e-12, watts)
    capped = Machine(*(getattr(free, name) for name in list(free.__struct_fields__)[:9]), usable_power_w=usable)
    for one in (free, capped):
        assert np.allclose(one.power_line(INTENSITIES), one.roofline(INTENSITIES) / one.arch_line(INTENSITIES))
        assert (np.diff(one.arch_line(INTENSITIES)) >= -1e-9 * one.arch_line(INTENSITIES)[1:]).all()
        assert (one.power_line(INTENSITIES) <= one.peak_power_w * (1 + 1e-9)).all()
        half = one.half_efficiency_intensity
        assert float(one.arch_line(half)) == pytest.approx(one.peak_flop_per_j / 2, rel=1e-6)
    assert (capped.roofline(INTENSITIES) <= free.roofline(INTENSITIES)).all()


def test_a_table_that_prices_levels_apart_pays_the_way(tmp_path):
    """Accessed books: a DRAM byte costs what L1, L2 and DRAM add; a flop its share of a warp's issue."""
    text = (ROOT / "costs" / "gtx680.toml").read_text()
    text = text.replace('books = "served"', 'books = "accessed"').replace('name = "gtx680"', 'name = "mine"')
    text = text.replace("warp_issue = { nothing", 'warp_issue = { formula = "sp_flop" }\n#')
    (tmp_path / "mine.toml").write_text(text)
    found = machine(costs.load(str(tmp_path / "mine.toml")).at(), "fp32")
    assert found.byte_j == pytest.approx((437.5 + 195 + 51) * 1e-12)
    assert found.flop_j == pytest.approx((43.2 + 43.2 / 32 / 2) * 1e-12)
    assert {level.name: round(level.byte_j * 1e12, 1) for level in found.levels}["l2"] == 246.0
    assert len(found.notes) == 2


def test_a_price_of_random_accesses_is_said_and_moves_no_total_that_does_not_tell_them(tmp_path, real_repro):
    text = (
        (ROOT / "costs" / "gtx580.toml")
        .read_text()
        .replace("dram_byte = 513.0", "dram_byte = 513.0\nrandom_access = 25900")
    )
    (tmp_path / "mine.toml").write_text(text + '\nrandom = { formula = "random_access", why = "a test" }\n')
    priced = costs.load(str(tmp_path / "mine.toml"))
    assert machine(priced.at(), "fp32").notes[-2] == (
        f"an access of DRAM at random costs 25.9 nJ beside its bytes: as much as {25900 / 513:.3g} bytes that stream, "
        f"or {25900 / 99.7:.3g} flops"
    )
    profile = eprof.load(real_repro("intensity-overflow-true.csv"), time=["0.5"])
    before, after = (profile.energy(table) for table in ("gtx580", priced))
    assert after.energy_j == before.energy_j
    old, new = before.document(), after.document()
    assert old["counts"] == new["counts"] and old["kernels"] == new["kernels"]
    told = "Accesses of DRAM at random are not told apart here: their bytes pay as those that stream."
    assert sorted({*new["warnings"]} - {*old["warnings"]}) == [told]


def test_accesses_at_random_that_counters_tell_pay_beside_their_bytes(tmp_path, real_log):
    """lavaMD reads and writes single fields of records; a kernel that only streams pays as before."""
    text = (ROOT / "costs" / "gtx680.toml").read_text()
    priced = text.replace("dram_byte =", "random_access = 25900\ndram_byte =", 1)
    (tmp_path / "mine.toml").write_text(priced + '\nrandom = { formula = "random_access", why = "a test" }\n')
    for name, share in (("gtx760-dev1-metrics-summary-lavamd.csv", 0.488), ("k20c-metrics-summary.csv", 0.0)):
        profile = eprof.load(real_log(name), time=["0.5"])
        before, after = (profile.energy(table) for table in ("gtx680", costs.load(str(tmp_path / "mine.toml"))))
        accesses = after.counts.amounts["random"].sum()
        assert 32 * accesses / after.counts.amounts.only(["dram_read", "dram_write"]).sum() == pytest.approx(
            share, abs=1e-3
        )
        assert after.energy_j - before.energy_j == pytest.approx(25.9e-9 * accesses, abs=1e-9)
        assert not set(after.document()["warnings"]) - set(before.document()["warnings"])


@pytest.mark.parametrize("cap_w", [None, 137.0])
def test_accesses_at_random_have_a_roofline_where_price_and_rate_are_known(tmp_path, cap_w):
    """[T] 4.2 and table 6 by hand: eps_rand = 32 eps_mem + 25.9 nJ, 0.5e9 a second, pi0 = 122 W."""
    text = (ROOT / "costs" / "gtx580.toml").read_text()
    priced = text.replace("dram_byte = 513.0", "dram_byte = 513.0\nrandom_access = 25900")
    priced += '\nrandom = { formula = "random_access", why = "a test" }\n'
    rated = priced.replace("[peak]", "[peak]\nrandom_gaccess_per_s = 0.5")
    tables = {}
    for name, content in (("text", text), ("priced", priced), ("rated", rated)):
        (tmp_path / f"{name}.toml").write_text(content)
        tables[name] = costs.load(str(tmp_path / f"{name}.toml")).at()
    streaming = machine(tables["rated"], "fp32", cap_w)
    assert at_random(streaming, tables["text"]) is at_random(streaming, tables["priced"]) is None
    found = at_random(streaming, tables["rated"])
    eps, usable = 25.9e-9 + 32 * 513e-12, math.inf if cap_w is None else cap_w - 122
    tau = max(2e-9, eps / usable)
    told = machine_data(found)
    assert told["access_pj"] == pytest.approx(eps * 1e12)
    assert told["access_per_s"] == pytest.approx(1 / tau)
    assert told["access_per_j"] == pytest.approx(1 / (eps + 122 * tau))
    assert "access_pj" not in machine_data(streaming)
    # The same machine's lines: a flop for each access, I = 1/32 flop/B.
    assert found.roofline(1 / 32) == pytest.approx(1 / max(2e-9, (eps + 99.7e-12) / usable))
    guessed = {**tables["rated"].charges, "random": replace(tables["rated"].charges["random"], marks=Mark.ASSUMED)}
    assert at_random(streaming, replace(tables["rated"], charges=guessed)).marks == found.marks | Mark.ASSUMED
    assert (tables["rated"].processor, costs.load("i7-950").at().processor) == ("gpu", "cpu")
    of_cpu = at_random(streaming, replace(tables["rated"], processor="cpu"))
    assert machine_data(of_cpu)["access_pj"] == pytest.approx(eps * 1e12 + 32 * 513)


@pytest.mark.parametrize("word", ["dram_read", "dram_write"])
def test_lines_are_assumed_where_a_price_of_theirs_is(word):
    known = costs.load("gtx680").at()
    guessed = replace(known, charges={**known.charges, word: replace(known.charges[word], marks=Mark.ASSUMED)})
    assert Mark.ASSUMED not in machine(known, "fp32").marks and Mark.ASSUMED in machine(guessed, "fp32").marks


# ---- equal power ([T] 5.2.3)


def test_how_many_jetsons_make_a_gtx680():
    tk1, gtx = of("jetson-tk1", "fp32"), of("gtx680", "fp32")
    large = 66.37 + 43.2 * 3.5328 + 437.5 * 0.1922
    small = tk1.constant_power_w + tk1.flop_power_w + tk1.mem_power_w
    many, match = equal_power(gtx, tk1)
    assert match.number_exact == pytest.approx(large / small)
    assert many.number == 14
    assert many.peak_power_w == pytest.approx(14 * small)
    # Faster everywhere: 14 of them have more peak and more bandwidth.
    assert [one.winner for one in match.faster] == ["jetson-tk1 852/924"]
    assert 14 * 384 * 0.852 > 3532.8 and 14 * 16 * 0.924 > 192.2
    # More efficient only where there is some arithmetic: the crossing is where the two arch lines meet.
    low, high = match.more_efficient
    assert (low.winner, high.winner) == ("gtx680", "jetson-tk1 852/924")
    assert float(tk1.arch_line(low.high)) == pytest.approx(float(gtx.arch_line(low.high)), rel=1e-9)
    assert low.high == high.low and low.low is None and high.high is None
    json.dumps(asdict(match.faster[0]), allow_nan=False)


def test_equal_power_with_itself_and_the_wrong_way_round():
    gtx = of("gtx680", "fp32")
    many, same = equal_power(gtx, gtx)
    assert many.number == 1 and [one.winner for one in same.faster] == [""]
    with pytest.raises(CostError, match="name the larger one first"):
        equal_power(of("jetson-tk1", "fp32"), gtx)


def test_a_machine_as_plain_data():
    data = machine_data(of("gtx580", "fp32", 150.0))
    assert data["capped_to"] is None and data["power_cap_w"] == pytest.approx(150.0)
    assert data["levels"][-1] == {
        "name": "dram",
        "pj_per_byte": pytest.approx(513.0),
        "energy_balance": pytest.approx(513 / 99.7),
    }
    json.dumps(data, allow_nan=False)


# ---- kernels below the lines


def counted(rows):
    """`Counts` of made-up kernels: a dict of counts and `time_s` each; what is not named is 0."""
    from frames_support import counts_of

    table = pd.DataFrame([{name: row.get(name, 0.0) for name in COUNTS} for row in rows], dtype=float)
    kernels = pd.DataFrame(
        {
            "device": None,
            "kernel": [f"k{at}" for at in range(len(rows))],
            "launches": 1,
            "time_s": [row.get("time_s", math.nan) for row in rows],
            "time_marks": 0,
        }
    )
    return counts_of(kernels, table, table.map(lambda _: 0).astype("int64"), {}, "served")


def placed(rows, name="gtx680"):
    priced = costs.load(name).at()
    counts = counted(rows)
    split = attribute(counts, priced)
    return dots_of(counts, priced, split), split


BUSY = {"fp32_fma": 1e12, "dram_read": 1e9, "time_s": 2e12 / 3532.8e9}


def test_a_kernel_at_the_roofline_is_on_both_lines():
    dots, _ = placed([BUSY])
    row = dots.values.frame().iloc[0]
    assert (
        row["intensity_dram"] == 2000
        and row["speed_share"] == pytest.approx(1)
        and row["energy_share"] == pytest.approx(1)
    )
    line = of("gtx680", "fp32")
    assert row["flop_per_s"] == pytest.approx(float(line.roofline(2000)))
    assert row["flop_per_j"] == pytest.approx(float(line.arch_line(2000)))
    assert dots.lever == ("flops",)


def test_what_would_lift_a_kernel():
    slow = {**BUSY, "time_s": 10 * BUSY["time_s"]}
    memory = {"fp32_fma": 1e9, "dram_read": 1e12, "time_s": 1e12 / 192.2e9}
    nearer = {**BUSY, "shared_read": 1e13}
    idle = {"time_s": 1.0}
    unknown = {"fp32_fma": 1e12, "dram_read": 1e9}
    dots, split = placed([slow, memory, nearer, idle, unknown])
    assert dots.lever == ("waiting", "dram", "nearer", "constant", None)
    assert dots.values.frame()["speed_share"][0] == pytest.approx(0.1)
    assert dots.values.frame()[[f"{name}_j" for name in PARTS]].sum(axis=1)[:4].to_numpy() == pytest.approx(
        split.total_j[:4]
    )
    assert dots.values.frame()["flop_per_j"].isna().tolist() == [False, False, False, False, True]
    rows = dots.rows()
    assert rows[4]["speed_share"] is None and rows[3]["intensity_flop_per_byte"]["dram"] is None
    json.dumps(rows, allow_nan=False)


amounts = st.floats(0, 1e13)


@given(st.lists(st.tuples(amounts, amounts, amounts, amounts, st.floats(0, 1e3)), min_size=1, max_size=4))
def test_the_parts_of_a_kernel_add_up(rows):
    names = ("fp32_fma", "fp64_add", "dram_write", "l2_read", "time_s")
    dots, split = placed([dict(zip(names, row, strict=True)) for row in rows])
    parts = dots.values.frame()[[f"{name}_j" for name in PARTS]]
    assert np.allclose(parts.sum(axis=1), split.total_j, rtol=1e-9, atol=1e-12)
    assert (parts.to_numpy() >= 0).all()


def test_a_quotient_of_a_bound_is_none_or_at_most_that(real_repro):
    """Flops over DRAM bytes of which nine launches of ten are lost are no intensity; flop/J of a least energy is a most."""
    found = eprof.load(real_repro("intensity-overflow.csv"), time=["0.5"]).energy("jetson-tk1").document()
    assert found["intensity_flop_per_byte"] is None and found["kernels"][0]["intensity_flop_per_byte"] is None
    limit = found["limits"]["kernels"][0]
    assert limit["intensity_flop_per_byte"]["dram"] is None and limit["roofline_time_s"] is None
    assert limit["at_most"] == ["flop_per_j"] and limit["flop_per_j"] > 0
    whole = eprof.load(real_repro("intensity-overflow-true.csv"), time=["0.5"]).energy("jetson-tk1").document()
    assert whole["intensity_flop_per_byte"] == pytest.approx(200e6 / (32 * (9 * 40_000_000 + 1000 + 10 * 1000)))


def test_a_time_that_is_a_lower_bound_bounds_speeds_from_above():
    bounded = counted([{"fp64_fma": 1e9, "dram_read": 1e6, "dram_write": 1e6, "time_s": 0.5}])
    bounded = replace(bounded, rows=replace(bounded.rows, time_marks=np.array([int(Mark.MISSING)])))
    priced = costs.load("jetson-tk1").at()
    (row,) = dots_of(bounded, priced, attribute(bounded, priced)).rows()
    assert row["at_most"][:2] == ["flop_per_s", "speed_share"]


def test_flops_of_matrix_instructions_are_not_known():
    work = counted([{"fp32_fma": 1000.0, "tensor": 1e6, "dram_read": 1e6, "dram_write": 0.0, "time_s": 0.5}])
    priced = costs.load("v100").at()
    work = replace(work, books=priced.books)
    (row,) = dots_of(work, priced, attribute(work, priced)).rows()
    assert row["work_flop"] is None and row["intensity_flop_per_byte"]["dram"] is None and row["flop_per_j"] is None
