"""The terminal summary: what it says, what it leaves out, and that it fits."""

import re

import pytest
from report_support import fifty, fmm, no_costs, two_devices

from eprof.base.labels import labels
from eprof.base.text import printable
from eprof.base.vocabulary import NONE, Mark
from eprof.commands.report import terminal
from eprof.show import console
from eprof.show.blocks import Column, Notes, Quantity, Row, Table, plain_text
from eprof.show.export import markdown
from eprof.show.numbers import NARROW, and_more, more_or_less, signed_percent


@pytest.fixture(scope="module")
def profile():
    """Six kernels."""
    return fmm()


def written(value, marks=NONE):
    return printable(plain_text(Quantity(value, "J", int(marks))))


def lines(document, **options):
    return terminal.text(document, **options).splitlines()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_it_fits_the_terminal(profile, width):
    assert max(len(line) for line in lines(profile, width=width)) <= width


def test_the_bar_is_as_long_as_it_says_whatever_the_parts(profile):
    for verbose, cells in ((False, 30), (True, 64)):
        bars = [line.partition("  ")[0] for line in lines(profile, verbose=verbose)]
        assert cells in [len(bar) for bar in bars if bar and set(bar) <= set("░▓█")]


def test_marks_stand_before_numbers():
    assert written(12.3) == "12.3 J"
    assert written(12.3, Mark.MISSING | Mark.ESTIMATED) == "≥ ~12.3 J"
    assert written(None, Mark.MISSING) == "unknown"
    assert written(0.0) == "0 J"


def test_every_kernel_is_shown_only_when_asked():
    document = fifty()
    names = [kernel["name"] for kernel in document["kernels"]]
    few, all_of_them = "\n".join(lines(document)), "\n".join(lines(document, verbose=True, width=200))
    assert re.search(r"and 4\d more kernels, \d+\W% \(-v shows them\)", few)
    assert "more kernels" not in all_of_them
    assert all(label in all_of_them for label in labels(names))


def test_control_characters_are_shown_not_obeyed(profile):
    kernels = [{**profile["kernels"][0], "name": "evil\x1b[2J\x07"}, *profile["kernels"][1:]]
    text = terminal.text({**profile, "title": "a\x1b]0;b\x07", "kernels": kernels}, width=200)
    assert "\x1b" not in text and "\x07" not in text
    assert "\\x1b" in text


def test_several_devices_and_no_prices_are_shown():
    document = two_devices()
    text = "\n".join(lines(document, width=160))
    assert all(kernel["device"] in text for kernel in document["kernels"])
    bare = "\n".join(lines(no_costs()))
    assert "const." not in bare and "no energy is shown" in bare


def test_devices_of_one_kind_are_counted():
    document = two_devices()
    alike = {**document, "devices": [document["devices"][0]] * 4}
    first = lines(alike, width=200)[0]
    assert f"4 × {document['devices'][0]['name']}" in first
    assert first.count(document["devices"][0]["name"]) == 1


def test_one_of_a_kind_is_no_plural():
    texts = [and_more(number, "kernel") for number in range(3)]
    assert texts == ["", "and 1 more kernel", "and 2 more kernels"]
    assert "<summary>1 note</summary>" in markdown("# x", [Notes(["a"])]).decode()
    assert "and 1 more note (-v" in console.text([Notes(list("abcdefghi"))])


def test_every_part_of_the_bar_is_seen_on_a_black_terminal():
    """Relative luminance against black as WCAG has it; 18, once the colour of DRAM, has 1.2."""
    for group, style in terminal._STYLES.items():
        if not style.startswith("color("):
            continue
        number = int(style[len("color(") : -1]) - 16
        levels = [0, 95, 135, 175, 215, 255]
        shares = [levels[place] / 255 for place in (number // 36, number // 6 % 6, number % 6)]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert (luminance + 0.05) / 0.05 >= 2.5, group


@pytest.mark.parametrize("width", range(40, 140, 7))
def test_no_number_of_a_table_is_cut(width):
    """A narrow terminal leaves columns out, and says so."""
    numbers = [f"{10**place + 0.5:.1f}" for place in range(8)]
    columns = [Column("kernel", "left"), *(Column(f"column {place}") for place in range(8))]
    shown = console.text([Table(columns, [Row(["a_kernel_of_a_long_name", *numbers])])], width=width)
    row = next(line for line in shown.splitlines() if numbers[0] in line)
    told = row.split()[1:]
    assert told == numbers[: len(told)] and all(len(line) <= width for line in shown.splitlines()[:4])
    assert ("more columns are shown from a width of" in shown) == (told != numbers)


def test_a_growth_near_100_percent_is_twice_as_much_and_a_fall_near_it_not_all():
    told = [more_or_less(change, "fewer").replace(NARROW, " ") for change in (0.9998, 1.0, -0.9998, -1.0)]
    assert told == ["100 % more", "100 % more", "> 99.9 % fewer", "100 % fewer"]
    assert [signed_percent(change).replace(NARROW, " ") for change in (0.9998, -0.9998)] == ["+100 %", "< −99.9 %"]
