"""What the kernels need beside the tree, and the six phases as launches."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.launch import REALS, Device, source_text
from fmm.operators import FFT, INNER, OUTER, Operators, operators
from fmm.tree import Csr, Lists, Tree

BLOCK = 64
SLICES = 5  # frequencies a lane of v_multiply: at order 4 one group makes all 320 of a box
PHASES = ("UP", "U", "V", "W", "X", "DOWN")
SMALLEST_LEVEL = 2  # all boxes of levels 0 and 1 touch each other: nothing of theirs is far

Ints = NDArray[np.int64]


def surface_points(order: int) -> int:
    """Points on the surface of a cube of order^3 lattice points."""
    return order**3 - max(order - 2, 0) ** 3


def frequencies(order: int) -> int:
    """Complex numbers of a half spectrum."""
    side = int(np.prod(FFT[order]))
    return side * side * (side // 2 + 1)


@dataclass(frozen=True, eq=False)
class Plan:
    """Who works: index arrays made from the lists alone. A task is (leaf, first of up to BLOCK targets)."""

    tree: Tree
    lists: Lists
    order: int
    up_leaves: Ints
    up_parents: list[Ints]  # a level each, deepest first
    u_tasks: Ints
    v_sources: Ints
    v_targets: Ints
    v: Csr  # a row a target, items are (number of the source's spectrum, offset)
    w_tasks: Ints
    x_boxes: Ints
    down_boxes: list[Ints]  # a level each, from the top
    parent_octant: Ints
    down_tasks: Ints


def plan(tree: Tree, lists: Lists, order: int) -> Plan:
    """Everything that the launches and the counts need to know."""
    leaf, far = tree.is_leaf, tree.level >= SMALLEST_LEVEL
    active = (lists.v.counts > 0) | (lists.x.counts > 0)
    for boxes in by_level(tree, np.flatnonzero(far)):
        active[boxes] |= active[tree.parent[boxes]]
    v_targets = np.flatnonzero(lists.v.counts)
    v_sources, slot = np.unique(lists.v.items, return_inverse=True)
    return Plan(
        tree=tree,
        lists=lists,
        order=order,
        up_leaves=np.flatnonzero(leaf & far),
        up_parents=list(by_level(tree, np.flatnonzero(~leaf & far)))[::-1],
        u_tasks=tasks(tree, np.flatnonzero(leaf)),
        v_sources=v_sources,
        v_targets=v_targets,
        v=Csr(np.r_[0, np.cumsum(lists.v.counts[v_targets])], np.column_stack([slot, lists.v_offset])),
        w_tasks=tasks(tree, np.flatnonzero(lists.w.counts)),
        x_boxes=np.flatnonzero(lists.x.counts),
        down_boxes=list(by_level(tree, np.flatnonzero(active))),
        parent_octant=np.column_stack([np.where(active[tree.parent], tree.parent, -1), tree.octant]),
        down_tasks=tasks(tree, np.flatnonzero(leaf & active)),
    )


def by_level(tree: Tree, boxes: Ints) -> Iterator[Ints]:
    """The boxes of each level that has some; boxes are numbered by level."""
    if len(boxes):
        yield from np.split(boxes, np.flatnonzero(np.diff(tree.level[boxes])) + 1)


def tasks(tree: Tree, leaves: Ints) -> Ints:
    """(tasks, 2): each leaf as often as BLOCK targets at a time need."""
    times = -(-(tree.end - tree.begin)[leaves] // BLOCK)
    number = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return np.column_stack([np.repeat(leaves, times), np.repeat(tree.begin[leaves], times) + BLOCK * number])


def kernel_source(order: int, precision: str) -> str:
    """The source for one order and precision, in both languages."""
    first, second = FFT[order]
    roots = np.exp(-2j * np.pi * np.arange(first * second) / (first * second))
    defines = {
        "ORDER": order,
        "SURFACE": surface_points(order),
        "SIDE": first * second,
        "RADIX_A": first,
        "RADIX_B": second,
        "SLICES": SLICES,
        "INNER": f"((real){INNER})",
        "OUTER": f"((real){OUTER})",
        "ROOTS_RE": "{" + ", ".join(f"(real){value:.17g}" for value in roots.real) + "}",
        "ROOTS_IM": "{" + ", ".join(f"(real){value:.17g}" for value in roots.imag) + "}",
    }
    return source_text(Path(__file__).with_name("kernels.c"), precision, BLOCK, defines)


class Solver:
    """A plan on a device. `evaluate` may be called again and again."""

    def __init__(self, work: Plan, charges: NDArray[np.float64], precision: str, device: Device) -> None:
        self.plan, self.device, self.real = work, device, REALS[precision]
        self.arrays = self.upload(operators(work.order, precision), charges)

    def upload(self, maths: Operators, charges: NDArray[np.float64]) -> dict[str, Any]:
        """Everything on the device, by the names that the launches use."""
        tree, work = self.plan.tree, self.plan
        boxes, shell = len(tree), surface_points(work.order)
        weights = charges[tree.sorted_from] / (4 * np.pi)
        reals = {
            "points": np.column_stack([tree.points, weights]),
            "geometry": np.column_stack([tree.centre, tree.half_width]),
            "surface": np.column_stack([maths.surface, np.zeros(shell)]),
            "up_inverse": maths.up,
            "down_inverse": maths.down,
            "m2m": maths.m2m,
            "l2l": maths.l2l,
            "m2l": maths.m2l.view(np.float64),
        }
        ints = {
            "range": np.column_stack([tree.begin, tree.end]),
            "children": tree.children,
            "surface_index": maths.surface_index,
            "parent_octant": work.parent_octant,
            "v_begin": work.v.begin,
            "v_items": work.v.items,
        }
        for name in ("up_leaves", "u_tasks", "v_sources", "v_targets", "w_tasks", "x_boxes", "down_tasks"):
            ints[name] = getattr(work, name)
        for name in "uwx":
            of = getattr(work.lists, name)
            ints |= {f"{name}_begin": of.begin, f"{name}_items": of.items}
        lengths = {"potential": len(tree.points), "up": boxes * shell, "check": boxes * shell, "down": boxes * shell}
        lengths["spectra"] = 2 * len(work.v_sources) * frequencies(work.order)
        lengths["products"] = 2 * len(work.v_targets) * frequencies(work.order)
        return {
            **{name: self.device.array(values.astype(self.real)) for name, values in reals.items()},
            **{name: self.device.array(values.astype(np.int32)) for name, values in ints.items()},
            **{name: self.device.zeros(length, self.real) for name, length in lengths.items()},
            "up_parents": [self.device.array(level.astype(np.int32)) for level in work.up_parents],
            "down_boxes": [self.device.array(level.astype(np.int32)) for level in work.down_boxes],
        }

    def evaluate(self) -> NDArray[np.float64]:
        """The potential at every point, in the order of the input."""
        self.device.clear(self.arrays["check"])
        for phase in (self.phase_up, self.phase_u, self.phase_v, self.phase_w, self.phase_x, self.phase_down):
            phase()
        self.device.finish()
        tree = self.plan.tree
        result = np.empty(len(tree.points))
        result[tree.sorted_from] = self.device.fetch(self.arrays["potential"], len(result), self.real)
        return result

    def launch(self, kernel: str, groups: int, *arguments: str | int) -> None:
        """Launch with arrays by name."""
        passed = [self.arrays[a] if isinstance(a, str) else a for a in arguments]
        self.device.launch(kernel, groups, *passed)

    def phase_up(self) -> None:
        """Leaves, then parents from the deepest level up."""
        names = ("up_leaves", "range", "geometry", "points", "surface", "up_inverse", "up")
        self.launch("up_p2m", len(self.plan.up_leaves), *names)
        arrays = self.arrays
        for parents, level in zip(arrays["up_parents"], self.plan.up_parents, strict=True):
            self.device.launch("up_m2m", len(level), parents, arrays["children"], arrays["m2m"], arrays["up"])

    def phase_u(self) -> None:
        """Near field."""
        self.launch("u_p2p", len(self.plan.u_tasks), "u_tasks", "range", "u_begin", "u_items", "points", "potential")

    def phase_v(self) -> None:
        """Forward transforms, products, transforms back."""
        targets = len(self.plan.v_targets)
        chunks = -(-frequencies(self.plan.order) // (BLOCK * SLICES))
        self.launch("v_fft", len(self.plan.v_sources), "v_sources", "surface_index", "up", "spectra")
        self.launch("v_multiply", targets * chunks, targets, "v_begin", "v_items", "m2l", "spectra", "products")
        self.launch("v_ifft", targets, "v_targets", "surface_index", "geometry", "products", "check")

    def phase_w(self) -> None:
        """Smaller boxes' charges to points."""
        names = ("w_tasks", "range", "w_begin", "w_items", "geometry", "surface", "up", "points", "potential")
        self.launch("w_m2p", len(self.plan.w_tasks), *names)

    def phase_x(self) -> None:
        """Larger leaves' points to check surfaces."""
        boxes = len(self.plan.x_boxes)
        chunks = -(-surface_points(self.plan.order) // BLOCK)
        names = ("x_boxes", "range", "x_begin", "x_items", "geometry", "surface", "points", "check")
        self.launch("x_p2l", boxes * chunks, boxes, *names)

    def phase_down(self) -> None:
        """Levels from the top, then points."""
        names = ("parent_octant", "geometry", "check", "down_inverse", "l2l", "down")
        shared = [self.arrays[name] for name in names]
        for boxes, level in zip(self.arrays["down_boxes"], self.plan.down_boxes, strict=True):
            self.device.launch("down_l2l", len(level), boxes, *shared)
        names = ("down_tasks", "range", "geometry", "surface", "down", "points", "potential")
        self.launch("down_l2p", len(self.plan.down_tasks), *names)


def direct(points: NDArray[np.float64], charges: NDArray[np.float64], targets: Ints) -> NDArray[np.float64]:
    """The sum itself at some of the points, in double precision."""
    result = np.empty(len(targets))
    for row, target in enumerate(targets):
        squared = ((points - points[target]) ** 2).sum(axis=1)
        result[row] = charges[squared > 0] @ (1 / np.sqrt(squared[squared > 0]))
    return result / (4 * np.pi)
