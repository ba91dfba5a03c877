"""What valgrind and its annotators print, read as the profile that it is of."""

import pytest

from eprof import logs

SUMMARY = """==7== Command: ./a 3
==7== I   refs:      1,000
==7== I1  misses:        4
==7== LLi misses:        3
==7== D   refs:        600  (400 rd   + 200 wr)
==7== D1  misses:       30  ( 20 rd   +  10 wr)
==7== LLd misses:       12  (  8 rd   +   4 wr)
==7== LL  misses:       15  ( 11 rd   +   4 wr)
"""
ALL = {"Ir": 1000, "I1mr": 4, "ILmr": 3, "Dr": 400, "Dw": 200, "D1mr": 20, "D1mw": 10, "DLmr": 8, "DLmw": 4}
HEAD = "# callgrind format\nversion: 1\ncreator: callgrind-3.22.0\ncmd:  ./a 3\npositions: line\nevents: Ir Dr\n"
CALLGRIND = """90,000 (100.0%)  PROGRAM TOTALS

Ir                file:function
--------------------------------
70,000 (77.78%)  a.cc:A::f(int, std::string) const [/home/a]
15,000 (16.67%)  ???:malloc [/usr/lib/libc.so.6]

-- Auto-annotated source: a.cc
65,000 (72.22%)  for (;;) f();
"""
CACHEGRIND = """    Ir   Dr DLmr  file:function
70,000  900    .  a.c:f
   200   10    5  ???:???
"""


@pytest.fixture
def costs_of(tmp_path):
    """The costs of each function in a text: {function: {event: number}}."""

    def reading(text):
        (tmp_path / "log.txt").write_text(text)
        (table,) = logs.read(tmp_path / "log.txt").tables
        kept = [name for name in table.counters.names if name in ALL]
        return {
            kernel: {name: table.counters[name][row] for name in kept if table.counters[name][row]}
            for row, kernel in enumerate(table.rows.kernel.texts())
        }

    return reading


@pytest.mark.parametrize("quote", ["", "> "])
def test_sums_of_a_program(costs_of, quote):
    assert costs_of("".join(quote + line for line in SUMMARY.splitlines(keepends=True))) == {"./a 3": ALL}


def test_sums_of_several_programs(costs_of):
    both = costs_of(SUMMARY + SUMMARY.replace("./a", "./b").replace("1,000", "2,000"))
    assert {name: costs["Ir"] for name, costs in both.items()} == {"./a 3": 1000, "./b 3": 2000}


def test_functions_that_an_annotator_shows_and_those_that_it_does_not(costs_of):
    assert costs_of(CALLGRIND) == {
        "A::f(int, std::string) const": {"Ir": 70000},
        "malloc": {"Ir": 15000},
        "functions not shown": {"Ir": 5000},
    }


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        # Of 90,000 instructions 25,000 are 28 %, and 83 % of those with a name.
        ("25,000  a.c:f [/home/a]\n 5,000  a.c:g [/home/a]\n", "(28 % in f;"),
        ("25,000  a.c:f [/home/a]\n25,000  a.c:g [/home/a]\n", "(28 % in f;"),
        ("".join(f"2,000  a.c:f{place} [/home/a]\n" for place in range(10)), "(-O3"),
    ],
)
def test_functions_that_a_list_leaves_out_are_no_target(eprof_command, tmp_path, rows, target):
    (tmp_path / "list.txt").write_text("90,000  PROGRAM TOTALS\n\nIr  file:function\n----\n" + rows)
    said = " ".join(eprof_command("report", "list.txt").stdout.split())
    assert "functions not shown" in said.partition("Try")[0] and f"execute fewer instructions {target}" in said


def test_events_of_an_annotator(costs_of):
    costs = costs_of(CACHEGRIND)
    assert costs["f"] == {"Ir": 70000, "Dr": 900} and sum(each.get("DLmr", 0) for each in costs.values()) == 5


def test_a_profile_of_which_only_the_head_is_there(costs_of):
    assert costs_of(f"{HEAD}summary: 1000 400\n") == {"./a 3": {"Ir": 1000, "Dr": 400}}


def test_functions_with_their_callees_are_no_parts_of_the_whole(costs_of):
    inclusive = CALLGRIND.replace("70,000 (77.78%)", "90,000 (100.0%)")
    assert costs_of(inclusive) == {"whole program": {"Ir": 90000}}


def test_a_row_that_is_cut_off_is_in_what_is_not_shown(costs_of):
    totals = "80,000  920    7  PROGRAM TOTALS\n\n"
    costs = costs_of(totals + CACHEGRIND.replace("70,000  900    .", "70,000  900"))
    assert costs == {
        "???": {"Ir": 200, "Dr": 10, "DLmr": 5},
        "functions not shown": {"Ir": 79800, "Dr": 910, "DLmr": 2},
    }


def test_what_valgrind_printed_beside_a_table_is_its_whole(costs_of):
    table = CALLGRIND.partition("\n\n")[2]
    costs = costs_of("==7== I   refs:      91,000\n" + table)
    assert costs["functions not shown"] == {"Ir": 6000}
    assert "functions not shown" not in costs_of(table)


def test_what_one_of_several_programs_lacks_is_no_zero(costs_of):
    assert costs_of(SUMMARY + "==7== Command: ./b\n==7== I   refs:      2,000\n") == {
        "./a 3": {"Ir": 1000},
        "./b": {"Ir": 2000},
    }


TREE = """1,000 (100.0%)  PROGRAM TOTALS

Ir  file:function
--------------------------------

500 (50.00%)  *  a.c:f [/home/a]
400 (40.00%)  >   b.c:g(int) (88x) [/home/a]

300 (30.00%)  <   a.c:f (3x) [/home/a]
150 (15.00%)  *  b.c:g(int) [/home/a]

-- Auto-annotated source: a.c
200  *x = y ? a.c:b
"""


def test_a_tree_has_functions_between_callers_and_callees(costs_of):
    assert costs_of(TREE) == {"f": {"Ir": 500}, "g(int)": {"Ir": 150}, "functions not shown": {"Ir": 350}}


def test_sums_whose_process_was_cut_off(costs_of):
    bare = SUMMARY.partition("\n")[2].replace("==7== ", "")
    assert costs_of(f"Before:\n```\n{bare}```\n") == {"whole program": ALL}
    several = costs_of(f"Before:\n{bare}After:\n{bare.replace('1,000', '500')}")
    assert {name: costs["Ir"] for name, costs in several.items()} == {"program 1": 1000, "program 2": 500}
    assert costs_of(f"{SUMMARY}In short:\n{bare}") == {"./a 3": ALL}, "words around a log repeat its sums"
