"""What a difference says first, of pairs that were once answered wrongly: made by hand, and real ones."""

import pytest
from conftest import ROOT, SHARED
from diff_support import energy, kernel
from msgspec import UNSET

import eprof
from eprof.commands.diff import answer, words
from eprof.commands.diff.compare import compare

NVPROF, REPRO, ROCPROF = (SHARED / folder for folder in ("nvprof", "repro", "rocprof"))
real = pytest.mark.skipif(not SHARED.is_dir(), reason="needs real logs, which are not part of this project")


def headline(old, new):
    return answer.headline(compare([energy(old)], [energy(new)]).typed).text


def test_energy_is_the_same_though_counts_differ_only_where_a_count_does():
    launches = compare([energy({"k": kernel()})], [energy({"k": kernel()}, launches={"k": 2})]).typed
    assert "he predicted energy is the same: " in answer.headline(launches).text
    unknown = {"k": kernel(control=None)}
    assert "he predicted energy is the same: " in headline({"k": kernel()}, unknown)
    assert "is the same, though not every count is: " in headline({"k": kernel()}, {"k": kernel(control=2e7)})


def test_a_side_that_counted_nothing_but_time_is_named():
    def timed(seconds):
        return {"k": {"time": seconds}}

    assert "Of constant power, for NEW counted nothing but time, " in headline({"k": kernel()}, timed(0.3))
    assert "Of constant power, for OLD counted nothing but time, " in headline(timed(0.3), {"k": kernel()})
    assert "Of constant power, for nothing but time was counted, " in headline(timed(0.3), timed(0.2))


def test_kernels_without_prices_stand_by_how_much_their_time_changed():
    old, new = {"long": {"time": 1.0}, "short": {"time": 0.2}}, {"long": {"time": 1.01}, "short": {"time": 0.1}}
    typed = compare([energy(old, priced=None)], [energy(new, priced=None)]).typed
    assert [each.name for each in typed.kernels] == ["short", "long"]


def test_a_launch_against_a_launch_has_a_cause():
    """Three launches in the place of two, each with twice the DRAM reads: by hand, 2 * 4e9 B * 377 pJ more."""
    old, new = {"k": kernel()}, {"k": {word: 1.5 * number for word, number in kernel(dram_read=8e9).items()}}
    typed = compare([energy(old, launches={"k": 2})], [energy(new, launches={"k": 3})]).typed
    assert typed.per_launch.change_j == pytest.approx(4e9 * 377e-12)
    assert typed.per_launch.causes[0].what == "dram"
    lead = answer.headline(typed).lead
    assert (
        lead.replace("\u202f", " ") == "With as many launches as OLD: 1.80 times the DRAM bytes: all of the increase."
    )
    assert compare([energy(old)], [energy(new)]).typed.per_launch is UNSET


@real
def test_a_launch_against_a_launch_has_an_interval():
    told = eprof.diff(REPRO / "base.csv", REPRO / "intensity-overflow.csv").typed
    low, high = (1 + end for end in told.per_launch.interval_share)
    assert 50 < low < 76.2 < high < 100
    # Each end is that of the whole change, at a tenth of NEW's launches.
    whole = [(1 + end) / 10 for end in told.interval_share]
    assert [low, high] == pytest.approx(whole)
    assert f"76.2 times the energy ({low:.1f} to {high:.1f})" in answer.headline(told).text


@real
def test_launches_of_other_sizes_are_other_work():
    """Grid X of 69 launches: 512 to 1,048,576 blocks of 256 threads; of the one launch 1,048,576."""
    k40c = NVPROF / "k40c-gpu-trace"
    told = eprof.diff(f"{k40c}-many-runs-repeated-headers-prefixed.csv", f"{k40c}-ns-gb-units.csv").typed
    assert "threads in a mean launch 126 M → 268 M (other work?)" in words.unlike(told).replace("\u202f", " ")


def simulated(*names, **more):
    logs = (ROOT / "samples" / "logs" / "simulated" / f"{name}.txt" for name in names)
    return eprof.diff(*logs, **more).typed


def test_trust_says_what_the_simulated_device_does_without():
    gemm = simulated("gemm-naive", "gemm-tiled", costs="jetson-tk1")
    assert "counts simulated (no caches) and time modelled" in words.trust(gemm)
    assert any(note.startswith("Simulated counts have no bank conflicts: ") for note in gemm.warnings)
    unpriced = words.trust(simulated("gemm-tiled", "gemm-naive"))
    assert "counts simulated (" in unpriced and "no caches" in unpriced
    reduce = simulated("reduce-conflicts", "reduce-free", costs="jetson-tk1")
    assert "counts simulated (an address or a division as one instruction) and" in words.trust(reduce)
