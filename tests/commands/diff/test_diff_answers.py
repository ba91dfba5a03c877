"""What a difference says first, of pairs that were once answered wrongly: made by hand, and real ones."""

import pytest
from conftest import SHARED
from diff_support import energy, kernel

from eprof.commands.diff import words
from eprof.commands.diff.compare import compare

NVPROF, REPRO, ROCPROF = (SHARED / folder for folder in ("nvprof", "repro", "rocprof"))
real = pytest.mark.skipif(not SHARED.is_dir(), reason="needs real logs, which are not part of this project")


def headline(old, new):
    return words.headline(compare([energy(old)], [energy(new)]).typed).text


def test_energy_is_the_same_though_counts_differ_only_where_a_count_does():
    launches = compare([energy({"k": kernel()})], [energy({"k": kernel()}, launches={"k": 2})]).typed
    assert "he predicted energy is the same: " in words.headline(launches).text
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
