"""What must hold for any log: cutting it, program output in it, and the order of logs do no harm."""

import re

import pytest
from frames_support import combine
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from logs_support import (
    EVENTS,
    K20C,
    METRICS,
    ONE_BY_ONE,
    TINY,
    TOGETHER,
    TRACE,
    TRACE_UNITS,
    USAGE,
    cell,
    event,
    launch,
    metric,
    picture,
    profiled,
    read,
    read_tuned,
    same,
    totals,
    write,
)
from numpy import array_equal, isnan

from eprof.base.errors import EprofError, LogError
from eprof.base.vocabulary import Mark
from eprof.logs import passes
from eprof.logs.stream import split
from eprof.profilers.nvprof import reader
from eprof.profilers.nvprof.reader import Block
from eprof.profilers.nvprof.tables import LAUNCH_ID, Answers, Form, Rows, parse
from eprof.readers.cells import cells
from eprof.readers.messages import catalogue

quick = settings(max_examples=10)
WIDE = '"Device","Context","Stream","Kernel","inst_integer","dram_read_throughput"'
KERNELS = st.sampled_from(["axpy(int, float*)", 'odd "one", two', "größe<a, b>()", "_Z4axpyPf"])
NUMBERS = st.one_of(st.integers(0, 10**12).map(str), st.sampled_from(["2.5%", "1.5GB/s", "<OVERFLOW>", "0.125000", ""]))
FULL = (
    profiled(
        1,
        "==1== Event result:",
        EVENTS,
        event("gld_request", 5),
        event("gld_request", 6, kernel="other(int)"),
        "",
        "==1== Metric result:",
        METRICS,
        metric("inst_integer", 10),
        metric("sm_efficiency", "50.0%"),
    )
    + profiled(2, WIDE, ",,,,,GB/s", f'"{K20C}","1","7","axpy(int, float*)",5,2.0')
    + profiled(3, TRACE, TRACE_UNITS, launch(2.0), launch(3.0, kernel="other(int)"))
    + profiled(4, USAGE, "%,ms,,ms,ms,ms,", '100,2.5,3,1,1,1,"other(int)"')
)


@quick
@given(cut=st.integers(0, len(FULL.encode())))
def test_any_prefix_of_a_log_gives_an_answer_or_a_sentence(tmp_path, cut):
    path = write(tmp_path, FULL.encode()[:cut])
    try:
        found = totals(read(path))
    except EprofError as err:
        assert str(err) and "\n" not in str(err)
        return
    whole = totals(read(write(tmp_path, FULL, "whole.csv")))
    assert {key[:2] for key in found} <= {key[:2] for key in whole}


OUTPUT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda line: line.strip() and not line.startswith("==") and line.splitlines() == [line]
)


@quick
@given(data=st.data())
def test_program_output_never_changes_totals(tmp_path, data):
    lines = FULL.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(OUTPUT))
    log = read(write(tmp_path, "\n".join([*lines, ""])))
    assert same(totals(log), totals(read(write(tmp_path, FULL, "whole.csv"))))
    assert log.skipped_lines == len(lines) - len(FULL.splitlines())


ROWS = st.one_of(
    st.builds(metric, st.sampled_from(["a", "b"]), NUMBERS, kernel=KERNELS, launches=st.integers(1, 5)),
    st.builds(event, st.just("c"), st.integers(0, 99), kernel=KERNELS),
    st.builds(launch, st.sampled_from(["1.5", "2e-3", ""]), kernel=KERNELS.map(lambda name: name.replace('"', '""'))),
    st.sampled_from(
        [
            METRICS,
            EVENTS,
            WIDE,
            TRACE,
            TRACE_UNITS,
            USAGE,
            "%,ms,,ms,ms,ms,",
            ",,,,,GB/s",
            "",
            " ",
            "==9== Metric result:",
        ]
    ),
    st.builds(
        lambda value: f'"{K20C}","1","7","axpy",{value},2.0', st.sampled_from(["5", '"Low (1)"', "nan", "-2", " 7"])
    ),
    st.sampled_from(
        ['"', 'x,"y', "a,b,c,d,e,f,g,h", "===", f'"{K20C}","k" "j",2,"a","b",1,2,3', "No kernels were profiled."]
    ),
    OUTPUT,
)


@settings(quick, max_examples=15)
@given(rows=st.lists(ROWS, max_size=25))
@example(rows=[METRICS, metric("a", 1), f'"{K20C}","open,2,"a","b",1,2,3', metric("a", 2), 'x"'])
@example(rows=[WIDE, ",,,,,GB/s", f'"{K20C}","1","7","axpy",+5,2.0', f'"{K20C}","1","7","axpy", 5 ,2.0'])
@example(rows=[WIDE, ",,,,,GB/s", *[f'"{K20C}","1","7","axpy",+5,2.0'] * 3])
@example(rows=[WIDE, ",,,,,GB/s", *[f'"{K20C}","1","7","axpy",5,2.0'] * 2, f'"{K20C}","1","7","axpy",<OVERFLOW>,2.0'])
@example(rows=[TRACE, TRACE_UNITS, *[launch("+1.5")] * 3])
@example(rows=[METRICS, metric("a", "1"), " ", metric("a", "2")])
def test_together_and_one_by_one_read_the_same(tmp_path, rows):
    path = write(tmp_path, "\n".join([*rows, ""]))

    def outcome(tuning):
        try:
            return picture(read_tuned(path, tuning))
        except LogError as err:
            return str(err)

    assert outcome(TOGETHER) == outcome(ONE_BY_ONE) == outcome(TINY)


CELLS = st.one_of(
    st.floats(allow_nan=True).map(str),
    st.sampled_from(
        [
            "1%",
            "2%%",
            "1.5GB/s",
            "1KKB/s",
            "B/s",
            "3s",
            "4B/sB/s",
            "1e5MB/s",
            "Low (1)",
            "<INVALID>",
            "",
            "%",
            "5.",
            ".5",
        ]
    ),
    st.text("0123456789.eE+-%KMGTB/s ", max_size=8),
)


@quick
@given(texts=st.lists(CELLS, min_size=1, max_size=12))
@example(texts=["+0", "+5%", "+1e3GB/s", "+", "++1", "+nan"])
def test_cells_read_quickly_are_those_read_carefully(texts):
    slow_values, slow_kinds = cells(texts)
    lines = "".join(f'"a",{text},1\n' for text in texts)
    values, kinds = parse(lines.encode(), Form(3, (0,), (1,))).cells(1)
    assert kinds.tolist() == slow_kinds.tolist()
    assert array_equal(values, slow_values, equal_nan=True)


@quick
@given(names=st.lists(st.sampled_from(["a", "b", " b", "", "größe"]), min_size=1, max_size=9))
def test_few_names_are_numbered_as_many_are(names):
    lines = "".join(f'"{name}",1\n' for name in names)
    parsed = parse(lines.encode(), Form(2, (0,), (1,)))

    def numbers(rows):
        different = []
        answers = Answers(lambda name: different.append(name) or len(different), int)
        return [rows.each(0, answers).tolist() for _ in range(2)], different

    few, asked = numbers(Rows(len(names), {0: names}))
    many, asked_once = numbers(parsed)
    assert few[0] == many[0] == many[1]
    assert asked[: len(asked_once)] == asked_once == list(dict.fromkeys(names))


@pytest.mark.parametrize(
    "line",
    ["a,2", "a,2,3,4", "a,2,3,", '"a,2,3', '"a"b"c",2,3', '"a"b"c",d,"3', '"a\nb",2,3', '"a"b,2,3', 'a"b,"c', ""],
)
def test_lines_that_are_not_clean_are_not_parsed_together(line):
    clean = ['"a","b",3', '"c","d",4']
    for lines in ([line, *clean], [*clean, line]):
        text = "".join(f"{line}\n" for line in lines)
        assert parse(text.encode(), Form(3, (0,), (2,))) is None


@pytest.mark.parametrize(
    ("line", "is_clean"),
    [
        ("a,1,2,3,x", True),
        ("a,1,,,x", True),
        ("a,1,2,,x", False),
        ("a,1,2,five,x", False),
        ("a,1,2,18446744073709551615,x", False),
        ("a,,2,3,x", False),
        ("a,1%,2,3,x", False),
        ("a,-0,2,3,x", False),
    ],
)
def test_numbers_that_stand_together_are_all_there_or_none(line, is_clean):
    lines = f"b,1,2,3,x\n{line}\n"
    rows = parse(lines.encode(), Form(5, (0,), numbers=(1,), together=(2, 3)))
    assert (rows is not None) == is_clean


@pytest.mark.parametrize("line", ["a,2,", '"a""b",2,3', '"""a""","2",""', 'a""b,2,3'])
def test_lines_with_doubled_quotes_or_an_empty_end_are_clean(line):
    lines = ['"a","b",3', line]
    rows = parse("".join(f"{line}\n" for line in lines).encode(), Form(3, (0, 1, 2)))
    texts = [rows.each(place, Answers(str, object)).tolist() for place in range(3)]
    assert [list(row) for row in zip(*texts, strict=True)] == [split(line) for line in lines]


@quick
@given(
    names=st.lists(
        st.sampled_from(["k", "k [12]", "k [1]]", "k [12", "k []", "k [a1]", "k[1]", "[1]", " [1]", "é [7]"])
    )
)
def test_launch_ids_are_left_out_as_the_line_reader_leaves_them_out(names):
    names = ["a [1]", *names]
    rows = parse("".join(f'"{name}",1\n' for name in names).encode(), Form(2, (0,), (1,), with_id=0))
    assert rows.each(0, Answers(str, object)).tolist() == [LAUNCH_ID.sub("", name) for name in names]


def test_texts_are_asked_for_once_from_block_to_block():
    asked = []
    answers = Answers(lambda text: asked.append(text) or len(asked), int)
    blocks = (parse(lines, Form(2, (0,), (1,))) for lines in (b"a,1\nb,2\n", b"b,1\nc,2\n"))
    assert [block.each(0, answers).tolist() for block in blocks] == [[1, 2], [2, 3]]
    assert asked == ["a", "b", "c"]


ROWS = st.sampled_from(['"Tesla",1', "1,2", '"Devil",1', "9", '"T",0'])
NO_ROWS = st.sampled_from(
    ['"Device","Kernel"', '"Start","Duration"', '"Time","Calls"', '"Type","Time"', "", "==1== x", "a,"]
)


@quick
@given(lines=st.lists(st.tuples(st.booleans(), ROWS, NO_ROWS), min_size=1), has_end=st.booleans())
@example(lines=[(True, "9", "")], has_end=False)
def test_lines_that_may_be_no_rows_are_found_among_rows(lines, has_end):
    """What starts as a header does, or with neither a quote nor a digit."""
    texts = [row if is_row else no_row for is_row, row, no_row in lines]
    data = ("\n".join(texts) + ("\n" if has_end else "")).encode()
    assume(data)
    whole = data.removesuffix(b"\n").split(b"\n")
    starts = [sum(len(line) + 1 for line in whole[:number]) for number in range(len(whole))]
    headers = (b'"Dev', b'"Sta', b'"Tim', b'"Typ')
    may_be_rows = [line[:1] in b'"0123456789' and line for line in whole]
    odd = [
        start
        for start, line, may_be_row in zip(starts, whole, may_be_rows, strict=True)
        if not may_be_row or line.startswith(headers)
    ]
    block = Block(data, is_long=True)
    found = [place for place in starts if block.next_odd(place) == place]
    assert found == odd


@pytest.mark.parametrize("message", catalogue("nvprof"), ids=lambda message: message.pattern[:40])
def test_no_message_is_passed_over(message):
    """Each alternative of each pattern, written as a text that it finds, is heard."""
    pattern = (
        re.sub(r"\(\?=[^()]*\)", "", message.pattern).replace("\\(?", "").replace(".{1,40}", " ").replace("\\b", "")
    )
    pattern = re.sub(r"\(\?P<detail>(\d*)[^)]*\)", lambda detail: detail[1] or "8", pattern)
    for alternative in re.split(r"\|(?![^(]*\))", pattern):
        text = re.sub(r"\(\?:([^|)]+)\|[^)]+\)", r"\1", alternative).replace("[\\d.]+", "3.0").replace(".*", " ")
        text = text.replace("[Aa]", "A").replace("\\", "")
        assert re.search(message.pattern, text), text
        heard = reader.Messages()
        heard.hear(1, text)
        assert heard.findings.explanation(), text


def test_counters_added_up_in_pieces_are_those_added_up_at_once(tmp_path, monkeypatch):
    logs = [read(write(tmp_path, FULL, "full")), read(write(tmp_path, FULL.replace("axpy", "axpz"), "other"))]
    whole = combine(logs)
    monkeypatch.setattr(passes, "_CELLS", 3)
    pieces = combine(logs)
    for one, other in zip((whole.counters, whole.marks), (pieces.counters, pieces.marks), strict=True):
        assert one.shape[1] > 1 and one.equals(other)


LOGS = st.builds(
    lambda pid, rows: profiled(pid, METRICS, *rows),
    st.integers(1, 99),
    st.lists(
        st.builds(
            metric,
            st.sampled_from("abc"),
            st.integers(0, 1000),
            st.sampled_from(["k(int)", "l(int)"]),
            st.integers(1, 5),
        ),
        min_size=1,
        max_size=6,
    ),
)


@quick
@given(texts=st.lists(LOGS, min_size=2, max_size=4), data=st.data())
def test_neither_order_nor_files_matter_to_totals(tmp_path, texts, data):
    logs = [read(write(tmp_path, text, f"{i}.csv")) for i, text in enumerate(texts)]
    turned = data.draw(st.permutations(logs))
    together = read(write(tmp_path, "".join(texts), "together.csv"))
    assert same(totals(*logs), totals(*turned))
    assert same(totals(*logs), totals(together))


# --- combine: the rules, one by one


def log_of(tmp_path, name, *lines, pid=1):
    return read(write(tmp_path, profiled(pid, *lines), name))


def test_the_same_counter_again_is_a_further_run(tmp_path):
    one = log_of(tmp_path, "a", METRICS, metric("a", 5), metric("r", "10%"))
    two = log_of(tmp_path, "b", METRICS, metric("a", 7, launches=6), metric("r", "20%", launches=6), pid=2)
    joined = combine([one, two])
    assert joined.counters["a"].tolist() == [10 + 42] and joined.kernels["launches"].tolist() == [8]
    assert joined.counters["r"].tolist() == [(2 * 10 + 6 * 20) / 8] and joined.units["r"] == "percent"
    assert not joined.marks.to_numpy().any() and not joined.warnings


def test_other_launches_are_brought_to_the_largest_number(tmp_path):
    one = log_of(tmp_path, "a", METRICS, metric("a", 5, launches=10))
    two = log_of(tmp_path, "b", EVENTS, event("b", 7, launches=4))
    joined = combine([one, two])
    assert joined.counters.loc[0].to_dict() == {"a": 50, "b": 70} and joined.kernels["launches"].tolist() == [10]
    assert joined.marks.loc[0].to_dict() == {"a": 0, "b": Mark.ESTIMATED}
    assert joined.warnings == (
        "`axpy(int, float*)`: `b` saw 4 launches, other counters 10; brought to the larger number by averages, so estimated",
    )


def test_time_is_brought_to_the_launches_of_the_counters(tmp_path):
    counts = log_of(tmp_path, "a", METRICS, metric("a", 5, launches=4))
    times = log_of(tmp_path, "b", TRACE, TRACE_UNITS, launch(2.0), launch(4.0))
    joined = combine([counts, times])
    assert joined.kernels["time_s"].tolist() == [pytest.approx(12e-3)]
    assert joined.kernels["time_marks"].tolist() == [Mark.ESTIMATED]
    assert "times are of 2 launches, counters of 4" in joined.warnings[0]


def test_time_of_more_launches_than_the_counters_is_brought_to_theirs(tmp_path):
    counts = log_of(tmp_path, "a", METRICS, metric("a", 5, launches=1))
    times = log_of(tmp_path, "b", TRACE, TRACE_UNITS, launch(2.0), launch(4.0), launch(6.0))
    joined = combine([counts, times])
    assert joined.kernels["launches"].tolist() == [1]
    assert joined.kernels["time_s"].tolist() == [pytest.approx(4e-3)]
    assert joined.kernels["time_marks"].tolist() == [Mark.ESTIMATED]
    assert any("times are of 3 launches, counters of 1" in warning for warning in joined.warnings)


def test_a_table_without_a_value_does_not_decide_the_unit_of_a_counter(tmp_path):
    without = log_of(tmp_path, "a", METRICS, metric("a", "<OVERFLOW>"), metric("b", 1))
    rate = log_of(tmp_path, "b", METRICS, metric("a", "50%"), metric("b", 1), pid=2)
    joined = combine([without, rate])
    assert joined.units["a"] == "percent" and joined.counters["a"].tolist() == [50]
    assert not any("in one table" in warning for warning in joined.warnings)


def test_launches_without_any_value_are_those_of_the_table_that_saw_most(tmp_path):
    """Two tables of the same launches: what they saw is not twice as many."""
    events = log_of(tmp_path, "a", EVENTS, event("a", "<OVERFLOW>", launches=2))
    metrics = log_of(tmp_path, "b", METRICS, metric("b", "<OVERFLOW>", launches=3))
    assert combine([events, metrics]).kernels["launches"].tolist() == [3]


def test_a_trace_is_preferred_to_a_summary_and_never_added_to_it(tmp_path):
    trace = log_of(tmp_path, "a", TRACE, TRACE_UNITS, launch(2.0), launch(4.0))
    summary = log_of(
        tmp_path, "b", USAGE, "%,ms,,ms,ms,ms,", '100,6.0,2,3,2,4,"axpy(int, float*)"', '1,9.0,1,9,9,9,"k(int)"'
    )
    joined = combine([summary, trace])
    found = joined.kernels.set_index("kernel")
    assert found["time_s"].to_dict() == {"axpy(int, float*)": pytest.approx(6e-3), "k(int)": pytest.approx(9e-3)}
    assert found["device"].tolist() == [K20C, K20C]
    assert any("times of nvprof-gpu-summary were not used" in warning for warning in joined.warnings)


def test_times_of_one_kind_add_up_over_runs(tmp_path):
    one = log_of(tmp_path, "a", TRACE, TRACE_UNITS, launch(2.0))
    two = log_of(tmp_path, "b", TRACE, TRACE_UNITS, launch(5.0), pid=2)
    assert combine([one, two]).kernels[["launches", "time_s"]].values.tolist() == [[2, pytest.approx(7e-3)]]


def test_kernels_without_counters_keep_their_time(tmp_path):
    counts = log_of(tmp_path, "a", METRICS, metric("a", 5, kernel="_Z4axpyiPf"))
    times = log_of(tmp_path, "b", TRACE, TRACE_UNITS, launch(2.0))
    joined = combine([counts, times])
    found = joined.kernels.set_index("kernel")
    assert found.loc["axpy(int, float*)", "time_s"] == pytest.approx(2e-3) and isnan(found.loc["_Z4axpyiPf", "time_s"])
    assert joined.counters["a"].isna().tolist() == [False, True]
    assert [warning.split(": ")[1][:11] for warning in joined.warnings[:2]] == ["no counters", "counters bu"]
    assert "mangled" in joined.warnings[2]


def test_kernels_that_do_not_match_though_both_logs_are_mangled_are_not_blamed_on_mangling(tmp_path):
    counts = log_of(tmp_path, "a", METRICS, metric("a", 5, kernel="_Z4onlyPf"))
    times = log_of(tmp_path, "b", TRACE, TRACE_UNITS, launch(2.0, kernel="_Z5otherPf"), launch(3.0, kernel="plain"))
    warnings = combine([counts, times]).warnings
    assert any("no counters" in warning for warning in warnings)
    assert not any("mangled" in warning for warning in warnings)


def test_a_summary_without_device_is_not_used_where_there_are_several(tmp_path):
    counts = log_of(tmp_path, "a", METRICS, metric("a", 5), metric("a", 5, device="Tesla K20c (1)"))
    times = log_of(tmp_path, "b", USAGE, "%,ms,,ms,ms,ms,", '100,6.0,2,3,2,4,"axpy(int, float*)"')
    joined = combine([counts, times])
    assert joined.kernels["time_s"].isna().all() and len(joined.kernels) == 2
    assert "do not tell their device" in joined.warnings[0]


def test_names_of_newer_drivers_are_the_same_device(tmp_path):
    one = log_of(tmp_path, "a", METRICS, metric("a", 5, device="GeForce GTX 1080 (0)"))
    two = log_of(tmp_path, "b", METRICS, metric("b", 5, device="NVIDIA GeForce GTX 1080 (0)"))
    assert combine([one, two]).kernels["device"].tolist() == ["GeForce GTX 1080 (0)"]


def test_an_overflowed_launch_makes_a_lower_bound(tmp_path):
    rows = [f'"{K20C}","1","7","k",{value},1.0' for value in ("5", "<OVERFLOW>", "6")]
    joined = combine([log_of(tmp_path, "a", WIDE, ",,,,,GB/s", *rows)])
    assert joined.counters["inst_integer"].tolist() == [11] and joined.kernels["launches"].tolist() == [3]
    assert joined.marks["inst_integer"].tolist() == [Mark.MISSING] and not joined.marks["dram_read_throughput"].any()


def test_a_counter_that_was_never_told_is_missing_not_zero(tmp_path):
    joined = combine([log_of(tmp_path, "a", METRICS, metric("a", 5), metric("b", 0, kernel="k(int)"))])
    assert joined.counters["a"].isna().tolist() == [False, True] and joined.counters["b"].tolist()[1] == 0
    assert joined.marks["a"].tolist() == [0, Mark.MISSING]


def test_the_same_file_twice_is_said(tmp_path):
    log = log_of(tmp_path, "a", METRICS, metric("a", 5))
    assert cell(log, "a") == 10 and "is the same file as" in combine([log, log]).warnings[0]
