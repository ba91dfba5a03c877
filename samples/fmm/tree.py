"""The adaptive octree over the unit cube, and the lists that say who meets whom.

Boxes are numbered level by level, in Morton order within a level; boxes without points do not exist. The points are
sorted in Morton order too, so that a box of any level owns one range `begin:end` of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DEEPEST = 20  # 3 x 20 bits of key fit in 64; a half width of 2^-21 is still a few units in the last place of a float

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])  # octant -> x, y, z half
DIRECTIONS = np.array([[i // 9 - 1, i // 3 % 3 - 1, i % 3 - 1] for i in range(27)])  # the 27 boxes of a neighbourhood
OFFSETS = np.array([[i // 49 - 3, i // 7 % 7 - 3, i % 7 - 3] for i in range(343)])  # target minus source, in boxes


@dataclass(frozen=True, eq=False)
class Tree:
    """Boxes as columns; `sorted_from[i]` is where point i of the sorted order was in the input."""

    points: Floats
    sorted_from: Ints
    level: Ints
    cell: Ints
    octant: Ints
    parent: Ints
    begin: Ints
    end: Ints
    children: Ints

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether a box has no children."""
        return (self.children < 0).all(axis=1)

    @property
    def half_width(self) -> Floats:
        """Half the side of each box."""
        return np.ldexp(0.5, -self.level)

    @property
    def centre(self) -> Floats:
        """(boxes, 3), exact: the domain is the unit cube, so every coordinate is a short binary fraction."""
        return (self.cell + 0.5) * (2 * self.half_width)[:, None]

    def __len__(self) -> int:
        return len(self.level)


@dataclass(frozen=True, eq=False)
class Csr:
    """A list of boxes for every box: `items[begin[b]:begin[b + 1]]`."""

    begin: Ints
    items: Ints

    @property
    def counts(self) -> Ints:
        """How many items each box has."""
        return np.diff(self.begin)

    @property
    def owner(self) -> Ints:
        """The box that each item belongs to."""
        return np.repeat(np.arange(len(self.begin) - 1), self.counts)


@dataclass(frozen=True, eq=False)
class Lists:
    """[Ying, Biros, Zorin 2004], section 3. `v_offset` is the row of OFFSETS for each item of v."""

    u: Csr
    v: Csr
    v_offset: Ints
    w: Csr
    x: Csr


def spread(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Put two zero bits between any two bits (the usual five shifts and masks)."""
    steps = [(32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F), (4, 0x10C30C30C30C30C3)]
    for shift, mask in [*steps, (2, 0x1249249249249249)]:
        values = (values | values << np.uint64(shift)) & np.uint64(mask)
    return values


def morton(points: Floats) -> NDArray[np.uint64]:
    """Keys of DEEPEST levels, x in the highest bit of each triple. A coordinate of exactly 1 joins the last cell."""
    if len(points) and not (points.min() >= 0 and points.max() <= 1):
        raise ValueError("points must lie in the unit cube")
    cells = np.minimum((points * 2.0**DEEPEST).astype(np.uint64), np.uint64(2**DEEPEST - 1))
    x, y, z = (spread(cells[:, axis]) for axis in range(3))
    return x << np.uint64(2) | y << np.uint64(1) | z


def build(points: Floats, q: int) -> Tree:
    """Split every box of more than q points, down to DEEPEST, where coincident points must stay together."""
    keys = morton(points)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    root = {"level": [0], "octant": [0], "parent": [-1], "begin": [0], "end": [len(points)], "cell": [[0, 0, 0]]}
    boxes = {name: np.array(column, dtype=np.int64) for name, column in root.items()}
    levels, first = [boxes], 0
    for level in range(DEEPEST):
        boxes = split(boxes, level, first, keys, q)
        if not len(boxes["level"]):
            break
        first += len(levels[-1]["level"])
        levels.append(boxes)
    columns = {name: np.concatenate([boxes[name] for boxes in levels]) for name in levels[0]}
    children = np.full((len(columns["level"]), 8), -1, dtype=np.int64)
    children[columns["parent"][1:], columns["octant"][1:]] = np.arange(1, len(children))
    return Tree(points[order], order, children=children, **columns)


def split(boxes: dict[str, Ints], level: int, first: int, keys: NDArray[np.uint64], q: int) -> dict[str, Ints]:
    """The boxes of the next level. `first` is the number of this level's first box."""
    prefix = keys >> np.uint64(3 * (DEEPEST - level - 1))
    begin = np.flatnonzero(np.r_[True, prefix[1:] != prefix[:-1]])
    end = np.r_[begin[1:], len(keys)]
    owner = np.searchsorted(boxes["begin"], begin, side="right") - 1
    kept = (owner >= 0) & (begin < boxes["end"][owner]) & (boxes["end"] - boxes["begin"] > q)[owner]
    owner, begin, end = owner[kept], begin[kept], end[kept]
    octant = (prefix[begin] & np.uint64(7)).astype(np.int64)
    cell = 2 * boxes["cell"][owner] + BITS[octant]
    level_column = np.full(len(begin), level + 1)
    return {"level": level_column, "octant": octant, "parent": first + owner, "begin": begin, "end": end, "cell": cell}


def lists(tree: Tree) -> Lists:
    """The U, V, W and X lists of every box; U and W belong to leaves only, W of a and X of b hold each other."""
    near = colleagues(tree)
    v, v_offset = v_list(tree, near)
    leaves = np.flatnonzero(tree.is_leaf)
    fine, w = descend(tree, leaves, near[leaves])
    same = pairs(leaves, np.where(tree.is_leaf[near[leaves]], near[leaves], -1))
    u = np.concatenate([same, fine, fine[:, ::-1]])
    return Lists(csr(u, len(tree)), v, v_offset, csr(w, len(tree)), csr(w[:, ::-1], len(tree)))


def with_none(children: Ints) -> Ints:
    """The same table with one row more, so that row -1, nobody's, has no children."""
    return np.vstack([children, np.full((1, 8), -1)])


def colleagues(tree: Tree) -> Ints:
    """(boxes, 27): the neighbours of the same level in each of DIRECTIONS, or -1; the box itself is in the middle.

    A neighbour of a child is a child of a neighbour of its parent: no search is needed.
    """
    at = BITS[:, None, :] + DIRECTIONS[None, :, :]
    direction = (at // 2 + 1) @ (9, 3, 1)
    octant = (at % 2) @ (4, 2, 1)
    children = with_none(tree.children)
    near = np.full((len(tree) + 1, 27), -1, dtype=np.int64)
    near[0, 13] = 0
    for level in range(1, tree.level.max() + 1):
        boxes = np.flatnonzero(tree.level == level)
        own = tree.octant[boxes]
        of_parent = np.take_along_axis(near[tree.parent[boxes]], direction[own], axis=1)
        near[boxes] = children[of_parent, octant[own]]
    return near[:-1]


def v_list(tree: Tree, near: Ints) -> tuple[Csr, Ints]:
    """For each box the children of its parent's colleagues that do not touch it: at most 189, of its own level."""
    directions, octants, offsets = v_tables()
    children = with_none(tree.children)
    counts, items, kinds = [np.zeros(1, dtype=np.int64)], [], []
    for boxes in np.array_split(np.arange(1, len(tree)), len(tree) // 16384 + 1):
        own = tree.octant[boxes]
        around = np.take_along_axis(near[tree.parent[boxes]], directions[own], axis=1)
        found = children[around, octants[own]]
        counts.append((found >= 0).sum(axis=1))
        items.append(found[found >= 0])
        kinds.append(offsets[own][found >= 0])
    begin = np.r_[0, np.cumsum(np.concatenate(counts))]
    return Csr(begin, np.concatenate(items)), np.concatenate(kinds)


def v_tables() -> tuple[Ints, Ints, Ints]:
    """For each octant of the target (8, 189): direction of the parent's colleague, octant of its child, offset."""
    direction, octant = (axis.ravel() for axis in np.meshgrid(np.arange(27), np.arange(8), indexing="ij"))
    rows = []
    for own in range(8):
        offset = BITS[own] - (2 * DIRECTIONS[direction] + BITS[octant])
        far = np.abs(offset).max(axis=1) > 1
        rows.append((direction[far], octant[far], (offset[far] + 3) @ (49, 7, 1)))
    directions, octants, offsets = (np.array(column) for column in zip(*rows, strict=True))
    return directions, octants, offsets


def descend(tree: Tree, leaves: Ints, near: Ints) -> tuple[Ints, Ints]:
    """Go down from each leaf's colleagues: (leaf, smaller leaf that touches it) and (leaf, first box that does not)."""
    inner = ~tree.is_leaf
    frontier = pairs(leaves, np.where(inner[near], near, -1))
    fine, w = [np.empty((0, 2), dtype=np.int64)], [np.empty((0, 2), dtype=np.int64)]
    while len(frontier):
        found = pairs(frontier[:, 0], tree.children[frontier[:, 1]])
        touching = adjacent(tree, found[:, 0], found[:, 1])
        w.append(found[~touching])
        found = found[touching]
        fine.append(found[~inner[found[:, 1]]])
        frontier = found[inner[found[:, 1]]]
    return np.concatenate(fine), np.concatenate(w)


def pairs(owners: Ints, table: Ints) -> Ints:
    """(n, 2): each owner with every box of its row of the table; -1 is nobody."""
    there = table >= 0
    return np.column_stack([np.repeat(owners, there.sum(axis=1)), table[there]])


def adjacent(tree: Tree, a: Ints, b: Ints) -> NDArray[np.bool_]:
    """Whether two boxes of any level share at least a corner."""
    low_a, low_b = (tree.cell[i] << (DEEPEST - tree.level[i])[:, None] for i in (a, b))
    high_a, high_b = (low + (1 << DEEPEST - tree.level[i])[:, None] for low, i in ((low_a, a), (low_b, b)))
    return ((low_a <= high_b) & (low_b <= high_a)).all(axis=1)


def csr(pairs: Ints, boxes: int) -> Csr:
    """Group (owner, item) pairs by owner, items in rising order."""
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return Csr(np.r_[0, np.cumsum(np.bincount(pairs[:, 0], minlength=boxes))], pairs[:, 1])
