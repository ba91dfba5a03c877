"""The metered total, split by counts: the sum is the meter's, the split the table's, and what cannot be is refused."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from test_energy import make_costs, make_counts, timed

from eprof.base.errors import MeterError, UsageError
from eprof.base.vocabulary import Mark
from eprof.costs import Peaks
from eprof.energy.attribution import attribute, limits, within_limits
from eprof.energy.meter_factor import LEAST, MOST, WITHIN, WITHIN_AT_LIMIT, Meter, factors, joules, metered

PRICES = {"fp32_fma": 20.0, "dram_read": 100.0}
WATTS = 10.0


def two_kernels(times=(1.0, 3.0)):
    """1e12 FMA (20 J) and 10 W s; 1e11 bytes (10 J) and 30 W s: 70 J in all."""
    return make_counts([{"fp32_fma": 1e12, "dram_read": 0.0}, {"fp32_fma": 0.0, "dram_read": 1e11}], times)


def test_the_factor_makes_kernels_and_idle_time_the_meters_joules():
    scaling = metered(two_kernels(), make_costs(PRICES), Meter(100.0, "a meter", duration_s=7.0))
    assert scaling.modelled_j == pytest.approx(20 + 10 + 10 + 30 + 30)
    assert scaling.factor == pytest.approx(1.0)
    assert (scaling.idle_s, scaling.idle_j) == (3.0, pytest.approx(30.0))
    assert scaling.kernels_j == pytest.approx(70.0)
    assert scaling.by_time_j(np.array([1.0, 3.0])) == pytest.approx([17.5, 52.5])


def test_without_a_duration_no_idle_time_is_taken_off():
    scaling = metered(two_kernels(), make_costs(PRICES), Meter(84.0, "a meter"))
    assert (scaling.factor, scaling.idle_s, scaling.idle_j) == (pytest.approx(1.2), None, 0.0)


def test_kernels_that_overlap_leave_no_idle_time():
    scaling = metered(two_kernels(), make_costs(PRICES), Meter(70.0, "a meter", duration_s=2.0))
    assert (scaling.idle_s, scaling.factor) == (0.0, pytest.approx(1.0))


some_rows = st.lists(
    st.fixed_dictionaries({"fp32_fma": st.floats(1e9, 1e15), "dram_read": st.floats(0, 1e13)}), min_size=1, max_size=6
)


@given(some_rows, st.floats(LEAST + 0.01, MOST - 0.01), st.floats(0, 2))
def test_the_scaled_costs_add_up_to_the_meter(rows, factor, idle_s):
    counts, costs = make_counts(rows, timed(rows)), make_costs(PRICES)
    split = attribute(counts, costs)
    whole_s = float(sum(timed(rows))) + idle_s
    meter = Meter(factor * float(np.nansum(split.total_j) + WATTS * idle_s), "a meter", whole_s)
    scaling = metered(counts, costs, meter)
    scaled = attribute(counts, costs.scaled(scaling.factor))
    assert np.nansum(scaled.total_j) + scaling.idle_j == pytest.approx(meter.joules, rel=1e-9)
    assert scaling.by_time_j(counts.rows.time_s).sum() + scaling.idle_j == pytest.approx(meter.joules, rel=1e-9)


@given(some_rows, st.floats(LEAST + 0.01, MOST - 0.01), st.floats(0, 2), st.floats(1, 3), st.sampled_from([1, 10**9]))
@example([{"fp32_fma": 1e9, "dram_read": 0.0}, {"fp32_fma": 1e9, "dram_read": 1.5}], 1.5, 1.25, 1.0, 1)
@example(
    [*[{"fp32_fma": 1e9, "dram_read": 0.0}] * 3, {"fp32_fma": 1e15, "dram_read": 0.0}],
    1.5,
    1.5434145880254073e-06,
    1.0,
    1,
)
def test_no_metered_kernel_draws_more_than_its_board_and_the_sum_is_the_meters(rows, factor, idle_s, room, launches):
    counts, costs = make_counts(rows, timed(rows)), make_costs(PRICES)
    counts = replace(counts, rows=replace(counts.rows, launches=np.full(len(rows), launches)))
    whole_s = float(sum(timed(rows))) + idle_s
    meter = Meter(factor * (attribute(counts, costs).total_j.sum() + WATTS * idle_s), "a meter", whole_s)
    board_w = room * meter.joules / whole_s
    scaling = metered(counts, costs, meter, most_w=board_w)
    split, held = within_limits(counts, costs.scaled(scaling.factor), limits(counts.rows, np.full(len(rows), board_w)))
    assert split.total_j.sum() + scaling.idle_j == pytest.approx(meter.joules, rel=1e-6)
    most_w = board_w * (1 if launches == 1 else 3)
    assert (split.total_j <= most_w * counts.rows.time_s * (1 + 1e-6)).all()
    assert scaling.factor >= meter.joules / scaling.modelled_j * (1 - 1e-9)


@pytest.mark.parametrize(("joules_seen", "binds"), [(100.0, False), (156.0, True), (165.0, True)])
def test_a_limit_binds_where_the_mean_power_is_at_it(joules_seen, binds):
    scaling = metered(two_kernels(), make_costs(PRICES), Meter(joules_seen, "a meter", 4.0), limit_w=40.0)
    told = (40.0, WITHIN_AT_LIMIT) if binds else (None, WITHIN)
    assert (scaling.limit_w, scaling.within) == told


def test_kernels_that_are_held_to_totals_keep_the_shares_of_their_parts():
    split = attribute(two_kernels(), make_costs(PRICES))
    held = split.adding_up_to(np.array([3.0, 4.0]))
    assert held.total_j == pytest.approx([3.0, 4.0])
    assert held.joules["fp32_fma"][0] / 3.0 == pytest.approx(split.joules["fp32_fma"][0] / split.total_j[0])
    assert all(mark & Mark.ESTIMATED for mark in held.joule_marks["constant"])


def test_each_replica_has_a_factor_of_its_own():
    counts, meter = two_kernels(), Meter(84.0, "a meter", duration_s=5.0)
    replicas = [
        make_costs({"fp32_fma": fma, "dram_read": 100.0}, watts) for fma, watts in ((10, 10), (40, 5), (20, 20))
    ]
    scaling, anything = metered(counts, make_costs(PRICES), meter), limits(counts.rows, np.full(2, np.inf))
    for costs, factor in zip(replicas, factors(counts, replicas, scaling, anything), strict=True):
        scaled = costs.scaled(factor)
        total_j = attribute(counts, scaled).total_j.sum() + scaled.constant_power_w * 1.0
        assert total_j == pytest.approx(84.0, rel=1e-9)
    assert factors(counts, [], scaling, anything) == ()


def test_scaled_prices_are_estimated():
    scaled = make_costs(PRICES).scaled(2.0)
    assert scaled.charges["fp32_fma"].pj == 40.0
    assert scaled.constant_power_w == 20.0
    split = attribute(two_kernels(), scaled)
    assert split.row_marks.tolist() == [2, 2]


@pytest.mark.parametrize("metered_j", [70 * LEAST * 0.99, 70 * MOST * 1.01, 70e3, 0.07])
def test_a_factor_that_no_gpu_has_is_refused_with_numbers(metered_j):
    with pytest.raises(MeterError) as refused:
        metered(two_kernels(), make_costs(PRICES), Meter(metered_j, "--energy"))
    message = str(refused.value)
    assert f"{metered_j:.4g} J of --energy" in message
    assert "70 J" in message
    assert f"{metered_j / 4:.4g} W" in message
    assert "unit" in message and "idle" in message and "cost table" in message


def test_power_that_the_gpu_cannot_draw_is_refused():
    peaks = Peaks(power_limit_w=20.0)
    costs = replace(make_costs(PRICES), peaks=peaks)
    with pytest.raises(MeterError, match="more than the 20 W"):
        metered(two_kernels(), costs, Meter(100.0, "the meter", 4.0), is_own=True)
    with pytest.raises(MeterError, match="less than the 10 W"):
        metered(two_kernels(), costs, Meter(32.0, "the meter", 4.0), is_own=True)
    with pytest.raises(MeterError, match="more than the 20 W that this board"):
        metered(two_kernels(), make_costs(PRICES), Meter(100.0, "the meter", 4.0), limit_w=20.0)
    # Of another GPU's table neither bound is this GPU's.
    assert metered(two_kernels(), costs, Meter(100.0, "the meter", 4.0)).factor > 1


def test_what_cannot_be_split_is_refused():
    costs = make_costs(PRICES)
    with pytest.raises(MeterError, match="time of 1 of 2 kernels is not known"):
        metered(two_kernels((1.0, float("nan"))), costs, Meter(70.0, "--energy"))
    with pytest.raises(MeterError, match="take no time"):
        metered(two_kernels((0.0, 0.0)), costs, Meter(70.0, "--energy"))


@pytest.mark.parametrize(
    ("text", "number"),
    [("812J", 812), ("812", 812), ("0.8 kJ", 800), ("250mJ", 0.25), ("2Wh", 7200), ("1e3j", 1000), (".5 J", 0.5)],
)
def test_joules_are_read_in_their_units(text, number):
    assert joules(text) == pytest.approx(number)


@pytest.mark.parametrize(
    "text", ["", "J", "-3J", "0", "0 kJ", "nan", "inf", "1e400J", "3 W", "3 cal", "1e20 kJ", "1,5J"]
)
def test_what_is_no_energy_is_a_usage_error(text):
    with pytest.raises(UsageError, match="--energy"):
        joules(text)
