"""The octree and its lists (numpy only): each pair of points is met exactly once, and the counts follow the lists."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "samples"))

from fmm.count import Counter, phases
from fmm.points import DISTRIBUTIONS
from fmm.solver import BLOCK, frequencies, plan, surface_points
from fmm.tree import DEEPEST, OFFSETS, build, lists


def cloud(kind, count, seed=3):
    rng = np.random.default_rng(seed)
    if kind in DISTRIBUTIONS:
        return DISTRIBUTIONS[kind](count, rng)
    if kind == "faces":  # on corners, edges and faces of boxes of every level, the cube's own included
        return rng.integers(0, 9, (count, 3)) / 8
    if kind == "coincident":
        return np.full((count, 3), 0.3)
    if kind == "twins":
        return np.repeat(rng.random(((count + 2) // 3, 3)), 3, axis=0)[:count]
    raise ValueError(kind)


KINDS = (*DISTRIBUTIONS, "faces", "coincident", "twins")


def pairs_met(tree, of):
    met = np.zeros((len(tree.points), len(tree.points)), dtype=int)
    for name in "uvwx":
        one = getattr(of, name)
        for target, source in zip(one.owner, one.items, strict=True):
            met[tree.begin[target] : tree.end[target], tree.begin[source] : tree.end[source]] += 1
    return met


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "q"), [(1, 1), (2, 1), (60, 1), (400, 3), (900, 16), (900, 900)])
def test_each_pair_of_points_is_met_exactly_once(kind, count, q):
    tree = build(cloud(kind, count), q)
    assert (pairs_met(tree, lists(tree)) == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_tree_is_what_it_says(kind):
    points = cloud(kind, 700)
    tree = build(points, 10)
    sizes = tree.end - tree.begin
    assert np.array_equal(tree.points, points[tree.sorted_from])
    assert np.array_equal(np.sort(tree.sorted_from), np.arange(700))
    assert (sizes > 0).all()
    assert ((sizes <= 10) | (tree.level == DEEPEST))[tree.is_leaf].all()
    assert (sizes > 10)[~tree.is_leaf].all()
    assert sizes[tree.is_leaf].sum() == 700
    for box in range(len(tree)):
        inside = np.abs(tree.points[tree.begin[box] : tree.end[box]] - tree.centre[box]) <= tree.half_width[box]
        assert inside.all()
        children = tree.children[box][tree.children[box] >= 0]
        assert (tree.parent[children] == box).all()
        assert not len(children) or sizes[children].sum() == sizes[box]


def gap(tree, a, b):
    """Distance of two boxes in the largest norm."""
    return (np.abs(tree.centre[a] - tree.centre[b]) - (tree.half_width[a] + tree.half_width[b])[:, None]).max(axis=1)


@pytest.mark.parametrize("kind", ["uniform", "clustered", "faces"])
def test_lists_keep_their_distances(kind):
    tree = build(cloud(kind, 1500), 8)
    of = lists(tree)
    leaf = tree.is_leaf
    u, v, w, x = of.u, of.v, of.w, of.x
    assert leaf[u.owner].all()
    assert leaf[u.items].all()
    assert (gap(tree, u.owner, u.items) <= 0).all()
    assert (tree.level[v.owner] == tree.level[v.items]).all()
    width = 2 * tree.half_width
    assert (gap(tree, v.owner, v.items) >= width[v.owner]).all()
    assert (gap(tree, tree.parent[v.owner], tree.parent[v.items]) <= 0).all()
    offset = (tree.centre[v.owner] - tree.centre[v.items]) / width[v.owner, None]
    assert np.array_equal(offset, OFFSETS[of.v_offset])
    assert v.counts.max() <= 189
    assert leaf[w.owner].all()
    assert (tree.level[w.items] > tree.level[w.owner]).all()
    assert (gap(tree, w.owner, w.items) >= width[w.items]).all()
    assert (gap(tree, w.owner, tree.parent[w.items]) <= 0).all()
    mirrored = {(b, a) for a, b in zip(w.owner, w.items, strict=True)}
    assert mirrored == set(zip(x.owner, x.items, strict=True))
    assert len(w.items) if kind != "uniform" else True


def test_points_outside_the_cube_are_refused():
    with pytest.raises(ValueError, match="unit cube"):
        build(np.array([[0.5, 0.5, 1.1]]), 1)
    with pytest.raises(ValueError, match="unit cube"):
        build(np.array([[0.5, np.nan, 0.5]]), 1)


@pytest.mark.parametrize("kind", ["uniform", "clustered", "sphere"])
@pytest.mark.parametrize("order", [4, 6])
def test_counts_against_loops(kind, order):
    tree = build(cloud(kind, 800), 12)
    of = lists(tree)
    counts = Counter(plan(tree, of, order), "single").kernels()
    size, shell = tree.end - tree.begin, surface_points(order)
    leaf, far = tree.is_leaf, tree.level >= 2
    assert counts["u_p2p"].interactions == sum(
        int(size[a]) * int(size[b]) for a, b in zip(of.u.owner, of.u.items, strict=True)
    )
    assert counts["w_m2p"].interactions == sum(int(size[a]) * shell for a in of.w.owner)
    assert counts["x_p2l"].interactions == sum(int(size[b]) * shell for b in of.x.items)
    assert counts["v_multiply"].fma == 4 * len(of.v.items) * frequencies(order)
    assert counts["up_p2m"].interactions == size[leaf & far].sum() * shell
    assert counts["u_p2p"].local_store == 16 * sum(
        -(-int(size[a]) // BLOCK) * int(size[b]) for a, b in zip(of.u.owner, of.u.items, strict=True)
    )
    by_phase = phases(counts)
    assert sum(work.flops for work in by_phase.values()) == sum(work.flops for work in counts.values())


def test_work_is_linear_in_n():
    """Flops a point, at a Q that keeps the tree's shape: eight times the points are one level more."""
    flops = []
    for count in (4096, 8 * 4096):
        tree = build(cloud("uniform", count), 100)
        counts = Counter(plan(tree, lists(tree), 4), "single").kernels()
        flops.append(sum(work.flops for work in counts.values()) / count)
    assert flops[1] < 2.2 * flops[0]  # boxes at the cube's faces have shorter lists: the ratio falls towards 1


def test_q_moves_work_between_u_and_v():
    shares = []
    for q in (16, 256):
        tree = build(cloud("uniform", 4096), q)
        by_phase = phases(Counter(plan(tree, lists(tree), 4), "single").kernels())
        shares.append(by_phase["U"].flops / by_phase["V"].flops)
    assert shares[1] > 10 * shares[0]
