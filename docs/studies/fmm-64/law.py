"""What each FMM kernel executes, as a law: opcode counts are whole multiples of a few numbers that the lists give.

No kernel branches on data, only on how many boxes, points and list items there are. So each opcode is executed
`sum_d coefficient_d * driver_d` times, the drivers being what its loops run over. The coefficients are measured on the
simulated device with small inputs, where they must come out the same for every input; then the lists alone tell what
any input executes. Sums are over groups of 64 lanes unless said otherwise.
"""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "samples"))

from fmm.program import prepare, problem  # noqa: E402
from fmm.solver import BLOCK, Plan  # noqa: E402
from fmm.tree import Csr  # noqa: E402

Tally = Mapping[str, int]  # a line of Oclgrind's block without its number -> how often; bytes under "... (bytes)"
_BLOCK = re.compile(r"Instructions executed for kernel '(\w+)'")
_COUNT = re.compile(r"\s*([\d.,'\s]*\d) - (.+?)(?: \(([\d.,'\s]*\d) bytes\))?$")


def fmm_plan(n: int, q: int, dist: str = "uniform", seed: int = 1) -> Plan:
    """The lists of one input, as fmm itself makes them (order 4, double precision)."""
    values = {"N": n, "Q": q, "order": 4, "dist": dist, "precision": "double", "seed": seed}
    return prepare(problem(values)[0], values)


def drivers(plan: Plan) -> dict[str, dict[str, int]]:
    """What the loops of each kernel run over, summed over its launches; no launch, no entry."""
    tree, of = plan.tree, plan.lists
    points = tree.end - tree.begin
    tiles = -(-points // BLOCK)
    parents = np.concatenate([np.empty(0, dtype=np.int64), *plan.up_parents])
    downs = np.concatenate([np.empty(0, dtype=np.int64), *plan.down_boxes])
    found = {
        "up_p2m": {"leaves": len(plan.up_leaves), **_sums(plan.up_leaves, tiles=tiles, points=points)},
        "up_m2m": {"parents": len(parents), "children": int((tree.children[parents] >= 0).sum())},
        "u_p2p": _near(plan, points, tiles),
        "v_fft": {"boxes": len(plan.v_sources)},
        "v_multiply": {"targets": len(plan.v_targets), "items": len(plan.v.items)},
        "v_ifft": {"boxes": len(plan.v_targets)},
        "w_m2p": {
            "groups": len(plan.w_tasks),
            "items": int(of.w.counts[plan.w_tasks[:, 0]].sum()),
            "targets": int(points[np.unique(plan.w_tasks[:, 0])].sum()),
            "targets x items": int(points[of.w.owner].sum()),
        },
        "x_p2l": {
            "groups": len(plan.x_boxes),
            "items": len(of.x.items),
            **_sums(of.x.items, tiles=tiles, points=points),
        },
        "down_l2l": {"boxes": len(downs), "heirs": int((plan.parent_octant[downs, 0] >= 0).sum())},
        "down_l2p": {
            "groups": len(plan.down_tasks),
            "targets": int(points[np.unique(plan.down_tasks[:, 0])].sum()),
        },
    }
    return {kernel: values for kernel, values in found.items() if next(iter(values.values()))}


def _sums(boxes: NDArray[np.int64], **columns: NDArray[np.int64]) -> dict[str, int]:
    """Each column summed over the boxes."""
    return {name: int(column[boxes].sum()) for name, column in columns.items()}


def _listed(of: Csr, column: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every box, the column summed over the items of its list."""
    sums = np.r_[0, np.cumsum(column[of.items])]
    return np.asarray(sums[of.begin[1:]] - sums[of.begin[:-1]])


def _near(plan: Plan, points: NDArray[np.int64], tiles: NDArray[np.int64]) -> dict[str, int]:
    """U: a group is up to 64 targets of a leaf; tiles are up to 64 sources, staged for them.

    Targets times tiles, how often lanes enter the inner loop, is the same number as `sources`: the list is symmetric.
    """
    u, boxes = plan.lists.u, plan.u_tasks[:, 0]
    own = np.unique(boxes)
    return {
        "groups": len(boxes),
        "items": int(u.counts[boxes].sum()),
        "tiles": int(_listed(u, tiles)[boxes].sum()),
        "sources": int(_listed(u, points)[boxes].sum()),
        "targets": int(points[own].sum()),
        "targets x sources": int((points * _listed(u, points))[own].sum()),
    }


def tallies(text: str) -> dict[str, Counter[str]]:
    """Oclgrind's counts in a program's output, summed over the launches of each kernel."""
    found: dict[str, Counter[str]] = {}
    here: Counter[str] | None = None
    for line in text.splitlines():
        if head := _BLOCK.search(line):
            here = found.setdefault(head[1], Counter())
        elif not line.strip():
            here = None
        elif here is not None and (one := _COUNT.fullmatch(line)):
            here[one[2]] += _whole(one[1])
            if one[3]:
                here[f"{one[2]} (bytes)"] += _whole(one[3])
    return found


def _whole(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def as_log(counts: Mapping[str, Tally], head: str) -> str:
    """The counts in Oclgrind's own format, so that eprof reads them as it reads a log."""
    lines = [head, ""]
    for kernel, tally in counts.items():
        lines += ["", f"Instructions executed for kernel '{kernel}':"]
        for name, number in tally.items():
            if not name.endswith(" (bytes)") and number:
                sized = f" ({tally[f'{name} (bytes)']} bytes)" if f"{name} (bytes)" in tally else ""
                lines.append(f"{number:16} - {name}{sized}")
        lines.append("")
    return "\n".join(lines) + "\n"


class LawError(Exception):
    """The simulated device did not execute whole multiples of the drivers."""


Law = dict[str, dict[str, dict[str, int]]]  # kernel -> opcode -> driver -> coefficient


def fit(cases: Sequence[tuple[dict[str, dict[str, int]], Mapping[str, Tally]]]) -> Law:
    """The law that all cases obey, to the last instruction.

    cases: (drivers, what was executed). Solves for each opcode and rounds; the drivers are cut down to those that the
    cases tell apart. Raises LawError where a case is not met exactly.
    """
    return {kernel: _fit_kernel(kernel, cases) for kernel in dict.fromkeys(k for _, seen in cases for k in seen)}


def _fit_kernel(
    kernel: str, cases: Sequence[tuple[dict[str, dict[str, int]], Mapping[str, Tally]]]
) -> dict[str, dict[str, int]]:
    mine = [(given[kernel], seen[kernel]) for given, seen in cases if kernel in seen]
    names = list(mine[0][0])
    matrix = np.array([[given[name] for name in names] for given, _ in mine], dtype=np.float64)
    scale = matrix.max(axis=0)
    if np.linalg.matrix_rank(matrix / scale) < len(names):
        raise LawError(f"{kernel}: {len(mine)} simulated cases do not tell its {len(names)} drivers apart; add one.")
    law: dict[str, dict[str, int]] = {}
    for opcode in dict.fromkeys(name for _, seen in mine for name in seen):
        seen = np.array([tally.get(opcode, 0) for _, tally in mine])
        solved = np.linalg.lstsq(matrix / scale, seen.astype(np.float64), rcond=None)[0] / scale
        whole = [round(value) for value in solved]
        law[opcode] = {name: value for name, value in zip(names, whole, strict=True) if value}
        for (given, _), number in zip(mine, seen, strict=True):
            told = sum(value * given[name] for name, value in law[opcode].items())
            if told != number:
                raise LawError(f"{kernel}, `{opcode}`: executed {number}, the law says {told} ({solved}).")
    return law


def predict(law: Law, given: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """What an input with these drivers executes."""
    return {
        kernel: {
            opcode: sum(value * numbers[name] for name, value in terms.items()) for opcode, terms in law[kernel].items()
        }
        for kernel, numbers in given.items()
    }
