"""`eprof scale` against a second implementation (`oracle/scaling.py`): clusters, programs and tables made by hypothesis."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import scaling as oracle

from eprof.base.toml import Document
from eprof.clusters import cluster
from eprof.commands.scale import document as scale_document
from eprof.commands.scale import measured_runs, model
from eprof.lab.objective import parse

OBJECTIVES = {"energy": (1, 0), "edp": (1, 1), "e2d": (2, 1), "ed2p": (1, 2), "time": (0, 1)}
ASKED = scale_document.Asked([parse(name) for name in OBJECTIVES])
watts = st.sampled_from([0.0, 1e-3, 7.5, 95.0, 400.0])
# Nothing, too little to see, and more than all else.
amounts = st.sampled_from([0.0, 1.0, 3e4, 2e7, 5e10])
ALONE = ("on_chip", "off_chip", "io_bytes")
MORE = ("on_chip_extra", "off_chip_extra", "io_bytes_extra", "messages", "network_bytes")
WORDS = ALONE + MORE


def close(value, expected):
    return value == expected or value == pytest.approx(expected, rel=1e-9, abs=1e-15)


@st.composite
def machines(draw):
    """A cluster as the oracle has it, its file, and its default clock, which may stand anywhere among the others."""
    clocks = draw(st.lists(st.sampled_from([900.0, 1400.0, 2100.0, 2800.0]), min_size=1, max_size=3, unique=True))
    sizes = draw(st.lists(st.sampled_from([1.0, 64.0, 4096.0, 1e6]), min_size=2, max_size=4, unique=True).map(sorted))
    steps = draw(st.lists(st.floats(1e-6, 1e-2), min_size=len(sizes), max_size=len(sizes)))
    machine = {
        "clocks": {mhz: (draw(watts), draw(watts), draw(watts)) for mhz in clocks},
        "cycles": draw(st.sampled_from([0.25, 1.0, 3.0])),
        "off_chip_s": draw(st.sampled_from([0.0, 1e-9, 1e-7])),
        "storage": (draw(st.sampled_from([0.0, 1e-9, 1e-6])), draw(watts)),
        "messages": list(zip(sizes, itertools.accumulate(steps), strict=True)),
    }
    default = draw(st.sampled_from(clocks))
    basis = draw(st.sampled_from(["assumed", "measured"]))
    text = f'schema = 1\nname = "t"\nsource = "a test"\nbasis = "{basis}"\n'
    for mhz, powers in machine["clocks"].items():
        names = zip(("idle_w", "on_chip_w", "off_chip_w"), powers, strict=True)
        told = "".join(f"{name} = {power}\n" for name, power in names)
        text += f"[[setting]]\ncore_mhz = {mhz}\n{told}default = {str(mhz == default).lower()}\n"
    text += f"[time]\non_chip_cycles = {machine['cycles']}\noff_chip_s = {machine['off_chip_s']}\n"
    text += "[storage]\nbyte_s = {}\nbusy_w = {}\n".format(*machine["storage"])
    text += f"[message]\nbytes = {sizes}\nseconds = {[seconds for _, seconds in machine['messages']]}\n"
    return machine, text, basis


@st.composite
def works(draw):
    """What a program counts on one processor and, more of it, on several; and its file, a formula of p each."""
    work = {word: draw(amounts) for word in WORDS}
    if draw(st.booleans()):  # several processors may save accesses, as their parts of the problem fit into caches
        work["off_chip_extra"] = -0.15 * work["off_chip"]
    alpha = draw(st.sampled_from([0.3, 0.86, 1.0, 1.4]))
    formulas = {word: f"{amount!r} * n" for word, amount in work.items()}
    formulas |= {word: f"{work[word]!r} * n * (p - 1)" for word in MORE}
    counts = "".join(f'{word} = "{formula}"\n' for word, formula in formulas.items())
    return work, alpha, f'schema = 1\nname = "x"\nsource = "t"\nalpha = {alpha}\n[count]\n{counts}'


@settings(max_examples=150, deadline=None)
@given(
    made=machines(), counted=works(), size=st.sampled_from([1.0, 12.0]), waiting=st.sampled_from(["poll", "interrupt"])
)
def test_every_number_of_the_closed_form_is_the_oracle_s(made, counted, size, waiting):
    machine, text, basis = made
    work, alpha, definition = counted
    on = cluster.read(Document.parse(text, "t.toml"))
    case = scale_document.Case(
        on, model.read(Document.parse(definition, "x.toml")), size, [1, 2, 6], on.clocks, waiting
    )
    document = json.loads(json.dumps(scale_document.modelled(case, ASKED).plain()))
    slowest = min(machine["clocks"])
    assert len(document["rows"]) == 3 * len(machine["clocks"])
    for row in document["rows"]:
        processors, mhz = row["processors"], row["core_mhz"]
        counts = {word: work[word] * size * (processors - 1 if word in MORE else 1) for word in WORDS}
        counts["alpha"] = alpha
        expected = oracle.closed_form(machine, mhz, counts, processors, waiting)
        at_slowest = oracle.closed_form(machine, slowest, counts, processors, waiting)
        polled = oracle.closed_form(machine, mhz, counts, processors, "poll")
        # Sums of parts that nearly cancel out have fewer digits.
        scale_j = 1e-9 * (expected["base_j"] + sum(map(abs, expected["causes"].values())))
        assert row["time_s"] == pytest.approx(expected["time_s"], rel=1e-9, abs=1e-9 * expected["base_s"])
        assert row["energy_j"] == pytest.approx(expected["energy_j"], rel=1e-9, abs=scale_j)
        assert row["overhead_j"] == pytest.approx(expected["causes"], rel=1e-9, abs=scale_j)
        assert row["polling_j"] == pytest.approx(polled["energy_j"], rel=1e-9, abs=scale_j)
        if abs(expected["energy_j"]) > 1e3 * scale_j and expected["time_s"] > 1e-6 * expected["base_s"]:
            assert row["efficiency"] == pytest.approx(expected["base_j"] / expected["energy_j"], rel=1e-5)
            assert row["efficiency_to_slowest_clock"] == pytest.approx(
                at_slowest["base_j"] / expected["energy_j"], rel=1e-5
            )
            assert row["speedup"] == pytest.approx(expected["base_s"] / expected["time_s"], rel=1e-5)
            assert row["power_w"] == pytest.approx(expected["energy_j"] / expected["time_s"], rel=1e-5)
        assert row["alpha"] == alpha and row["marks"] == row["time_marks"] == (
            ["assumed"] if basis == "assumed" else []
        )


# ------------------------------------------------------------------------------------------------------ measured runs

joules = st.sampled_from([None, 0.0, 1e-6, 0.3, 5.0, 5.0, 812.0, 4.2e7])
seconds = st.sampled_from([1e-9, 0.02, 1.0, 1.0, 33.0, 86400.0])
tables = st.lists(
    st.fixed_dictionaries(
        {
            "program": st.sampled_from(["ft", "cg"]),
            "size": st.sampled_from([None, 10.0, 1e6]),
            "processes": st.sampled_from([1, 2, 16]),
            "core_mhz": st.sampled_from([None, 1200.0, 2800.0]),
            "time_s": seconds,
            "energy_j": joules,
        }
    ),
    min_size=1,
    max_size=14,
)


def written(path, rows, names=("program", "size", "processes", "core_mhz", "time_s", "energy_j"), separator=","):
    lines = [separator.join("" if row[name] is None else f"{row[name]!r}".strip("'") for name in names) for row in rows]
    path.write_text("\n".join([separator.join(names), *lines, ""]))
    return str(path)


def plain(document):
    """The rows and answers of a document, without what stands in it of files."""
    return {key: value for key, value in document.plain().items() if key in ("rows", "best")}


@settings(max_examples=150, deadline=None)
@given(rows=tables, data=st.data())
def test_measured_tables_say_what_the_oracle_says_in_any_order_and_form(tmp_path_factory, rows, data):
    folder = tmp_path_factory.mktemp("runs")
    document = scale_document.measured(*measured_runs.read([written(folder / "a.csv", rows)]), "t", ASKED)
    expected = oracle.measured(rows)
    found = {(row.program, row.size, row.processors, row.core_mhz): row for row in document.rows}
    assert len(found) == len(document.rows) == len(expected)
    for told in expected:
        row = found[told["program"], told["size"], told["processors"], told["core_mhz"]]
        assert all(close(getattr(row, name), value) for name, value in told.items()), (row, told)
    for answer in document.best:
        least = oracle.best(expected, answer.program, answer.size, *OBJECTIVES[answer.objective])
        if answer.energy_j is not None:
            power, exponent = OBJECTIVES[answer.objective]
            assert answer.energy_j**power * answer.time_s**exponent == pytest.approx(least, rel=1e-9)
        else:
            assert least == float("inf")
    # In another order, with other names, separators and columns, and in two files, it is the same table.
    mixed = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(mixed)))
    names = data.draw(st.permutations(("program", "size", "processes", "core_mhz", "time_s", "energy_j")))
    parts = [part for part in (mixed[:cut], mixed[cut:]) if part]
    files = [written(folder / f"{number}.txt", part, names, ";") for number, part in enumerate(parts)]
    assert plain(scale_document.measured(*measured_runs.read(files), "t", ASKED)) == plain(document)
    # Each row twice is each run repeated, which moves no median.
    twice = plain(scale_document.measured(*measured_runs.read([written(folder / "b.csv", [*rows, *rows])]), "t", ASKED))
    for row, before in zip(twice["rows"], plain(document)["rows"], strict=True):
        assert row == {**before, "repeats": 2 * before["repeats"]}


# ---------------------------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize("waiting", ["interrupt", "poll"])
@pytest.mark.parametrize(("work", "network", "alpha"), [(6.0, 1.0, 0.86), (0.25, 3.0, 1.3), (2.0, 0.0, 1.0)])
def test_a_fit_finds_what_the_oracle_made_the_runs_of(waiting, work, network, alpha):
    machine = {
        "clocks": {2000.0: (95.0, 105.0, 30.0)},
        "cycles": 1.0,
        "off_chip_s": 1e-9,
        "messages": [(0.0, 2e-4), (1.0, 2e-4 + 1e-8)],
    }
    text = (
        f'schema = 1\nname = "t"\nsource = "a test"\nbasis = "measured"\nwaiting = "{waiting}"\n[[setting]]\ncore_mhz = 2000\n'
        "idle_w = 95\non_chip_w = 105\noff_chip_w = 30\n[time]\non_chip_cycles = 1.0\noff_chip_s = 1e-9\n"
        "[message]\nstart_s = 2e-4\nbyte_s = 1e-8\n"
    )
    on, ft = cluster.read(Document.parse(text, "t.toml")), model.load("ft")
    runs = []
    for processors in (1, 2, 4, 8, 16):
        n = 2.0**20
        counts = dict.fromkeys(WORDS, 0.0) | {"alpha": alpha, "on_chip": work * 5 * n * 20, "off_chip": work * 0.5 * n}
        counts["messages"] = network * processors * (processors - 1)
        counts["network_bytes"] = network * 16 * n * (processors - 1) / processors
        made = oracle.closed_form(machine, 2000.0, counts, processors, waiting)
        runs.append(measured_runs.Run("ft", n, processors, 2000.0, made["time_s"], made["energy_j"]))
    fitted = model.fit_program(on, ft, runs, [8, 16])
    assert fitted.fitted_on == [1, 2, 4]
    assert fitted.factors == pytest.approx({"work": work, "network": network}, rel=1e-6, abs=1e-9)
    assert fitted.alpha == pytest.approx(alpha, rel=1e-6)
    for prediction, run in zip(fitted.predictions, runs[3:], strict=True):
        assert (prediction.time_s, prediction.energy_j) == pytest.approx((run.time_s, run.energy_j), rel=1e-6)
        assert (prediction.time_error, prediction.energy_error) == pytest.approx((0, 0), abs=1e-6)
        assert prediction.efficiency == pytest.approx(runs[0].energy_j / run.energy_j, rel=1e-6)
        assert prediction.marks == ["estimated"]
    assert (fitted.left_out_time, fitted.left_out_energy) == pytest.approx((0, 0), abs=1e-6)
    assert set(fitted.alpha_by_processors) == {"1", "2", "4", "8", "16"}
    assert list(fitted.alpha_by_processors.values()) == pytest.approx([alpha] * 5, rel=1e-6)
