"""How much each kernel must do, from the plan alone. Every formula mirrors the kernel of its name in kernels.c."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from common.work import Work, attractions
from fmm.operators import FFT
from fmm.solver import BLOCK, PHASES, SLICES, Plan, frequencies, surface_points
from fmm.tree import Csr

INT = 4
Ints = NDArray[np.int64]


class Counter:
    """The counts of one plan in one precision. r: bytes of a real; s: points of a surface; f: frequencies."""

    def __init__(self, plan: Plan, precision: str) -> None:
        self.plan, self.tree, self.lists = plan, plan.tree, plan.lists
        self.r = 8 if precision == "double" else 4
        self.s, self.f = surface_points(plan.order), frequencies(plan.order)
        self.chunks = -(-self.s // BLOCK)
        self.points = plan.tree.end - plan.tree.begin

    def kernels(self) -> dict[str, Work]:
        """All kernels, in the order of the phases."""
        names = ("up_p2m", "up_m2m", "u_p2p", "v_fft", "v_multiply", "v_ifft", "w_m2p", "x_p2l", "down_l2l", "down_l2p")
        return {name: getattr(self, name)() for name in names}

    def rows(self, count: int) -> Work:
        """That many times `row` for all points of a surface."""
        return Work(fma=count * self.s**2, load=count * self.s**2 * self.r, local_load=count * self.s**2 * self.r)

    def up_p2m(self) -> Work:
        """Points to check surface, then two matrices."""
        leaves, r, s = self.plan.up_leaves, self.r, self.s
        count, points = len(leaves), int(self.points[leaves].sum())
        lanes, staged = count * self.chunks * BLOCK, self.chunks * points
        own = Work(
            launches=int(count > 0),
            add=3 * staged,
            mul=3 * lanes + count * (s + BLOCK),
            load=(4 * staged + 3 * lanes + 4 * BLOCK * count) * r,
            store=count * s * r,
            index_load=count * BLOCK * 3 * INT,
            local_store=4 * r * staged + 2 * count * s * r,
            unique=(4 * points + count * (s + 4) + 2 * s * s + 4 * s) * r + 3 * INT * count if count else 0,
        )
        return own + attractions(points * s, r) + self.rows(2 * count)

    def up_m2m(self) -> Work:
        """One matrix for each child."""
        parents = np.concatenate([np.empty(0, dtype=np.int64), *self.plan.up_parents])
        count, r, s = len(parents), self.r, self.s
        children = int((self.tree.children[parents] >= 0).sum())
        staged = self.chunks * children * s
        own = Work(
            launches=len(self.plan.up_parents),
            add=children * s,
            load=staged * r,
            store=count * s * r,
            index_load=count * BLOCK * (1 + 8 * self.chunks) * INT,
            local_store=staged * r,
            unique=((children + count) * s + 8 * s * s) * r + 9 * INT * count if count else 0,
        )
        return own + self.rows(children)

    def listed_points(self, tasks: Iterable[int], of: Csr) -> int:
        """The points in the list of each task's box, summed."""
        sums = np.r_[0, np.cumsum(self.points[of.items])]
        boxes = np.asarray(tasks)
        return int((sums[of.begin[boxes + 1]] - sums[of.begin[boxes]]).sum())

    def u_p2p(self) -> Work:
        """Every target with every point of its leaf's list."""
        r, tasks, u = self.r, self.plan.u_tasks[:, 0], self.lists.u
        staged, count = self.listed_points(tasks, u), int(self.points[self.tree.is_leaf].sum())
        own = Work(
            launches=1,
            load=(4 * staged + 3 * BLOCK * len(tasks)) * r,
            store=count * r,
            index_load=BLOCK * INT * (5 * len(tasks) + 3 * int(u.counts[tasks].sum())),
            local_store=4 * r * staged,
            unique=5 * r * count + INT * (len(u.items) + 3 * int(self.tree.is_leaf.sum()) + 2 * len(tasks)),
        )
        return own + attractions(int(self.points[u.owner] @ self.points[u.items]), r)

    def transforms(self, boxes: int) -> Work:
        """The lines that one transform of each box takes."""
        side, (first, second) = int(np.prod(FFT[self.plan.order])), FFT[self.plan.order]
        order, half = self.plan.order, side // 2 + 1
        lines = boxes * (order * order + order * half + side * half)
        butterflies = {1: Work(), 2: Work(add=4), 3: Work(add=10, mul=2, fma=2), 4: Work(add=16)}
        turns = (first - 1) * (second - 1)
        line = sum([butterflies[first]] * second + [butterflies[second]] * first, Work(mul=2 * turns, fma=2 * turns))
        return Work(add=lines * line.add, mul=lines * line.mul, fma=lines * line.fma)

    def v_fft(self) -> Work:
        """Surface to spectrum."""
        boxes, r, order = len(self.plan.v_sources), self.r, self.plan.order
        side = int(np.prod(FFT[order]))
        half = side // 2 + 1
        own = Work(
            launches=int(boxes > 0),
            load=boxes * self.s * r,
            store=boxes * self.f * 2 * r,
            index_load=boxes * (BLOCK + order**3) * INT,
            local_store=boxes * (order * order * half + order * half * side) * 2 * r,
            local_load=boxes * (order * half * order + side * half * order) * 2 * r,
            unique=boxes * (self.s + 2 * self.f) * r + order**3 * INT if boxes else 0,
        )
        return own + self.transforms(boxes)

    def v_multiply(self) -> Work:
        """One complex product and sum an item and frequency."""
        items, r = len(self.plan.v.items), self.r
        targets, sources = len(self.plan.v_targets), len(self.plan.v_sources)
        offsets = len(np.unique(self.plan.v.items[:, 1]))
        lanes = -(-self.f // (BLOCK * SLICES)) * BLOCK
        return Work(
            launches=int(targets > 0),
            interactions=items,
            fma=4 * items * self.f,
            load=4 * r * items * self.f,
            store=2 * r * targets * self.f,
            index_load=2 * INT * (items + targets) * lanes,
            unique=2 * r * self.f * (targets + sources + offsets) + INT * (2 * items + targets),
        )

    def v_ifft(self) -> Work:
        """Spectrum to surface."""
        boxes, r, order = len(self.plan.v_targets), self.r, self.plan.order
        side = int(np.prod(FFT[order]))
        half = side // 2 + 1
        own = Work(
            launches=int(boxes > 0),
            mul=boxes * self.s,
            load=boxes * (self.f * 2 + BLOCK) * r,
            store=boxes * self.s * r,
            index_load=boxes * (BLOCK + order**3) * INT,
            local_store=boxes * (side * half * order + order * half * order) * 2 * r,
            local_load=boxes * (order * half * side + order * order * half) * 2 * r,
            unique=boxes * (self.s + 2 * self.f) * r + order**3 * INT if boxes else 0,
        )
        return own + self.transforms(boxes)

    def w_m2p(self) -> Work:
        """Inner surfaces of smaller boxes to points."""
        tasks, r, s, w = self.plan.w_tasks[:, 0], self.r, self.s, self.lists.w
        items, leaves = int(w.counts[tasks].sum()), np.unique(tasks)
        points, sources = int(self.points[leaves].sum()), len(np.unique(w.items))
        own = Work(
            launches=int(items > 0),
            add=3 * BLOCK * items + points,
            mul=(3 * s + BLOCK) * items,
            load=((4 * s + 4 * BLOCK) * items + 3 * BLOCK * len(tasks) + points) * r,
            store=points * r,
            index_load=BLOCK * INT * (5 * len(tasks) + items),
            local_store=4 * r * s * items,
            unique=((6 * points + sources * (s + 4) + 4 * s) * r + INT * len(w.items)) if items else 0,
        )
        return own + attractions(int(self.points[w.owner].sum()) * s, r)

    def x_p2l(self) -> Work:
        """Points of larger leaves to inner check surfaces."""
        boxes, r, s, x = self.plan.x_boxes, self.r, self.s, self.lists.x
        count, points = len(boxes), int(self.points[x.items].sum())
        lanes, staged = count * self.chunks * BLOCK, points * self.chunks
        distinct = int(self.points[np.unique(x.items)].sum())
        own = Work(
            launches=int(count > 0),
            add=3 * staged + count * s,
            mul=4 * lanes,
            load=(4 * staged + 7 * lanes + count * s) * r,
            store=count * s * r,
            index_load=BLOCK * INT * self.chunks * (3 * count + 3 * len(x.items)),
            local_store=4 * r * staged,
            unique=(4 * distinct + count * (2 * s + 4) + 4 * s) * r + INT * (len(x.items) + count) if count else 0,
        )
        return own + attractions(points * s, r)

    def down_l2l(self) -> Work:
        """Two matrices for each box and one more for its parent's charges."""
        boxes = np.concatenate([np.empty(0, dtype=np.int64), *self.plan.down_boxes])
        count, r, s = len(boxes), self.r, self.s
        heirs = int((self.plan.parent_octant[boxes, 0] >= 0).sum())
        own = Work(
            launches=len(self.plan.down_boxes),
            add=heirs * s,
            mul=count * s,
            load=((count + heirs) * s + count * BLOCK) * r,
            store=count * s * r,
            index_load=count * BLOCK * 3 * INT,
            local_store=(2 * count + heirs) * s * r,
            unique=((2 * count) * s + 10 * s * s) * r + 3 * INT * count if count else 0,
        )
        return own + self.rows(2 * count + heirs)

    def down_l2p(self) -> Work:
        """Outer surfaces to points."""
        tasks, r, s = self.plan.down_tasks[:, 0], self.r, self.s
        leaves = np.unique(tasks)
        points = int(self.points[leaves].sum())
        own = Work(
            launches=int(len(tasks) > 0),
            add=3 * BLOCK * len(tasks) + points,
            mul=(3 * s + BLOCK) * len(tasks),
            load=((4 * s + 7 * BLOCK) * len(tasks) + points) * r,
            store=points * r,
            index_load=BLOCK * INT * 3 * len(tasks),
            local_store=4 * r * s * len(tasks),
            unique=(6 * points + len(leaves) * (s + 4) + 4 * s) * r + 2 * INT * len(tasks) if len(tasks) else 0,
        )
        return own + attractions(points * s, r)


def phases(kernels: dict[str, Work]) -> dict[str, Work]:
    """Kernels summed by the phase that their names begin with."""
    return {
        phase: sum((work for name, work in kernels.items() if name.startswith(phase.lower() + "_")), Work())
        for phase in PHASES
    }
