"""Logs of callgrind, perf and LIKWID that are cut in every column, permuted, doubled or mixed: never a plain wrong total."""

import random
from collections import defaultdict

import cuts
import numpy as np
import pytest
from callgrind_support import COMPRESSED, PLAIN
from likwid_support import csv as likwid_csv
from likwid_support import text as likwid_text

from eprof import logs
from eprof.base.errors import EprofError
from eprof.logs.log import NOT_ALL, RUNNING

STARTED = "# started on Mon Nov  2 10:00:00 2026\n\n"
EVENTS = (("instructions", 123456), ("branches", 2345))
LIKWID = [
    ("INSTR_RETIRED_ANY", "FIXC0", (1000, 2000, 3000)),
    ("FP_ARITH_INST_RETIRED_SCALAR_DOUBLE", "PMC0", (100, 200, 300)),
    ("PWR_PKG_ENERGY", "PWR0", (50.5, 0, 0)),
]


def json_rows(before):
    return "".join(
        f'{{{place}"counter-value" : "{value + number}.000000", "unit" : "", "event" : "{event}", '
        '"event-runtime" : 1000000, "pcnt-running" : 100.00}\n'
        for event, value in EVENTS
        for number, place in enumerate(before)
    )


LOGS = {
    "callgrind": PLAIN,
    "callgrind, short": COMPRESSED,
    "perf": STARTED + "".join(f"{value};;{event};1000000;100.00;;\n" for event, value in EVENTS),
    "perf -A": STARTED
    + "".join(f"CPU{cpu};{value + cpu};;{event};1000000;100.00;;\n" for event, value in EVENTS for cpu in range(3)),
    "perf -I": STARTED
    + "".join(
        f"     {time}.000100000;{value + time};{unit};{event};1000000;100.00;;\n"
        for time in (1, 2, 3)
        for event, value, unit in (*((*each, "") for each in EVENTS), ("power/energy-pkg/", 7, "Joules"))
    ),
    "perf, text": "\n Performance counter stats for './a':\n\n           123,456      instructions\n"
    "             2,345      branches\n\n       1.002345678 seconds time elapsed\n\n",
    "perf -j": json_rows([""]),
    "perf -j -A": json_rows([f'"cpu" : "{cpu}", ' for cpu in range(3)]),
    "LIKWID": likwid_csv("FLOPS_DP", LIKWID, threads=3, seconds=1.5),
    "LIKWID, text": likwid_text("FLOPS_DP", LIKWID, threads=3, seconds=1.5),
    "LIKWID, regions": "".join(
        likwid_csv("FLOPS_DP", LIKWID, threads=3, seconds=1.5, region=region) for region in ("a", "b")
    ),
}
NO_END = ("perf -A", "perf -I", "perf -j -A", "LIKWID, regions")  # cut between two rows, they are logs of less


CSV = ("LIKWID", "LIKWID, regions")


@pytest.fixture
def totals(tmp_path):
    """The totals of a log that are told as exact, and those that are not; none where it is refused."""

    def told(text):
        (tmp_path / "log").unlink(missing_ok=True)  # to write over a file waits for the disk
        (tmp_path / "log").write_text(text)
        try:
            log = logs.read(tmp_path / "log")
        except EprofError as err:
            assert "\n" not in str(err)
            return {}, set()
        sums, marked = defaultdict(float), set()
        for table in log.tables:
            for name, column in zip(table.counters.names, table.counters.values.T, strict=True):
                if name.endswith((RUNNING, NOT_ALL)):
                    whole = 100 if name.endswith(RUNNING) else 0
                    marked |= {name.removesuffix(RUNNING).removesuffix(NOT_ALL)} if (column != whole).any() else set()
                    continue
                sums[name] += np.nansum(column)
                marked |= {name} if table.lacks_rows or np.isnan(column).any() else set()
        return dict(sums), marked

    return told


def plainly_wrong(told, truth, times=1):
    sums, marked = told
    return {name: sums[name] for name in sums.keys() & truth.keys() - marked if sums[name] != times * truth[name]}


@pytest.mark.parametrize("kind", LOGS)
def test_a_log_that_ends_anywhere_is_no_total(totals, kind):
    text = LOGS[kind]
    truth, marked = totals(text)
    assert truth and not marked
    for place in cuts.places(text):
        if kind not in NO_END or text[:place].rpartition("\n")[2].strip():
            assert not plainly_wrong(totals(text[:place]), truth), text[max(place - 60, 0) : place]


@pytest.mark.parametrize("kind", LOGS)
def test_lines_that_are_cut_lost_or_told_twice_are_seen(totals, kind):
    lines = LOGS[kind].splitlines(keepends=True)
    truth, _ = totals("".join(lines))
    for number, line in enumerate(lines):
        before, after = "".join(lines[:number]), "".join(lines[number + 1 :])
        for place in cuts.places(line):
            # LIKWID's CSV has no sign at the end of a line: the last digits may be lost unseen.
            if kind in CSV and line[:place].count(",") == 4 and line[place - 1].isdigit():
                continue
            assert not plainly_wrong(totals(f"{before}{line[:place]}\n{after}"), truth), (line, place)
        assert not plainly_wrong(totals(before + after), truth), line
        assert not plainly_wrong(totals(before + line + line + after), truth), line


@pytest.mark.parametrize("kind", LOGS)
def test_lines_in_another_order_and_logs_that_are_mixed_are_no_other_total(totals, kind):
    lines = LOGS[kind].splitlines(keepends=True)
    truth, _ = totals("".join(lines))
    chance = random.Random(kind)
    for _ in range(30):
        order = chance.sample(lines, len(lines))
        assert not plainly_wrong(totals("".join(order)), truth), order
        other = LOGS[chance.choice(list(LOGS))].splitlines(keepends=True)
        place = chance.randrange(len(lines))
        totals("".join(lines[:place] + other + lines[place:]))  # no traceback


@pytest.mark.parametrize("kind", LOGS)
def test_two_runs_in_a_file_are_the_sum_of_both(totals, kind):
    truth, _ = totals(LOGS[kind])
    assert not plainly_wrong(totals(LOGS[kind] * 2), truth, times=2)
