"""Loops whose arithmetic needs its own result of the turn before: of known source, and instruction by instruction."""

import shutil
import subprocess
from pathlib import Path

import pytest

from eprof.collect.collector import COUNTERS, Place, Request, Tool
from eprof.profilers.callgrind.collector import COLLECTOR
from eprof.profilers.callgrind.decode import decoded
from eprof.profilers.callgrind.file_format import parse
from eprof.profilers.callgrind.recurrences import PRODUCT, RECURRENCE, Coded, chained

N = 500
LOOPS = f"""#define LOOP __attribute__((noinline)) double
#define N {N}
double x[N], y[N], z[N];
LOOP filter(double a) {{ for (int i = 1; i < N; i++) y[i] = y[i - 1] * a + x[i]; return 0; }}
LOOP filter_of_weights(double a) {{ for (int i = 1; i < N; i++) y[i] = y[i - 1] * a + x[i] * z[i]; return 0; }}
LOOP prefix(void) {{ double s = 0; for (int i = 0; i < N; i++) {{ s += x[i]; y[i] = s; }} return s; }}
LOOP horner(double a) {{ double s = 0; for (int i = 0; i < N; i++) s = s * a + x[i]; return s; }}
LOOP turned(double c, double s) {{
    double re = 1, im = 0;
    for (int i = 0; i < N; i++) {{ double was = re; re = re * c - im * s; im = was * s + im * c; }}
    return re + im;
}}
LOOP changing(double a) {{ volatile double s = 1; for (int i = 0; i < N; i++) s *= a; return s; }}
LOOP product(void) {{ double s = 1; for (int i = 0; i < N; i++) s *= x[i]; return s; }}
LOOP sum(void) {{ double s = 0; for (int i = 0; i < N; i++) s += x[i] * y[i]; return s; }}
LOOP scaled(double a) {{ for (int i = 0; i < N; i++) y[i] = y[i] * a + x[i]; return 0; }}
LOOP stencil(void) {{ for (int i = 1; i < N - 1; i++) y[i] = x[i - 1] + x[i] * 2.5 + x[i + 1]; return 0; }}
int main(int n, char **words) {{
    return filter(n) + filter_of_weights(n) + prefix() + horner(n) + turned(n, n) + changing(n) + product() + sum()
        + scaled(n) + stencil() > 1e300;
}}
"""
# Function -> its operations a turn, those that take their own result, and those that only multiply it.
BY_HAND = {
    "filter": (2, 2, 0),
    "filter_of_weights": (3, 2, 0),
    "prefix": (1, 1, 0),
    "horner": (2, 2, 0),
    "turned": (6, 6, 0),
    "changing": (1, 1, 0),
    "product": (1, 0, 1),
    "sum": (2, 0, 0),
    "scaled": (2, 0, 0),
    "stencil": (3, 0, 0),
}


@pytest.mark.parametrize("flags", [("-O1",), ("-O2", "-fno-tree-vectorize"), ("-O2", "-fno-tree-vectorize", "-mfma")])
def test_known_loops_have_the_recurrences_of_their_source(tmp_path, flags):
    pytest.importorskip("capstone")
    if not shutil.which("gcc") or not shutil.which("valgrind"):
        pytest.skip("no gcc or no valgrind")
    if "-mfma" in flags and " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("a processor without fused multiply-adds")
    (tmp_path / "loops.c").write_text(LOOPS)
    subprocess.run(["gcc", *flags, "loops.c", "-o", "loops"], cwd=tmp_path, check=True)
    (tmp_path / "logs").mkdir()
    tool = Tool("callgrind", True, "", shutil.which("valgrind"))
    step = COLLECTOR.step(COUNTERS, tool, Request((str(tmp_path / "loops"),)), Place(tmp_path))
    subprocess.run(step.command, check=True, capture_output=True)
    (source,) = (then.source for then in step.then.each())
    costs = decoded(parse(source.read_text().split("\n")), tmp_path)
    events = [costs.own[name] for name in ("fp64_scalar", RECURRENCE, PRODUCT)]
    a_turn = {
        costs.functions[place].name.partition(".")[0]: tuple(round(event[row] / N) for event in events)
        for row, place in enumerate(costs.places.tolist())
    }
    assert {name: a_turn[name] for name in BY_HAND} == BY_HAND


def code(*lines):
    return [Coded(16 * at, 16, *line.partition(" ")[::2]) for at, line in enumerate(lines)]


BACK = "jne 0x0"


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        # What the next turn loads is what this one stores: 8 bytes on, by a step of 8.
        (
            ("movsd xmm0, qword ptr [rdi]", "mulsd xmm0, xmm1", "movsd qword ptr [rdi + 8], xmm0", "add rdi, 8", BACK),
            {16},
        ),
        (
            ("movsd xmm0, qword ptr [rdi]", "mulsd xmm0, xmm1", "movsd qword ptr [rdi + 8], xmm0", "add rdi, 16", BACK),
            (),
        ),
        (
            (
                "movsd xmm0, qword ptr [rdi]",
                "mulsd xmm0, xmm1",
                "movsd qword ptr [rdi + 8], xmm0",
                "mov rdi, rax",
                BACK,
            ),
            (),
        ),
        (
            ("movsd xmm0, qword ptr [rax*8]", "addsd xmm0, xmm1", "movsd qword ptr [rax*8 + 8], xmm0", "inc eax", BACK),
            {16},
        ),
        # A register that is set anew in each turn carries nothing; nor does one that a call may change.
        (("xorpd xmm0, xmm0", "addsd xmm0, xmm1", "mulsd xmm0, xmm2", BACK), ()),
        (("addsd xmm0, xmm1", "mulsd xmm0, xmm2", "call 0x999", BACK), ()),
        (("addsd xmm0, xmm1", "mulsd xmm0, xmm2", BACK), {0, 16}),
        (("addsd xmm0, xmm1", "comisd xmm0, xmm2", BACK), ()),
        # The addend of a sum is carried; of the other forms it is a factor.
        (("vfmadd231sd xmm0, xmm1, xmm2", BACK), ()),
        (("vfmadd213sd xmm0, xmm1, xmm2", BACK), {0}),
        (("vfmadd132sd xmm0, xmm1, xmm2", BACK), {0}),
        # Of a loop in a loop the inner one alone is looked at.
        (("addsd xmm0, xmm1", "mulsd xmm0, xmm2", "jne 0x10", BACK), ()),
        # Four chains side by side fit a vector.
        ((*(f"vfmadd213sd xmm{at}, xmm8, xmm9" for at in range(4)), BACK), ()),
        ((*(f"vfmadd213sd xmm{at}, xmm8, xmm9" for at in range(3)), BACK), {0, 16, 32}),
    ],
)
def test_what_a_turn_takes_of_the_turn_before(lines, kinds):
    assert {address for address, kind in chained(code(*lines)).items() if kind == RECURRENCE} == set(kinds)


def test_a_product_is_one_where_no_turn_stores_it():
    assert chained(code("mulsd xmm0, xmm1", BACK)) == {0: PRODUCT}
    assert chained(code("mulsd xmm0, xmm1", "movsd qword ptr [rdi], xmm0", BACK)) == {0: RECURRENCE}
