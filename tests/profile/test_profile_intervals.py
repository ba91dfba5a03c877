"""How far energies are known: the product of counts and prices against every replica attributed for itself."""

import re
from pathlib import Path

import numpy as np
import pytest
from frames_support import columns
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from oracle_logs import Run, ncu

import eprof
from eprof import costs
from eprof.base.gpus import most_w
from eprof.base.vocabulary import PRICED, Mark
from eprof.energy.attribution import attribute, times_limit
from eprof.energy.uncertainty import Replicas, amounts_of, middle, prices_of
from eprof.profile import causes, intervals
from eprof.profile.priced_profile import joules_of, time_of

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "logs" / "invented"
MADE = ROOT / "tests" / "golden" / "logs"
V100 = ROOT.parent / "shared" / "data" / "ncu" / "v100-miniweather-baseline.ncu-rep"
positive = st.floats(1e-3, 1e3)


@pytest.fixture(scope="module")
def profile():
    return eprof.load(SAMPLE / "tk1-fmm-counters.csv", SAMPLE / "tk1-fmm-times.csv")


@pytest.fixture(scope="module")
def table():
    """The table of the V100 as if it were made for the GPU of `profile`, without the error of the model."""
    return with_error_of_model(1.0)


def with_error_of_model(within):
    table = replace(costs.load("v100"), devices=("GK20A",))
    return replace(table, fit=replace(table.fit, data={**table.fit.data, "within": within}))


@pytest.fixture
def energy(profile, table):
    return complete(profile.energy(table))


def complete(energy):
    """As if nothing were missing: the interval is about the prices alone."""
    return replace(energy, split=replace(energy.split, joule_marks=columns(energy.split.marks * 0)))


def whole(energy):
    return intervals.of_whole(energy, tuple(map(intervals.replicas, energy.each)))


def test_the_interval_of_the_total_is_that_of_the_replicas(energy):
    interval = whole(energy)
    refits = costs.load("v100").replicas()
    totals = [float(attribute(energy.counts, refit).total_j.sum()) for refit in refits]
    assert interval.replicas == len(refits) >= 10 and interval.share == 0.9
    assert interval.total == pytest.approx(np.percentile(totals, [5, 95]).tolist())
    assert interval.total[0] < energy.document()["energy_j"]["total"] < interval.total[1]
    assert "replicas" not in energy.document()["costs"]["fit"]


@pytest.mark.parametrize("part", ["computation", "data", "constant"])
def test_every_family_and_kernel_is_that_of_the_replicas(energy, part):
    splits = [attribute(energy.counts, refit) for refit in costs.load("v100").replicas()]
    families = [float(np.nansum(getattr(split, f"{part}_j"))) for split in splits]
    kernels = np.stack([split.total_j for split in splits])
    assert getattr(whole(energy), part) == pytest.approx(np.percentile(families, [5, 95]).tolist())
    ends = np.array(intervals.of_kernels(energy, intervals.replicas(energy)))
    value = energy.split.total_j
    assert ends[:, 0] == pytest.approx(np.minimum(np.percentile(kernels, 5, axis=0), value))
    assert ends[:, 1] == pytest.approx(np.maximum(np.percentile(kernels, 95, axis=0), value))


def test_the_kernels_of_a_replica_add_up_to_its_total(energy):
    refits = intervals.replicas(energy)
    amounts = amounts_of(energy.counts)
    together = refits.joules(np.nansum(amounts, axis=0))
    assert refits.joules(amounts).sum(axis=0) == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize("name", ["jetson-tk1", "v100"])
def test_counts_times_prices_is_the_attributed_energy(profile, name):
    energy = profile.energy(name)
    joules = np.nan_to_num(amounts_of(energy.counts)) @ prices_of(energy.costs)
    assert joules == pytest.approx(energy.split.total_j, rel=1e-12)


@given(st.lists(positive, min_size=10, max_size=30), positive, st.sampled_from([0.9, 1.0]))
def test_an_interval_holds_its_value(numbers, value, share):
    low, high = middle(np.array(numbers), value, share)
    assert low <= value <= high
    if share == 1.0:
        assert low <= min(numbers) and high >= max(numbers)


@given(st.integers(0, 40), positive)
def test_joules_are_linear_in_the_amounts(seed, factor):
    rng = np.random.default_rng(seed)
    refits = Replicas(rng.random((len(PRICED), 12)), 0.9)
    amounts = rng.random((3, len(PRICED)))
    assert refits.joules(factor * amounts) == pytest.approx(factor * refits.joules(amounts), rel=1e-9)


def test_a_lower_bound_ends_at_the_power_limit_or_nowhere(energy):
    lost = energy.split.marks.copy()
    lost["dram_read"] = int(Mark.MISSING)
    energy = replace(energy, split=replace(energy.split, joule_marks=columns(lost)))
    rates = energy.costs.peaks
    counted, time_s = energy.counts.amounts["dram_read"], energy.counts.rows.time_s
    dearest = intervals.replicas(energy).price_intervals[PRICED.index("dram_read"), 1]
    most_j = np.maximum(1e9 * rates.dram_gb_per_s * time_s - counted, 0.0).sum() * dearest
    assert whole(energy).uncounted == {"dram": pytest.approx(most_j), "total": pytest.approx(most_j)}
    energy = replace(energy, costs=replace(energy.costs, peaks=replace(rates, dram_gb_per_s=None)))
    interval = whole(energy)
    assert interval.data[1] is None and interval.computation[1] is not None
    assert interval.groups["dram"][1] is None and interval.groups["int"][1] is not None
    assert interval.uncounted == {"dram": None, "total": None}
    assert interval.total[0] < energy.split.total_j.sum() and interval.total[1] is None
    refits = intervals.replicas(energy)
    ends = intervals.of_kernels(energy, refits)
    assert [pair[1] for pair in ends] == [None] * len(energy.counts.rows)
    limited = replace(energy, costs=replace(energy.costs, peaks=replace(energy.costs.peaks, power_limit_w=5000.0)))
    time_s = energy.counts.rows.time_s
    assert whole(limited).total == [interval.total[0], pytest.approx(5000.0 * time_s.sum())]
    highs = [pair[1] for pair in intervals.of_kernels(limited, refits)]
    assert highs == pytest.approx((times_limit(energy.counts.rows) * 5000.0 * time_s).tolist())
    # Constant power alone is above the limit: it keeps its share of what the board can draw.
    tiny = limited_to(energy, 1e-3)
    assert joules_of(tiny)["total"] == pytest.approx(1e-3 * time_s.sum()) == whole(tiny).total[1]
    shares = [joules_of(of)["constant"] / joules_of(of)["total"] for of in (energy, tiny)]
    assert shares[0] == pytest.approx(shares[1])
    assert "is more than the 0.001 W" in tiny.costs.notes[-1]
    there = tiny.what_if(f"setting={tiny.costs.setting.label}").energy_j["total"]
    assert there == pytest.approx(joules_of(tiny)["total"]), "at its own clocks nothing changes"


def limited_to(energy, limit_w):
    return energy.priced(replace(energy.costs, peaks=replace(energy.costs.peaks, power_limit_w=limit_w)))


def test_prices_give_way_where_the_power_limit_binds(energy):
    joules, time_s = joules_of(energy), time_of(energy)
    limit_w = (joules["constant"] + 0.6 * (joules["total"] - joules["constant"])) / time_s
    rows = replace(energy.counts.rows, launches=np.full(6, 10**9))  # so short that the device's limit alone binds
    held = limited_to(replace(energy, counts=replace(energy.counts, rows=rows)), limit_w)
    assert joules_of(held)["total"] == pytest.approx(limit_w * time_s) == pytest.approx(held.split.total_j.sum())
    assert joules_of(held)["constant"] == pytest.approx(joules["constant"])
    assert joules_of(held)["data"] == pytest.approx(0.6 * joules["data"])
    assert held.split.held == pytest.approx(0.6) and held.document()["costs"]["held"] == pytest.approx(0.6)
    assert any("its power limit binds" in note and "probably not those of this run" in note for note in held.warnings)
    shares = causes.causes_of_energy(held, tuple(map(intervals.replicas, held.each))).parts
    assert sum(part.share for part in shares) == pytest.approx(1)
    assert not limited_to(energy, 1e9).split.over_j.any()


def test_a_kernel_in_long_launches_is_held_alone_and_named(energy):
    """It is beyond the limit, while the run as a whole is not; what it gives up is gone from the total."""
    limit_w = 1.001 * energy.split.total_j.sum() / time_of(energy)
    rows = replace(energy.counts.rows, launches=np.ones(6, dtype=int))
    held = limited_to(replace(energy, counts=replace(energy.counts, rows=rows)), limit_w)
    is_over = energy.split.total_j > limit_w * rows.time_s
    assert is_over.any() and not is_over.all()
    of_kernels = dict(zip(held.counts.rows.kernel, held.split.total_j, strict=True))
    for kernel, joules, time_s, over in zip(rows.kernel, energy.split.total_j, rows.time_s, is_over, strict=True):
        assert of_kernels[kernel] == pytest.approx(limit_w * time_s if over else joules)
    assert joules_of(held)["total"] == pytest.approx(sum(of_kernels.values()))
    worst = held.counts.rows.kernel[held.split.held.argmin()]
    assert any(worst in note and "its power limit binds" in note for note in held.warnings)
    ends = intervals.of_kernels(held, intervals.replicas(held))
    assert all(low <= value <= high for (low, high), value in zip(ends, held.split.total_j, strict=True))
    assert all(
        high <= limit_w * time_s * (1 + 1e-9) for (_, high), time_s in zip(ends, held.counts.rows.time_s, strict=True)
    )
    answer = held.what_if("time=-50%")
    assert answer.energy_j["total"] / answer.time_s <= limit_w * (1 + 1e-9) and "slowed" in answer.assumes
    assert held.what_if("pi0=100%").energy_j["total"] == pytest.approx(joules_of(held)["total"])


def test_of_two_boards_each_is_held_to_its_own_limit_and_named(monkeypatch):
    free = eprof.load(MADE / "two-devices.csv", time=["regex:.*=1e-4"]).energy("gtx980")
    devices = free.counts.rows.device
    assert len(set(devices)) == 2
    joules = {device: float(free.split.total_j[devices == device].sum()) for device in set(devices)}
    seconds = {device: float(free.counts.rows.time_s[devices == device].sum()) for device in set(devices)}
    hot = max(joules, key=lambda device: joules[device] / seconds[device])
    limit_w = {device: 10 * joules[device] / seconds[device] for device in joules}
    limit_w[hot] *= 0.096
    monkeypatch.setattr("eprof.profile.priced_profile.board_limit_w", lambda energy, device: limit_w[device.label])
    held = free.profile.energy("gtx980")
    of_device = {device: held.split.total_j[held.counts.rows.device == device].sum() for device in joules}
    assert of_device[hot] == pytest.approx(limit_w[hot] * seconds[hot])
    assert of_device == pytest.approx(joules | {hot: of_device[hot]})
    assert joules_of(held)["total"] == pytest.approx(sum(of_device.values()))
    assert any(f"of {hot}, and the board may draw {limit_w[hot]:.4g} W" in note for note in held.warnings)


def test_a_limit_that_was_lowered_is_read_from_the_programs_output(tmp_path):
    text = (MADE / "new.csv").read_text()
    path = tmp_path / "new.csv"
    path.write_text("        Enforced Power Limit              : 70.5 W\n" + text)
    free = eprof.load(MADE / "new.csv", MADE / "new-times.csv").energy()
    held = eprof.load(path, MADE / "new-times.csv").energy()
    assert free.energy_j / free.time_s > 70.5
    assert held.energy_j == pytest.approx(70.5 * held.time_s) == held.split.total_j.sum()
    assert any("70.5 W, as the log tells: its power limit binds" in note for note in held.warnings)


@pytest.mark.parametrize("lost", [(), (1,), (0, 1)])
def test_without_a_time_of_every_launch_no_interval_has_an_end_and_one_sentence_says_why(tmp_path, lost):
    metrics = ("gpu__time_duration.sum", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum")
    launches = [("axpy(int)", dict(zip(metrics, (10**6, 10**6), strict=True))) for _ in range(2)]
    holes = frozenset((number, metrics[0]) for number in lost)
    path = tmp_path / "log.csv"
    path.write_text(
        ncu([Run(1, "", launches, metrics)], holes).replace(f'"{metrics[0]}","inst"', f'"{metrics[0]}","ns"')
    )
    energy = eprof.load(path, cache=False).energy("v100")
    assert (energy.document()["interval_j"]["total"][1] is None) == bool(lost)
    said = {1: "Some launches of axpy(int) have no time in the log: nothing", 2: "energy, and nothing bounds the total"}
    assert [any(text in warning for warning in energy.warnings) for text in said.values()] == [
        len(lost) == number for number in said
    ]


def test_boards_of_partners_may_draw_more_than_their_data_sheet_says():
    assert most_w("GeForce GTX 1080 Ti (0)") == 1.25 * 250
    assert most_w("Tesla V100-SXM2-16GB") == 300


@pytest.mark.parametrize("within", [1.0, 1.01, 2.0])
def test_shares_have_the_error_of_the_model_on_both_sides(energy, within):
    """By hand, with replicas that do not differ: all error is that of work, and constant power has none."""
    alike = np.repeat(prices_of(energy.costs)[:, np.newaxis], 10, axis=1)
    work_j, constant_j = energy.split.computation_j + energy.split.data_j, energy.split.constant_j.sum()
    off = (within - 1) * np.sqrt((work_j**2).sum()) / work_j.sum()
    parts = causes.causes_of_energy(energy, (Replicas(alike, 0.9, within),)).parts
    assert len(parts) > 1
    for part in parts:
        own_j, is_constant = part.share * (work_j.sum() + constant_j), part.groups == ["constant"]
        ends = []
        for times in (1 / (1 + off) ** 1.05, (1 + off) ** 1.05):
            ends.append((own_j if is_constant else own_j * times) / (work_j.sum() * times + constant_j))
        assert part.interval == pytest.approx(sorted(ends), rel=1e-9)


def test_a_table_without_replicas_has_no_interval(profile):
    document = profile.energy("jetson-tk1").document()
    assert "interval_j" not in document and "fit" not in document["costs"]
    assert {kernel["interval_j"] for kernel in document["kernels"]} == {None}


def test_replicas_say_nothing_of_another_gpu(profile):
    assert intervals.replicas(profile.energy("v100")) is None


def test_a_log_that_names_no_gpu_is_taken_at_the_users_word():
    energy = eprof.load(MADE / "ncu.csv").energy("v100")
    assert intervals.replicas(energy) is not None


def test_the_time_of_all_kernels_together_gives_an_interval_of_the_constant_part(table):
    energy = complete(eprof.load(SAMPLE / "tk1-fmm-counters.csv", time=["2.0"]).energy(table))
    watts = [refit.constant_power_w for refit in table.replicas()]
    value = 2.0 * energy.costs.constant_power_w
    low, high = 2.0 * np.percentile(watts, 5), 2.0 * np.percentile(watts, 95)
    assert whole(energy).constant == pytest.approx([min(low, value), max(high, value)])


def test_groups_have_intervals_of_their_own(energy):
    document = energy.grouped("^u_=near").document()
    group = document["groups"][0]
    kernels = [document["kernels"][place]["interval_j"] for place in group["kernels"]]
    low, high = group["interval_j"]
    assert low <= group["energy_j"]["total"] <= high
    # The last digit of a sum depends on its order.
    assert sum(pair[0] for pair in kernels) <= low * (1 + 1e-9)
    assert high * (1 - 1e-9) <= sum(pair[1] for pair in kernels)


@pytest.mark.skipif(not V100.exists(), reason="needs ../shared/data")
def test_a_real_log_says_that_fp64_is_not_told():
    document = eprof.load(V100).energy().document()
    interval, joules = document["interval_j"], document["energy_j"]
    assert interval["total"][0] < joules["total"] < interval["total"][1]
    low, high = interval["groups"]["fp64"]
    assert low == 0 and high > 1
    assert all(kernel["interval_j"] for kernel in document["kernels"])


def test_a_kernel_is_known_no_better_than_kernels_that_the_fit_had_not_seen(profile):
    energy = complete(profile.energy(with_error_of_model(3.0)))
    for (low, high), joules in zip(
        intervals.of_kernels(energy, intervals.replicas(energy)), energy.split.total_j, strict=True
    ):
        assert low <= joules / 3 * (1 + 1e-9) and high >= joules * 3 * (1 - 1e-9)
    assert whole(energy).within == 3.0


def test_errors_of_kernels_partly_cancel_in_a_total(profile):
    energy = complete(profile.energy(with_error_of_model(3.0)))
    joules = energy.split.total_j
    low, high = whole(energy).total
    assert high == pytest.approx(joules.sum() + 2 * np.sqrt((joules**2).sum()))
    assert low == pytest.approx(joules.sum() - (1 - 1 / 3) * np.sqrt((joules**2).sum()))


def test_a_model_that_errs_makes_no_interval_of_a_part_narrower(profile):
    of_prices, with_model = (whole(complete(profile.energy(with_error_of_model(within)))) for within in (1.0, 1.41))
    for name, ends in of_prices.groups.items():
        low, high = with_model.groups[name]
        assert low <= ends[0] and high >= ends[1]
    assert with_model.constant == [min(of_prices.constant[0], with_model.total[0]), of_prices.constant[1]]


def test_what_one_kernel_of_a_metered_total_takes_too_much_the_others_take_too_little(profile, table):
    """Against the errors of the kernels, put in one by one."""
    energy = profile.energy(table, metered_j=profile.energy(table).split.total_j.sum())
    joules = energy.split.total_j
    step = 1e-6
    off = joules * (1 + step * np.eye(len(joules)))  # a row for each kernel whose error it is
    changes = (off * (joules.sum() / off.sum(axis=1))[:, None] - joules) / step
    expected = np.linalg.norm(changes, axis=0)
    assert intervals._spread_of_kernels(energy, joules) == pytest.approx(expected, rel=1e-4)
    assert intervals._spread(energy, PRICED) == pytest.approx(0, abs=1e-9 * joules.sum())


def test_a_table_that_was_fitted_to_the_gpu_says_how_well_it_splits_a_metered_total(profile):
    table = with_error_of_model(1.2)
    energy = profile.energy(table, metered_j=profile.energy(table).split.total_j.sum())
    assert energy.metered.within == 1.2


def test_the_last_digits_do_not_depend_on_the_order_of_sets(eprof_started):
    documents = []
    for seed in ("1", "2"):
        done = eprof_started("report", MADE / "ncu.csv", "--format", "json", "-q", env={"PYTHONHASHSEED": seed})
        documents.append(re.sub('"created_utc":.*?,', "", done.stdout))
    assert documents[0] == documents[1]
