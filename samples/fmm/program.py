"""`fmm`: reads the command line, runs or counts, prints."""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.launch import REALS, open_device
from common.options import COMMON_KEYS, PRECISION, Key, SampleError, UsageError, one_of, parse, usage, whole
from common.work import as_json, as_text
from fmm.count import Counter, phases
from fmm.operators import FFT
from fmm.points import DISTRIBUTIONS
from fmm.solver import BLOCK, PHASES, Plan, Solver, direct, kernel_source, plan
from fmm.tree import build, lists

ABOUT = "Potentials of N charges by the kernel-independent fast multipole method, phases UP U V W X DOWN."
KEYS = {
    "N": Key(65536, whole(1, 10**8), "points"),
    "Q": Key(128, whole(1), "most points in a leaf box"),
    "order": Key(4, whole(min(FFT), max(FFT)), f"points an edge of a surface, {min(FFT)} to {max(FFT)}: accuracy"),
    "dist": Key("uniform", one_of(*DISTRIBUTIONS), ", ".join(DISTRIBUTIONS)),
    "precision": PRECISION,
    "check": Key(100, whole(0), "compare so many points with the direct sum; 0 for none"),
    **COMMON_KEYS,
}
# The largest relative error that passes; measured ones are some five times less (README).
TOLERANCE = {2: 1e-1, 3: 1e-2, 4: 1e-3, 5: 2e-4, 6: 2e-5, 7: 5e-6, 8: 1e-6}
SINGLE = 1e-5  # what rounding leaves of single precision


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, 1 for an error or a failed check, 2 for a bad command line."""
    try:
        values, flags = parse(arguments, KEYS)
        if "--help" in flags:
            print(usage("fmm", KEYS, ABOUT))
            return 0
        if "--source" in flags:
            print(kernel_source(values["order"], values["precision"]), end="")
            return 0
        return count(values, "--json" in flags) if "--count" in flags else run(values, "--json" in flags)
    except UsageError as err:
        print(f"fmm: {err}", file=sys.stderr)
        return 2
    except SampleError as err:
        print(f"fmm: {err}", file=sys.stderr)
        return 1


def problem(values: dict[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and charges from -1 to 1, rounded to the precision that the device will hold."""
    rng = np.random.default_rng(values["seed"])
    points = DISTRIBUTIONS[values["dist"]](values["N"], rng)
    charges = rng.uniform(-1, 1, values["N"])
    real = REALS[values["precision"]]
    return points.astype(real).astype(np.float64), charges.astype(real).astype(np.float64)


def prepare(points: NDArray[np.float64], values: dict[str, Any]) -> Plan:
    """Tree, lists and index arrays."""
    tree = build(points, values["Q"])
    return plan(tree, lists(tree), values["order"])


def describe(work: Plan) -> dict[str, int]:
    """The tree in a few numbers."""
    tree, of = work.tree, work.lists
    return {
        "boxes": len(tree),
        "leaves": int(tree.is_leaf.sum()),
        "levels": int(tree.level.max()) + 1,
        **{name: len(getattr(of, name).items) for name in "uvwx"},
    }


def count(values: dict[str, Any], json_wanted: bool) -> int:
    """--count."""
    work = prepare(problem(values)[0], values)
    kernels = Counter(work, values["precision"]).kernels()
    by_phase = phases(kernels)
    if json_wanted:
        settings = {name: values[name] for name in ("N", "Q", "order", "dist", "seed", "precision")}
        print(as_json({**settings, "tree": describe(work)}, {"phases": by_phase, "kernels": kernels}))
    else:
        print(", ".join(f"{name} {number}" for name, number in describe(work).items()))
        print(as_text({**by_phase, **kernels}))
        print(empty_lists(describe(work)), end="\n" if empty_lists(describe(work)) else "")
    return 0


def run(values: dict[str, Any], json_wanted: bool) -> int:
    """Evaluate, check, report."""
    points, charges = problem(values)
    start = time.perf_counter()
    work = prepare(points, values)
    source = kernel_source(values["order"], values["precision"])
    device = open_device(values["backend"], source, BLOCK, values["device"])
    solver = Solver(work, charges, values["precision"], device)
    ready = time.perf_counter()
    for _ in range(values["repeat"]):
        potential = solver.evaluate()
    evaluated = time.perf_counter()
    kernels = {name: sum(seconds) / values["repeat"] for name, seconds in device.times.items()}
    report = {
        "device": device.name,
        "tree": describe(work),
        "host_s": ready - start,
        "evaluate_s": (evaluated - ready) / values["repeat"],
        "kernel_s": kernels,
        "phase_s": {phase: sum(kernels.get(name, 0.0) for name in kernels if of(name, phase)) for phase in PHASES},
    }
    if values["check"]:
        report |= check(points, charges, potential, values)
    print(json.dumps(report, indent=1) if json_wanted else text(report, values))
    return 0 if report.get("passed", True) else 1


def of(kernel: str, phase: str) -> bool:
    """Whether a kernel belongs to a phase."""
    return kernel.startswith(phase.lower() + "_")


def check(
    points: NDArray[np.float64], charges: NDArray[np.float64], potential: NDArray[np.float64], values: dict[str, Any]
) -> dict[str, Any]:
    """Relative error, in the 2-norm over a random subset, against the direct sum in double precision."""
    rng = np.random.default_rng(values["seed"] + 1)
    targets = rng.choice(len(points), min(values["check"], len(points)), replace=False)
    exact = direct(points, charges, targets)
    size = float(np.linalg.norm(exact))
    difference = float(np.linalg.norm(potential[targets] - exact))
    error = difference / size if size else difference
    tolerance = max(TOLERANCE[values["order"]], SINGLE if values["precision"] == "single" else 0)
    return {"checked": len(targets), "relative_error": error, "tolerance": tolerance, "passed": error <= tolerance}


def empty_lists(tree: dict[str, int]) -> str:
    """Why W and X do nothing, where they do; boxes of different sizes must meet for them to have work."""
    if tree["w"] or tree["x"]:
        return ""
    return "W and X are empty: all leaves that meet are of one size (dist=clustered or another Q has them)"


def text(report: dict[str, Any], values: dict[str, Any]) -> str:
    """The report for people."""
    settings = " ".join(f"{name}={values[name]}" for name in ("N", "Q", "order", "dist", "precision", "seed"))
    lines = [
        f"fmm {settings} on {report['device']}",
        ", ".join(f"{name} {number}" for name, number in report["tree"].items()),
        f"host {report['host_s']:.3f} s, evaluation {report['evaluate_s']:.4f} s",
    ]
    for phase, seconds in report["phase_s"].items():
        parts = ", ".join(f"{name} {s * 1e3:.3f}" for name, s in report["kernel_s"].items() if of(name, phase))
        lines.append(f"  {phase:5}{seconds * 1e3:10.3f} ms" + (f"   {parts}" if parts else ""))
    if why := empty_lists(report["tree"]):
        lines.append(why)
    if "relative_error" in report:
        verdict = "passed" if report["passed"] else "FAILED"
        error = f"relative error {report['relative_error']:.2e} at {report['checked']} points"
        lines.append(f"{error}, {verdict} (at most {report['tolerance']:.0e})")
    return "\n".join(lines)
