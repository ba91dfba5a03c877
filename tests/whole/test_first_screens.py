"""Every real log: its first screen does not contradict itself, and no energy is above what the board can draw."""

import math
import re
from pathlib import Path

import pytest

from eprof.base.errors import EprofError
from eprof.profile import api
from eprof.profile.document import document
from eprof.profile.totals import board_limit_w
from eprof.show.report.first_screen import where
from eprof.show.report.levers import what_to_try
from eprof.show.report.trust import trust
from eprof.show.report.headline import contenders, headline
from eprof.show.report.view import View
from eprof.show.words.cells import Share

SHARED = Path(__file__).parents[3] / "shared" / "data"
FOLDERS = ("nvprof", "ncu", "ncu-modern", "traces/nsys", "rocprof", "cpu")
MOST_BYTES = 1 << 20
ENDINGS = {".csv", ".txt", ".log", ".json", ".sqlite", ".ncu-rep"}


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


def test_an_interval_holds_what_is_counted_and_ends_where_the_board_does(screens):
    for name, energy, view in screens:
        interval_j = view.document.interval_j
        if not interval_j or interval_j.total is None:
            continue
        low, high = interval_j.total
        assert low <= (view.energy("total").value or 0.0), name
        if high is None:
            continue
        assert low < high, name
        limit_j = board_limit_w(energy) * (view.time.value or math.nan)
        is_free = energy.metered is not None or energy.modelled is not None or view.time.lower
        assert is_free or not limit_j > low or high <= limit_j * (1 + 1e-9), (name, limit_j, high)


def test_the_headline_names_the_largest_part_or_says_that_it_is_open(screens):
    for name, _, view in screens:
        text = headline(view).text
        joules = {group: amount.value for group, amount in view.groups.items() if amount.value}
        if not joules or view.above.value is None or "undecided" in text:
            continue
        largest = contenders(view, joules)[0]
        assert view.in_prose(largest) in text, (name, text)
        shares = [float(share) for share in re.findall(r"([\d.]+)\s%", text)]
        assert all(share <= 100 for share in shares), (name, text)


def test_no_screen_says_both(screens):
    for name, _, view in screens:
        try_text, trust_text, text = what_to_try(view).text, trust(view).text, headline(view).text
        assert not ("no joules" in try_text and re.search(r"\d [mkµ]?J\b", text)), name
        assert not (trust_text.startswith("good") and "Missing wholly" in trust_text), (name, trust_text)


def test_shares_of_a_screen_are_of_one_whole(screens):
    numbers = []
    for name, _, view in screens:
        shares = [cell.value for row in where(view).rows for cell in row.cells if isinstance(cell, Share)]
        known = [share for share in shares if share is not None]
        assert sum(known) <= 1 + 1e-9, (name, known)
        numbers += known
    assert len(numbers) > 100
