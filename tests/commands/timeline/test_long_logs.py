"""Long tables of meters, read by blocks: what the line reader says of them whole; and rows that become means."""

import random
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_meters import READ, joules
from test_sampled import HEADER, IDLE, WORK, dmon

from eprof.base.errors import EprofError
from eprof.lab.power import activity, logs, long_logs
from eprof.logs import stream


def read(path, interval_s, block_bytes=None):
    """The series of a log, in blocks of so many bytes, and what is said of it; the sentence where it is refused."""
    notes = []
    with pytest.MonkeyPatch.context() as patched:
        if block_bytes:
            tuning = stream.Tuning(chunk_bytes=block_bytes)
            patched.setattr(stream, "_HEAD", block_bytes)
            patched.setattr(stream, "Tuning", lambda: tuning)
            patched.setattr(logs, "_LONG", block_bytes)
        try:
            powers, beside = logs.sampled(str(path), notes, interval_s)
        except EprofError as err:
            return None, [], str(err)
    return powers, beside, " ".join(notes)


def test_blocks_say_what_the_whole_log_says(tmp_path):
    path = tmp_path / "log"
    longer = [(what, row) for what, row in READ.items() if len(row[0]) > 120]
    for what, (text, interval_s, *_) in longer:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        whole, _, said = read(path, interval_s)
        parts, _, said_of_parts = read(path, interval_s, 90)
        if parts is None:
            assert "no power over time" in said_of_parts, what  # its header is not in the first block
            continue
        assert joules(parts) == pytest.approx(joules(whole)), what
        assert [each.unknown_s for each in parts] == pytest.approx([each.unknown_s for each in whole]), what
        assert said == said_of_parts, what


CELLS = st.sampled_from(["1", "0.5", "-3", "[N/A]", "", "1e3", "inf", "nan", "W", "power_w", "5,5", '"8"', "x"])
STAMPS = {
    "s": lambda at: f"{at / 4}",
    "ms": lambda at: f"{1.7e12 + 250 * at:.0f}",
    "date": lambda at: f"2026-01-01 00:00:{at // 4:02}.{at % 4 * 25:02}",
    "zone": lambda at: f"2026-01-01T00:00:{at // 4:02}.{at % 4 * 25:02}Z",
    "slashes": lambda at: f"2026/01/01 00:00:{at // 4:02}.{at % 4 * 25:02}00000",
    "offset": lambda at: f"2026-01-01 00:00:{at // 4:02}+01:00",
    "twelve hours": lambda at: f"{1 + at // 60:02}:{at % 60:02}:00 PM",
}


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), CELLS, CELLS), min_size=3, max_size=40),
    stamp=st.sampled_from(sorted(STAMPS)),
    block_bytes=st.integers(220, 500),
)
def test_odd_cells_say_the_same_in_blocks(rows, stamp, block_bytes, tmp_path_factory):
    rows = [(gpu, "1", "1") for gpu in "ababab"] + rows  # from which devices are told
    lines = [
        "timestamp,gpu,power_w,other [mW]",
        *(f"{STAMPS[stamp](at)},{','.join(row)}" for at, row in enumerate(rows)),
    ]
    path = tmp_path_factory.getbasetemp() / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole, _, said = read(path, None)
        parts, _, said_of_parts = read(path, None, block_bytes)
    assert said == said_of_parts
    for one, other in zip(whole or [], parts or [], strict=True):
        assert (one.component, one.absolute, one.zoned) == (other.component, other.absolute, other.zoned)
        assert other.edges == pytest.approx(one.edges) and other.watts == pytest.approx(one.watts, nan_ok=True)


def test_rows_become_means_and_no_joule_is_lost(tmp_path, monkeypatch):
    rng = random.Random(1)
    rows = [(1.0, round(rng.random(), 3) if at % 3 else 0.0, 0.5, 0.25 if at % 3 else 0.0, 300) for at in range(400)]
    (tmp_path / "node.dcgm").write_text(dmon(IDLE + rows + WORK, gpus=(0, 1)))
    whole, sampled, _ = read(tmp_path / "node.dcgm", None)
    monkeypatch.setattr(long_logs, "_MOST_ROWS", 230)
    means, beside, said = read(tmp_path / "node.dcgm", None, 4000)
    assert "4 samples of a device are one" in said and "took turns" in said and "a row is 100 ms" in said
    assert joules(means) == pytest.approx(joules(whole), rel=0.01)  # without times the last three samples have no place
    for exact, mean in zip(activity.activities(sampled), activity.activities(beside), strict=True):
        assert len(mean.seconds) == pytest.approx(len(exact.seconds) / 4, abs=3)
        for name, share in exact.shares.items():
            assert np.nansum(mean.shares[name] * mean.seconds) == pytest.approx(
                np.nansum(share * exact.seconds), rel=0.02
            )


def test_a_counter_that_is_thinned_ends_with_its_last_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(long_logs, "_MOST_ROWS", 100)
    (tmp_path / "log.csv").write_text("time_s,gpu,cpu_j\n" + "".join(f"{at},0,{at * at}\n" for at in range(999)))
    (series,), _, said = read(tmp_path / "log.csv", None, 200)
    assert joules([series]) == {"cpu 0": 998**2} and series.edges[-1] == 998 and "16 samples of a device" in said


def test_another_header_in_the_middle_is_no_row_of_the_first(tmp_path):
    other = HEADER.replace("DRAMA  FP64A", "FP64A  DRAMA")
    (tmp_path / "log").write_text(dmon(WORK) + other + dmon(WORK).partition("mJ\n")[2])
    for block_bytes in (None, 300):
        series, _, said = read(tmp_path / "log", 1.0, block_bytes)
        assert series is None and "another header begins, with other columns" in said


def _lines(stamp, rows=200):
    return "timestamp,gpu,power_w\n" + "".join(f"{STAMPS[stamp](at)},{at % 2},{at} W\n" for at in range(rows))


CLEAN = {
    **{stamp: _lines(stamp) for stamp in STAMPS if stamp != "twelve hours"},
    "commas at the ends of rows": _lines("s").replace(" W\n", " W,\n"),
    "two words, repeated headers": dmon(WORK * 9, gpus=(0, 1)),
    "tabs, blanks at the ends, empty lines": dmon(WORK * 9)
    .replace("GPU 0 ", "GPU\t 0\t")
    .replace("1410\n", "1410 \n\n\n"),
}


@pytest.mark.parametrize("what", CLEAN)
def test_clean_lines_are_not_read_one_by_one(what, tmp_path, monkeypatch):
    (tmp_path / "log").write_text(CLEAN[what])
    whole, _, said = read(tmp_path / "log", 1.0)
    numbers = []
    one_by_one = long_logs._of_rows
    monkeypatch.setattr(
        long_logs, "_of_rows", lambda log, rows, path: numbers.append(len(rows)) or one_by_one(log, rows, path)
    )
    parts, _, said_of_parts = read(tmp_path / "log", 1.0, 400)
    assert numbers in ([0], [1])  # the last line, which may be cut
    assert joules(parts) == pytest.approx(joules(whole)) and said == said_of_parts


@pytest.mark.parametrize("odd", ["2026-01-01", "2026-01-01 00:00:02,0", "2026-01-01 00:00:02.00,0,1,9"])
def test_a_row_that_is_none_is_judged_by_its_line(odd, tmp_path):
    lines = _lines("date").splitlines()
    lines[20] = odd if "," in odd else f"{odd},0,10 W"
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    whole, _, said = read(tmp_path / "log", None)
    parts, _, said_of_parts = read(tmp_path / "log", None, 400)
    assert said == said_of_parts and joules(whole or []) == joules(parts or [])


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("timestamp,gpu,power_w", "{stamp},{gpu},{at} W,7"),
        ("timestamp,gpu,power_w", "{stamp},{gpu}"),
        ("timestamp,power_w", "{stamp},{at},5"),  # decimals
    ],
)
def test_rows_that_do_not_fit_the_header_say_the_same_in_blocks(header, form, tmp_path):
    rows = [form.format(stamp=STAMPS["s"](at), gpu=at % 2, at=at) for at in range(200)]
    (tmp_path / "log").write_text("\n".join([header, *rows, ""]))
    whole, _, said = read(tmp_path / "log", None)
    parts, _, said_of_parts = read(tmp_path / "log", None, 400)
    assert said == said_of_parts and joules(whole or []) == pytest.approx(joules(parts or []))
