"""Every real log: its first screen does not contradict itself, and no energy is above what the board can draw."""

import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import convert, structs, to_builtins

from eprof.base.errors import EprofError
from eprof.base.optional import only
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.commands.report import terminal
from eprof.commands.report.advice import _levers, what_to_try, worth_trying
from eprof.commands.report.advice.between_kernels import fewer_gaps
from eprof.commands.report.advice.execution import cycles_on_tensor_cores
from eprof.commands.report.advice.savings import busy, issuing, sooner
from eprof.commands.report.advice.traffic import _least_left
from eprof.commands.report.advice.waiting import _stalls, least_bytes
from eprof.commands.report.headline import gaps_lead, headline, least_constant, name_of
from eprof.commands.report.hotspots import hotspots
from eprof.commands.report.trust import notes, trust
from eprof.commands.report.view import View
from eprof.counts import definition_files
from eprof.counts.definition import STALLS
from eprof.profile import api, schema
from eprof.profile.document import document
from eprof.profile.priced_profile import board_limit_w
from eprof.show.blocks import Share
from eprof.show.numbers import quantity

SHARED = Path(__file__).parents[3] / "shared" / "data"
FOLDERS = ("nvprof", "ncu", "ncu-modern", "traces/nsys", "traces/kineto", "rocprof", "cpu")
MOST_BYTES = 1 << 20
ENDINGS = {".csv", ".txt", ".log", ".json", ".sqlite", ".ncu-rep"}
FAMILY_OF = {count.group: count.family for count in COUNTS.values()} | {CONSTANT: CONSTANT}
STILL = ("(no kernel runs)",)
EFFECTS = ("shorten", "fewer FP", "FP32 operations", "FP64 operations")


def logs():
    for folder in FOLDERS:
        for path in sorted((SHARED / folder).rglob("*")):
            if path.suffix in ENDINGS and path.is_file() and path.stat().st_size < MOST_BYTES:
                yield path


def priced():
    """The real logs that can be reported on, priced as a report prices them."""
    for path in logs():
        try:
            energy = api.load(path, cache=False).energy()
        except EprofError:
            continue
        yield path.name, energy, View(document(energy))


@pytest.fixture(scope="module")
def screens():
    found = list(priced())
    if not found:
        pytest.skip("no log")
    return found


def screen(path):
    if path.is_relative_to(SHARED) and not path.exists():
        pytest.skip(f"no {path.name}")
    return View(document(api.load(path, cache=False).energy()))


def test_an_interval_holds_what_is_counted_and_ends_where_the_board_does(screens):
    for name, _, view in screens:
        interval_j = view.document.interval_j
        if not interval_j or interval_j.total is None:
            continue
        low, high = interval_j.total
        total = view.energy("total").value or 0.0
        assert low <= total, name
        parts = [interval_j.computation, interval_j.data, interval_j.constant, *interval_j.groups.values()]
        assert max(part[0] for part in parts if part) <= low, "no part is surely more than all may be"
        if high is None:
            continue
        assert low < high and total <= high * (1 + 1e-9), (name, total, high)
        if not view.time.lower:  # one kernel takes no more than all of them may
            ends = [kernel.interval_j[1] for kernel in view.kernels if kernel.interval_j]
            assert max((end for end in ends if end is not None), default=0.0) <= high * (1 + 1e-9), name


def test_no_kernel_no_device_and_no_total_draws_more_than_the_boards(screens):
    checked = 0
    for name, energy, view in screens:
        if energy.costs is None or energy.modelled is not None:
            continue
        watts = {part.device.label: board_limit_w(energy, part.device) for part in energy.profile.counted}
        timed = [kernel for kernel in view.kernels if kernel.time_s and not kernel.time_marks.count("missing")]
        room_j = dict.fromkeys(watts, 0.0)
        for kernel in timed:
            moment = 1 if kernel.time_s / kernel.launches >= 0.01 else 3
            most_j = watts[kernel.device] * moment * kernel.time_s * (1 + 1e-9)
            assert (kernel.energy_j.total or 0.0) <= most_j, (name, kernel.name)
            assert not kernel.interval_j or kernel.interval_j[1] is None or kernel.interval_j[1] <= most_j, name
            room_j[kernel.device] += watts[kernel.device] * kernel.time_s
        for device, most_j in room_j.items():
            joules = sum(kernel.energy_j.total or 0.0 for kernel in timed if kernel.device == device)
            assert joules <= most_j * (1 + 1e-9), (name, device)
        if len(timed) == len(view.kernels) and (interval := view.document.interval_j):
            assert interval.total[1] is None or interval.total[1] <= sum(room_j.values()) * (1 + 1e-9), name
            checked += math.isfinite(sum(room_j.values()))
    assert checked > 20


def test_the_headline_names_the_largest_part(screens):
    for name, _, view in screens:
        text, causes = headline(view).text, view.causes_of(view.document)
        if causes is None or view.above.value is None:
            continue
        assert name_of(view, causes.parts[0]) in text, (name, text)
        shares = [part.share for part in causes.parts]
        assert shares == sorted(shares, reverse=True) and sum(shares) == pytest.approx(1, abs=1e-6), name
        whole = view.counted_energy(view.document).value
        for part in causes.parts:
            joules = sum(view.groups[group].value or 0.0 for group in part.groups)
            assert part.share == pytest.approx(joules / whole, rel=1e-6), (name, part)
            assert part.interval is None or 0 <= part.interval[0] <= part.share <= part.interval[1] <= 1, (name, part)
        told = [float(share) for share in re.findall(r"([\d.]+)\s%", text)]
        assert all(share <= 100 for share in told), (name, text)


def test_what_is_named_first_is_some_of_the_longest_in_the_bar_or_longer(screens):
    checked = 0
    for name, _, view in screens:
        for entry in (view.document, *view.kernels):
            causes = view.causes_of(entry)
            bar = {family: getattr(entry.energy_j, family) or 0.0 for family in ("computation", "data", CONSTANT)}
            if causes is None or view.is_modelled or not sum(bar.values()):
                continue
            longest = max(bar, key=bar.__getitem__)
            families = {FAMILY_OF[group] for group in causes.parts[0].groups}
            is_longer = causes.parts[0].share >= max(bar.values()) / sum(bar.values()) * (1 - 1e-9)
            assert longest in families or is_longer, (name, causes)
            checked += longest not in families
    assert checked, "some part of two is longer than what is longest alone"


def test_a_kernel_that_did_not_change_has_the_cause_that_it_had():
    told = []
    for what in ("baseline", "div-to-mult"):
        path = SHARED / "ncu" / f"v100-miniweather-{what}.ncu-rep"
        if not path.exists():
            pytest.skip("no log")
        kernels = document(api.load(path, cache=False).energy()).kernels
        told.append(only([kernel for kernel in kernels if "tendencies_x_309" in kernel.name]))
    before, after = told
    assert before.energy_j.total == pytest.approx(after.energy_j.total, rel=1e-3)
    assert before.causes.largest == after.causes.largest
    assert before.causes.parts[0].groups == after.causes.parts[0].groups


def test_no_screen_says_both(screens):
    for name, _, view in screens:
        try_text, trust_text, text = what_to_try(view).text, trust(view).text, headline(view).text
        assert not ("no joules" in try_text and re.search(r"\d [mkµ]?J\b", text)), name
        assert not (trust_text.startswith("good") and re.search("Missing|Not counted", trust_text)), (name, trust_text)
        assert "no energy is shown" not in trust_text or not view.has_energy, name


def test_work_that_was_not_counted_is_never_read_as_constant_power(screens):
    for name, _, view in screens:
        text, interval = headline(view).text, view.document.interval_j
        causes = view.causes_of(view.document)
        most = interval.uncounted.get("total", 0.0) if interval else 0.0
        is_open = most is None or most > (view.energy("total").value or 0.0)
        if is_open and causes and causes.parts[0].groups == [CONSTANT]:
            assert "work that was not" in text or re.search(",.* at most| while it runs", text), (name, text)


def test_loads_in_flight_are_for_kernels_that_wait_for_them(screens):
    told = {}
    for name, _, view in screens:
        text = what_to_try(view).text
        if "in flight" not in text:
            continue
        kernel = max(view.kernels, key=lambda kernel: kernel.energy_j.constant or 0.0)
        issued, cycles = (view.amount(kernel, word).value for word in ("warp_issue", "sm_active_cycle"))
        told[name] = text
        most = max(busy(kernel).values(), default=0.0)
        assert most < 0.6, (name, text, "a unit that is busy holds it back")
        assert most or not issued or not cycles or issued < cycles, (name, text)
        signs = kernel.signs or {}
        assert signs.get("occupancy", 1.0) < 0.5 or signs.get("memory_stall", 1.0) >= 0.3, (name, text)
    assert told and "k20c-metrics-summary.csv" not in told


def test_signs_of_waiting_are_the_logs_own(screens):
    name = "k20c-metrics-summary.csv"
    view = next(view for found, _, view in screens if found == name)
    told = re.findall(
        r'"(achieved_occupancy|stall_memory_dependency)".*,([\d.]+)%?$', (SHARED / "nvprof" / name).read_text(), re.M
    )
    occupancy, stall = (float(dict(told)[metric]) for metric in ("achieved_occupancy", "stall_memory_dependency"))
    signs = view.kernels[0].signs
    assert signs["occupancy"] == pytest.approx(occupancy)
    assert signs["memory_stall"] == pytest.approx(stall / 100)


def test_what_kernels_wait_for_most_leads_and_saves_no_more_than_its_share_of_stalls(screens):
    told = {name: what_to_try(view).text for name, _, view in screens}
    assert "rtx3070-scan.ncu-rep" in told
    # By the report 20.4 of 35.4 cycles between instructions; by the other log more stalls than of any other reason.
    assert "synchronise less in kernel (58 % of its stalls are at barriers)" in told["rtx3070-scan.ncu-rep"]
    assert "(20 % of its stalls are at barriers)" in told["k20c-metrics-summary.csv"]
    view = next(view for name, _, view in screens if name == "k20c-metrics-summary.csv")
    lever = next(lever for lever in _levers(view) if "barriers" in lever.act)
    assert lever.most == pytest.approx(0.20476469 * view.timed(view.kernels[0]))


def test_alike_advice_of_several_kernels_is_added_up(screens):
    view = next(view for name, _, view in screens if name == "titan-wide-trace-events-and-metrics.csv")
    held = [(kernel.signs["barrier_stall"], view.timed(kernel)) for kernel in view.kernels]
    saved_j = sum(share * joules for share, joules in held)  # the least of the four is 22 %, and none is near its peak
    assert saved_j == pytest.approx(1.305, rel=0.01) and "and 3 more kernels" in what_to_try(view).text
    assert f"saves up to {quantity(saved_j, 'J')}" in what_to_try(view).text


def test_what_is_paid_once_leads_where_it_is_most_of_all(screens):
    view = next(view for name, _, view in screens if name == "titan-xp-gpu-trace-unified-memory-columns.csv")
    most_j = view.document.gaps.first_s * view.document.constant_w
    assert most_j > 0.9 * view.whole and what_to_try(view).text.startswith("do more in each run (618\u202fms before")
    assert f"saves up to {quantity(most_j, 'J')} (91\u202f%" in what_to_try(view).text


def test_rates_without_times_are_what_a_second_takes(screens):
    found = {name: view for name, _, view in screens}
    view = found["sm120-cutlass-roofline-body-items.csv"]  # 409 multiply-adds a cycle at 2.40 GHz, 99 GB/s of DRAM
    assert view.time.value == pytest.approx(1.0) and view.energy("constant").value == pytest.approx(
        view.document.constant_w
    )
    assert view.amount(view.document, "fp32_fma").value == pytest.approx(408.8 * 2.4e9, rel=2e-3)
    assert view.amount(view.document, "dram").value == pytest.approx(98.9e9, rel=0.01)
    assert "(37.5 to 225\u202fW) while it runs" in headline(view).text and what_to_try(view).text.startswith(
        "choose a kernel for tensor cores"
    )
    view = found["text-gtx1070-metrics-thrust-templates.txt"]
    assert view.amount(view.document, "dram_read").value == pytest.approx(2**30 * (1.1651 + 2.1467) / 2, rel=1e-3)
    text = what_to_try(view).text.replace("\u202f", " ")
    assert text.startswith("coalesce accesses: 77 % of the sectors that thrust for each asks for"), (
        "53 % of the other's"
    )
    assert "was not counted" in text
    view = found["text-p100-metrics-no-csv.txt"]
    lever = max(_levers(view), key=lambda lever: lever.likely)
    assert lever.act.startswith("batch the products") and view.kernels[0].launches > 50_000
    assert lever.most == pytest.approx((1 - 0.5545) * view.energy("constant").value * 53_832 / 55_087, rel=1e-4)
    assert not any("each start takes" in lever.why for lever in _levers(view)), "nobody knows how long a launch took"
    assert headline(view).text.startswith("61.9\u202fW (")


def test_every_stall_with_a_remedy_is_a_sign_that_profilers_count():
    assert {stall.sign for stall in _stalls()} == set(STALLS)
    for profiler, capability in (("ncu", "9.0"), ("nvprof", "6.0")):
        counted = set(STALLS) & definition_files.find(profiler, capability).components.keys()
        assert len(counted) > len(STALLS) / 2


def test_bank_conflicts_and_spills_are_levers_where_the_log_has_them(screens):
    view = next(view for name, _, view in screens if name == "rtxa6000-sgemm-raw-wide.csv")
    assert not re.search("conflicts|spill", what_to_try(view).text)
    document = convert(to_builtins(view.document), schema.Profile)
    for kernel in document.kernels:
        kernel.signs = {"bank_conflict": 0.9}
    shared_j = sum(view.joules_by_kernel("shared"))
    assert f"saves {quantity(0.9 * shared_j, 'J')}" in " ".join(worth_trying(View(document)))
    for kernel in document.kernels:
        kernel.signs = {}
        kernel.counts["local_read"] = schema.Count(value=1e15, unit="byte", energy_j=0.0, marks=[])
    assert "spill no registers" in " ".join(worth_trying(View(document)))


def test_without_a_time_constant_power_lasts_as_long_as_flops_take_at_their_peak(screens):
    view = next(view for name, _, view in screens if name == "titanx-pascal-wide-trace-two-flop-metrics.csv")
    least_j = 71.5 * 10756893856 / 10.97e12 / 1.15  # W, flops of the log, a second at the sheet's clock, beyond it
    assert headline(view).text.endswith(f"Constant power adds at least {quantity(least_j, 'J')} (FP32 at its peak).")
    assert "FP32 was counted (at least 5.38" in headline(view).text, "10.76 G of flops over 2"
    assert "the rest of FP32" in trust(view).text, "what was counted of it is no part of what was not"


def test_no_bar_has_shares_of_a_whole_of_which_much_was_not_counted():
    view = screen(SHARED / "nvprof" / "v100-events-and-metrics-summary-with-total.csv")
    assert least_constant(view)[1] == "DRAM at its peak" and view.energy(CONSTANT).value is None
    uncounted = view.document.interval_j.uncounted
    assert uncounted["total"] is None or uncounted["total"] > view.above.value
    assert "░" not in terminal.text(view.document) and "at least 691\u202fµJ" in headline(view).text


def test_no_bar_has_one_colour_and_no_row_repeats_the_one_cause_of_all(screens):
    checked = 0
    for name, _, view in screens:
        bars = [line for line in terminal.text(view.document).splitlines() if re.match("[░▓█]{8}", line)]
        assert not any(re.search(r"\b100\s%", line) for line in bars), (name, bars)
        causes = view.causes_of(view.document)
        if re.search(", (all of it|with nothing but) ", headline(view).text):
            cause = name_of(view, causes.parts[0])
            assert all(cause not in str(row.cells[-1]) for row in hotspots(view).rows), name
            checked += 1
    assert checked > 5


def test_instructions_of_a_log_of_rates_are_those_a_cycle_in_the_cycles_with_warps():
    view = screen(SHARED / "nvprof" / "text-p100-metrics-no-csv.txt")
    launches = {1255: 1.994875 * 0.9422, 53832: 1.450637 * 0.5545}  # of each: instructions a cycle times activity
    issued = 56 * 1.328e9 * sum(number * rate for number, rate in launches.items()) / sum(launches)
    told = view.words["warp_issue"]
    assert told.value.value == pytest.approx(issued, rel=1e-6) and told.energy.value == pytest.approx(16.5, rel=0.01)
    assert "and 16.5\u202fW of work." in headline(view).text and "No work" not in trust(view).text


def test_multiprocessors_that_are_taken_to_be_always_active_are_told_to_be():
    view = screen(SHARED / "nvprof" / "text-gtx1070-metrics-thrust-templates.txt")
    assert "Multiprocessors: taken to be always active (15.9\u202fW)." in trust(view).text
    text = headline(view).text
    assert text.startswith("58.9\u202fW (") and "16.0\u202fW of work" in text
    assert "active" not in text and "counted," not in text, "the bar and the rows have the same joules"


def test_nobody_is_asked_to_do_more_in_a_launch_of_a_library(tmp_path):
    """Synthetic: launches of thrust are its own, however short; those of `mine` are not."""
    header = "Type,Time(%),Time,Calls,Avg,Min,Max,Name\n,%,ms,,us,us,us,"
    thrust = "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__scan::ScanAgent<int*>>(int*)"
    rows = [f'"GPU activities",50.0,4.0,1000,4.0,3.9,4.1,"{name}"' for name in (thrust, "mine(float*)")]
    log = tmp_path / "summary.csv"
    log.write_text("\n".join([header, *rows]) + "\n")
    act = next(act for act in worth_trying(screen(log)) if "in each launch" in act)
    assert "do more in each launch of mine (now 4.00" in act and "more kernel" not in act
    log.write_text("\n".join([header, rows[0]]) + "\n")
    assert not any("in each launch" in act for act in worth_trying(screen(log)))


def test_a_saving_is_never_from_nothing(screens):
    for name, _, view in screens:
        assert "saves 0" not in what_to_try(view).text, (name, what_to_try(view).text)


def test_what_was_counted_alone_is_no_share_and_saves_nothing(screens):
    alone = [name for name, _, view in screens if headline(view).text.startswith("Little but ")]
    assert "rtx3050laptop-indian-grouping.csv" in alone
    for name, _, view in screens:
        if name in alone:
            tried = what_to_try(view).text.replace("(what that saves was not counted)", "")
            assert "%" not in headline(view).text and "saves" not in tried, name
            assert "little but" in str(hotspots(view).rows[0].cells[-1]), "of what takes less more may be known"


def test_fewer_bytes_save_at_most_what_each_tenth_of_them_does_and_the_bytes_of_other_levels(screens):
    for name, _, view in screens:
        for change in _levers(view):
            if "bytes" in change.act and change.each == "fewer" and change.most:
                other_j = sum(kernel.energy_j.data or 0.0 for kernel in view.kernels) / 2
                assert change.most <= 10 * max(change.ends or (change.saves,)) * 1.001 + other_j, (name, change)


def test_types_half_as_wide_halve_what_every_level_moves():
    path = SHARED / "ncu" / "v100-miniweather-div-to-mult.ncu-rep"
    if not path.exists():
        pytest.skip("no such log")
    # Half of 448 mJ of DRAM at its dearest, of 397 mJ of L2 and of 102 mJ of L1; and 237 mJ of constant power, of which
    # less is left the more of the 2.14 J DRAM takes: 90 %.
    told = what_to_try(screen(path)).text.replace("\u202f", " ")
    assert re.search(r"fewer DRAM bytes .* saves up to 68\d mJ \(32 % of .* half as wide", told), told


def test_divisions_in_fp64_are_known_by_their_special_functions(screens):
    path = SHARED / "ncu" / "v100-miniweather-baseline.ncu-rep"
    text = what_to_try(screen(path)).text
    # 1.278 G less 83.88 M conversions / 2, and 593.5 M less 604.0 M / 2: the other kernels divide indices alone.
    assert text.startswith(
        "call fewer special functions in FP64 code (1.53\u202fG, most in compute_tendencies_x_279_gpu"
    )
    # Its own after-version takes 616 mJ less for 1.016 of these 1.236 G: issue slots and time fall as well.
    lever = next(lever for lever in _levers(screen(path)) if "FP64 code" in lever.act)
    after_j, before_j = (
        screen(path.with_stem(f"v100-miniweather-{name}")).whole for name in ("div-to-mult", "baseline")
    )
    assert 0.4 * (before_j - after_j) < lever.ends[0] < before_j - after_j < lever.ends[1]
    # That version takes 17.7 % less time: its kernel keeps DRAM busier than this one does FP64 units.
    assert "perhaps 15\u202f% less time, if they are divisions" in text


def test_fp32_for_fp64_saves_time_where_fp64_is_what_takes_it(screens):
    view = next(view for name, _, view in screens if name == "gtx1080ti-cuda8-metrics-summary-cublas-templates.csv")
    text = what_to_try(view).text
    assert "use FP32 for FP64" in text and re.search(r"\d+\s%\sless time", text), text


def test_a_saving_is_within_what_it_acts_on(screens):
    checked = 0
    for name, _, view in screens:
        causes, whole = view.causes_of(view.document), view.counted_energy(view.document).value
        besides = {change.act for change in fewer_gaps(view)}
        for change in _levers(view):
            if change.saves <= 0:
                continue  # never told
            all_j = view.whole if change.act in besides else whole or view.time.value or view.everything
            low, high = change.ends or (change.saves, change.saves)
            assert 0 <= low <= change.saves <= high <= (change.most or all_j) <= all_j * (1 + 1e-9), (name, change)
            group = re.match(r"move fewer (.*?) bytes", change.act)
            part = group and next(
                (part for part in causes.parts if group[1] in map(view.in_prose, part.groups) and part.interval), None
            )
            if part and change.ends and change.saves <= 0.1 * part.share * whole * (1 + 1e-9):  # no time with it
                assert high <= 0.1 * part.interval[1] * whole * (1 + 1e-9), (name, change)
                checked += 1
    assert checked > 5


def test_a_cheaper_kernel_does_the_same_product(screens):
    told = {name: what_to_try(view).text for name, _, view in screens if "the same product" in what_to_try(view).text}
    assert told.keys() == {"a100-pcie-cutlass-details-program-output.csv", "rtxa6000-sgemm-raw-wide.csv"}
    view = next(view for name, _, view in screens if name == "rtxa6000-sgemm-raw-wide.csv")
    cutlass = next(kernel for kernel in view.kernels if "cutlass" in kernel.name)
    for changes in ({"dram_write": 1.1}, {"fp32_fma": 1.1}, {"threads": 1.5}):
        document = convert(to_builtins(view.document), schema.Profile)
        changed = document.kernels[view.kernels.index(cutlass)]
        for word, factor in changes.items():
            if word in changed.counts:
                changed.counts[word].value *= factor
            else:
                changed.signs[word] *= factor
        assert "use cutlass sgemm" not in what_to_try(View(document)).text, changes
    document = convert(to_builtins(view.document), schema.Profile)
    for kernel, name in zip(document.kernels, ("sgemm_nt", "sgemm_tn"), strict=False):
        kernel.name = name
    assert "sgemm_naive_kernel" not in what_to_try(View(document)).text, "operands are laid out otherwise"


def test_a_product_moves_each_operand_once_at_least(screens):
    """Of whatever shape: two matrices and their product, of N x N each, take the fewest bytes of all."""
    view = next(view for name, _, view in screens if name == "h100-sxm-text-cutlass-tma.txt")
    kernel = view.kernels[0]
    flops, moved = view.amount(kernel, "tensor_fp16").value, view.summed(kernel, ("dram",)).value
    least = 3 * 2 * (flops / 2) ** (2 / 3)
    assert least_bytes(view, kernel) == pytest.approx(least) and least < moved
    for m, n, k in ((8192, 8192, 8192), (128, 4096, 1 << 20)):
        assert 3 * (m * n * k) ** (2 / 3) <= (m * k + k * n + m * n) * (1 + 1e-9)
    change = next(change for change in _levers(view) if change.act.startswith("move fewer DRAM"))
    assert (
        "an order that reuses what L2 holds" in change.act
        and change.most < (1 - least / moved) * view.interval("dram")[1] * 1.01
    )
    for name in ("spgemm_kernel", "cgemm_nn", "implicit_gemm"):
        assert least_bytes(view, structs.replace(kernel, name=name)) == 0


def test_where_no_joules_are_known_time_is_saved(screens):
    told = {name: what_to_try(view).text for name, _, view in screens}
    (view,) = [view for name, _, view in screens if name == "gtx1070-gpu-summary-srad.csv"]
    texts = [change.text(view.time.value, "s") for change in _levers(view)]
    (starts,) = [text.replace("\u202f", " ") for text in texts if "if each start takes" in text]  # 502 of 1.23 µs
    assert re.search(r"saves up to 617 µs .* if each start takes 1.23 µs, as the shortest launch does", starts)
    assert re.search(r"\(6 copies in 245\sms.*saves up to 163\sms", told["k20c-gpu-summary-no-type-column.csv"])


def test_a_unit_that_is_busy_is_relieved_before_accuracy_is_lost(tmp_path):
    path = SHARED / "ncu-modern" / "rtxpro6000-text-cublas-fp16.txt"
    if not path.exists():
        pytest.skip("no such log")
    own = tmp_path / "own.txt"
    own.write_text(re.sub(r"cutlass_80_tensorop_\w+", "wmma_gemm", path.read_text(encoding="utf-8")), encoding="utf-8")
    told = what_to_try(screen(own)).text.replace("\u202f", " ")
    assert told.startswith("move fewer L2 bytes (L2 is 89 % busy; larger tiles"), "what its user can write anew"
    told = what_to_try(screen(path)).text.replace("\u202f", " ")
    assert told.startswith("use FP8 for FP16"), "cuBLAS has no larger tiles for its user"


def test_what_a_kernel_waits_for_is_told_where_a_log_tells_it(screens):
    told = {name: (what_to_try(view).text.replace("\u202f", " "), view) for name, _, view in screens}
    text, view = told["l4-text-fp16-mma-16384-seconds.txt"]  # no stalls were counted
    assert text.startswith("move fewer DRAM bytes (larger tiles in shared memory and registers: a launch moves 2.20 TB")
    left, why = _least_left(view, "dram")  # an L4 has 24 GB
    assert left[0] == pytest.approx(24 * 2**30 / 2.202259e12, rel=1e-3) and "288" not in why
    text, view = told["sm120-cutlass-basic-rules-body-items.csv"]
    assert text.startswith("choose a kernel for tensor cores of this GPU instead of cutlass gemm fp16 128x256x32")
    lever, signs = next(lever for lever in _levers(view) if "Volta" in lever.act), view.kernels[0].signs
    least_j = (1 - signs["dram_busy"]) * view.timed(view.kernels[0])
    assert signs["dram_busy"] < signs["l1_busy"], "units that the emulation keeps busy end nothing"
    assert lever.most > least_j and "if DRAM were always busy" in text
    text, view = told["b200-raw-wide.csv"]  # tcgen05 does four times the flops a cycle of what it uses, 61 % busy
    assert text.startswith("choose a kernel for tcgen05") and "(older mma.sync keeps its pipe 61 % busy)" in text
    lever = next(lever for lever in _levers(view) if "tcgen05" in lever.act)
    assert lever.most == pytest.approx((1 - 0.6142 / 4) * view.energy("constant").value, rel=1e-3)
    view = told["sm120-cutlass-basic-rules-body-items.csv"][1]
    simt = [structs.replace(kernel, name="Gemm<MmaPipelined<MmaSimtPolicy>>") for kernel in view.kernels]
    assert "cores of this GPU" not in " ".join(worth_trying(View(structs.replace(view.document, kernels=simt))))


def test_what_takes_the_time_is_asked_before_a_change_is_picked(screens):
    found = {name: view for name, _, view in screens}
    # A Kepler fills 783275386 + 304717453 slots, of four in each of its cycles: a pair takes one.
    assert "fills 60\u202f% of its issue slots" in what_to_try(found["k20c-events-summary-no-total.csv"]).text
    paired = found["k20c-metrics-summary.csv"]
    assert issuing(paired.kernels[0]) == pytest.approx(0.49000666), "issue_slot_utilization of the log"
    assert "issue slots" not in " ".join(worth_trying(paired))
    uncounted = [view for name, view in found.items() if name.startswith("titan") and view.document.device.capability]
    assert uncounted and not any("issue" in busy(kernel) for view in uncounted for kernel in view.kernels)
    assert "15\u202f% of roofline" in str(
        hotspots(found["cc80-details-page-rules-estimated-speedup.csv"]).rows[0].cells[-1]
    )
    # Bytes of DRAM come through L2, which is next to hold the kernel back.
    rows = View(document(api.load(SHARED / "ncu-modern" / "h100-pcie-rmsnorm.ncu-rep", cache=False).energy()))
    rows = next(change for change in _levers(rows) if "fewer DRAM" in change.act)
    assert re.search(r"up to (9|10)(\.\d)?\s% less time", rows.beside), rows.beside


def test_products_on_tensor_cores_end_sooner_until_another_unit_holds_them_back(screens):
    view = next(view for name, _, view in screens if name == "rtxpro6000-text-cublaslt-fp8.txt")
    # Multiprocessors are 80 % busy, L1 44 %. 2 x 8192^3 flops take 36.9 % of the cycles at 512 flops a cycle.
    assert re.match("multiply on tensor cores, in TF32.* 45\\s% less time", what_to_try(view).text)
    kernel = view.kernels[0]
    assert cycles_on_tensor_cores(view, kernel, "tensor_tf32") == pytest.approx((0.369, 0.369), rel=0.01)
    geforce = structs.replace(kernel, signs={**kernel.signs, "multiprocessors": 170})  # an RTX 5090, of half the rate
    assert cycles_on_tensor_cores(view, geforce, "tensor_tf32") == pytest.approx((0.738, 0.738), rel=0.01)


STRANGE = ("SM overhead", "its default", "recovered from", "operands", "campaigns", "nor its time")


def test_no_screen_has_words_that_strangers_did_not_understand(screens):
    for name, _, view in screens:
        said = " ".join([headline(view).text, headline(view).lead, what_to_try(view).text, trust(view).text])
        assert not [words for words in STRANGE if words in said], (name, said)
        assert not re.search(r"of 36 cores were", said), "of another CPU's"
        assert "The time of" not in " ".join(notes(view)) or "Neither time nor work" not in said, name


def test_a_product_that_reads_all_from_l1_is_tiled(screens):
    view = next(view for name, _, view in screens if name == "cc80-roofline-metrics-no-preamble.csv")
    assert "tile gemm_v0 in shared memory and registers (L1 moves" in what_to_try(view).text


JOULES = r"([\d.]+)\s?([kmµnp]?)J"
SCALES = {"k": 1e3, "": 1.0, "m": 1e-3, "µ": 1e-6, "n": 1e-9, "p": 1e-12}


def joules_in(pattern, text):
    for number, scale in re.findall(pattern, text):
        yield float(number) * SCALES[scale]


def test_no_headline_has_a_total_below_a_part_of_it(screens):
    ends = []
    for name, _, view in screens:
        told = headline(view)
        text = told.lead if gaps_lead(view) else told.text  # no gap is a part of the kernels' total
        most = list(joules_in(f"at most {JOULES}", text))
        parts = list(joules_in(JOULES, text))
        assert not most or max(parts) <= most[0], (name, text)
        for part, low, high in re.findall(r"([\d.]+\s?[kmµnp]?J) \(([^()]*?) to ([^()]*?J)\b", text):
            low += "" if "J" in low else re.sub(r"[\d.]", "", high)
            low_j, part_j, high_j = (next(joules_in(JOULES, joules)) for joules in (low, part, high))
            assert low_j <= part_j <= high_j, (name, text)
        if "may draw" in text:
            limit_j = view.document.interval_j.limit_w * view.time.value
            assert most[0] == pytest.approx(limit_j, rel=0.01), (name, text)
            ends.append(name)
    assert len(ends) > 10


def test_clocks_that_a_log_has_are_those_of_its_prices(screens):
    """A log of ncu names no GPU, and its clocks are those of the run all the same."""
    checked = 0
    for name, energy, view in screens:
        clocks, costs = energy.profile.clocks, view.document.costs
        if clocks is None or clocks.core_mhz is None or energy.table is None:
            continue
        listed = [setting.core_mhz for setting in energy.table.settings if setting.core_mhz]
        if energy.profile.is_named_otherwise(energy.table):
            continue
        if listed and min(listed) <= clocks.core_mhz <= max(listed):
            assert costs.setting["core_mhz"] == pytest.approx(clocks.core_mhz, rel=0.011), name
            checked += 1
    assert checked


def test_what_is_tried_is_something_that_one_does_and_the_largest_of_all(screens):
    for name, _, view in screens:
        text = what_to_try(view).text
        assert not any(effect in text for effect in EFFECTS), (name, text)
        assert len(text) > len("nothing"), name
        if view.has_energy and view.document.device.capability == "8.0":
            assert "FP8" not in text and "FP4" not in text, (name, text)


def test_shares_of_a_screen_are_of_one_whole(screens):
    numbers = []
    for name, _, view in screens:
        rows = [
            (row.cells[0], cell.value) for row in hotspots(view).rows for cell in row.cells if isinstance(cell, Share)
        ]
        known = [share for _, share in rows if share is not None]
        assert sum(known) <= 1 + 1e-9, (name, known)
        of_kernels = [share for label, share in rows if share is not None and label not in STILL]
        assert min(of_kernels[1:], default=1.0) >= 0.01, (
            name,
            "a kernel that takes next to nothing is not worth a row",
        )
        numbers += known
    assert len(numbers) > 100


def test_the_name_of_a_kernel_tells_the_type_of_its_tensor_work(screens):
    for name, energy, _ in screens:
        if "cublas-tf32" in name:
            counts = energy.counts.amounts
            assert counts["tensor_fp16"].sum() == 0
            assert counts["tensor_tf32"].sum() == pytest.approx(2 * 8192**3, rel=0.01)


def test_what_a_group_lacks_is_named_by_its_part_where_the_rest_was_counted(screens):
    texts = {name: trust(view).text for name, _, view in screens}
    assert "FP32 other (" in texts["sm120-cutlass-basic-rules-body-items.csv"]


def test_what_a_screen_says_is_worth_saying(screens):
    """Launches where there are several, no error of work that was not priced, no profiler that cannot run there."""
    calls = 0
    for name, _, view in screens:
        try_text, trust_text, table = what_to_try(view).text, trust(view).text, hotspots(view)
        assert not (view.document.device.name or "").startswith("AMD") or "ncu" not in try_text, (name, try_text)
        assert "new kernels" not in trust_text or not re.search("Missing|Not counted|Nothing", trust_text), name
        together = re.search(r"together at most (\S+ \S+)(.*)", trust_text.replace("\u202f", " "))
        if together:
            each = JOULES.replace("J", "[JW]")  # of a second's rates they are W
            parts = sum(joules_in(rf"\({each}\)", trust_text))
            assert parts <= 1.05 * next(joules_in(each, together[1])) or "(" in together[2], (name, trust_text)
        if view.document.groups or view.nouns.is_of_cpu:
            continue
        for row, kernel in zip(
            (row for row in table.rows if row.cells[0] not in STILL),
            sorted(view.kernels, key=lambda kernel: -(view.ranked(kernel).value or 0.0)),
            strict=False,
        ):
            told = " ".join(cell for cell in row.cells if isinstance(cell, str))
            assert kernel.launches == 1 or f"{kernel.launches:,}" in told, (name, told)
            assert "missing" not in kernel.time_marks or "launches of" not in told, (name, told)
            calls += kernel.launches > 1
    assert calls > 50


def test_multiprocessors_tell_the_board_of_a_log_that_names_none(screens):
    boards = {
        name: (energy.table and energy.table.device, energy.profile.counted[0].device.told.sms)
        for name, energy, _ in screens
    }
    assert boards["rtx5070-text-wmma-fp16-4096.txt"] == ("GeForce RTX 5070", 48)
    assert boards["sm120-cutlass-roofline-body-items.csv"] == ("GeForce RTX 5060 Ti", 36), "32 bytes a cycle, 13.79 GHz"
    assert boards["text-details-heat3d.txt"][1] == 34, "their mean over launches"
    of_188 = "RTX PRO 6000 Blackwell Max-Q Workstation Edition", 188
    assert boards["rtxpro6000-text-mma-warptile.txt"] == of_188, "1.01 GHz: its repository names this board"


@pytest.mark.parametrize(
    ("name", "act", "price"),
    [
        (
            "text-details-heat3d.txt",
            r"fewer DRAM bytes .*up to 2.58 J \(50 % of .*half as wide[^;]*; 516 mJ for each 10 % fewer",
            "10 % less time",
        ),  # at the roofline, what DRAM does not take goes with time; half the bytes save no more than half, whatever they cost
        (
            "rtx5070-text-wmma-fp16-4096.txt",
            r"ask shared memory less .*L1 is 94 % busy, 39 % of stalls .*no bank conflicts",
            "less time",
        ),  # its tiles are in shared memory already; and no FP8: WMMA has none
        (
            "nsightful-copy_blocked.ncu.csv",
            r"coalesce accesses: 75 % of the sectors .*saves up to .*75 % of",
            "perhaps 75 % less time",
        ),
        (
            "cc80-details-page-rules-estimated-speedup.csv",
            r"more warps in flight .* \(occupancy 12 %: it spills registers, so split it\)",
            "if multiprocessors were always busy",  # 32 % so; and more blocks would queue: registers let one in
        ),
        ("h100-sxm-text-cublas-tf32.txt", r"FP16 for TF32 on tensor cores and in memory", "22 to 50 % less time"),
        (
            "h100-pcie-rmsnorm.ncu-rep",
            # 597 MB of DRAM at 69.8 pJ, 785 MB of L2 at 19.24 and of L1 at 6.54, less 1.59 GB of shared memory at 2.18.
            r"keep rows of rms_norm_matrix_kernel on the chip .*1.74 bytes.* saves 58.\d to ",
            "28 % less time",
        ),  # 468 MB read of 268 MB, in a launch of 8192 rows of 8192 numbers
        ("titan-wide-trace-events-and-metrics.csv", r"synchronise less in __kernel___forma_kernel__1__ ", ""),
        ("a100-details-kernel-time-program-output.csv", r"batch the products of cublas sgemm 32x32 tn", ""),
        ("rtxa6000-sgemm-raw-wide.csv", r"the same product, 13 to 89 % less a launch", ""),
    ],
)
def test_a_change_is_of_what_holds_a_kernel_back_and_says_its_time(screens, name, act, price):
    """What ncu's utilisations and rules say in the logs, read by eye."""
    texts = [what_to_try(view).text for log, _, view in screens if log == name]
    if not texts:
        pytest.skip("no such log")
    text = texts[0].replace("\u202f", " ")
    assert re.search(act, text), text
    assert price in text, text


def test_a_narrower_type_saves_what_the_same_product_in_it_takes_less(screens):
    """Two logs of 8192 x 8192 x 8192 on one H100: TF32 takes 1.22 J and 3.00 ms, FP16 36 % less time."""
    views = {name: view for name, _, view in screens}
    wide, narrow = (views[f"h100-sxm-text-{name}.txt"] for name in ("cublas-tf32", "cutlass-tma"))
    change = next(change for change in _levers(wide) if change.act.startswith("use FP16 for TF32"))
    low_j, high_j = change.ends
    assert low_j < wide.energy("total").value - narrow.energy("total").value < high_j
    low, high = map(int, re.findall(r"(\d+) to (\d+).% less time", change.beside)[0])
    assert low < 100 * (1 - narrow.time.value / wide.time.value) < high


def test_a_kernel_ends_sooner_until_the_next_unit_holds_it_back():
    def kernel(**shares):
        return SimpleNamespace(signs={f"{unit}_busy": share for unit, share in shares.items()}, counts={})

    assert sooner(kernel(dram=0.9, l2=0.4), {"dram": 0.8}) == pytest.approx(0.2)
    assert sooner(kernel(dram=0.9, l2=0.81), {"dram": 0.8}) == pytest.approx(0.1)
    assert sooner(kernel(dram=0.5, l2=0.4), {"dram": 0.8}) == 0.0, "it waits: nothing is busy"
    assert sooner(kernel(dram=0.5, l2=0.9), {"dram": 0.8}) == 0.0, "another unit holds it back"
    assert sooner(kernel(sm=0.97, l1=0.975, dram=0.25), {"l1": 0.8}) == pytest.approx(0.2), "one pipe, counted twice"
    assert sooner(kernel(sm=0.97, l1=0.3), {"l1": 0.8}) == 0.0
    assert sooner(SimpleNamespace(signs=None, counts={}), {"dram": 0.8}) == 0.0


def test_copies_that_kernels_cannot_hide_are_not_to_be_hidden_by_them(screens):
    """The copies of the P100's log last 50 ms, its kernels 6."""
    texts = {name: what_to_try(view).text for name, _, view in screens}
    assert "copy while" not in texts.get("text-p100-gpu-trace.txt", "")
    assert "the gap of 746\u202fms" in texts.get("k20c-gpu-trace.csv", "the gap of 746\u202fms")


@pytest.mark.parametrize(
    ("log", "prices"),
    [
        (
            "nvprof/gtx1080ti-cuda8-metrics-summary.csv",
            "Prices and roofline: gtx1080ti at 1600/5500 MHz (assumed), ",
        ),
        ("nvprof/gtx760-dev1-metrics-summary-lavamd.csv", "Prices and roofline: from the data sheet, "),
        ("ncu/cc80-details-page-rules-estimated-speedup.csv", "Prices: a100 at 1140/1593 MHz, "),  # ncu's clocks
        ("nvprof/text-v100-nbody-several-runs.txt", "Prices: v100 at 1380/877 MHz (assumed), "),  # no roofline
    ],
)
def test_clocks_that_a_roofline_rests_on_too_are_called_assumed(log, prices):
    if not (SHARED / log).exists():
        pytest.skip("no log")
    assert prices in trust(screen(SHARED / log)).text
