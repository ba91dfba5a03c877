"""The model of caches of the simulated device: closed forms of plain kernels, and a slow second implementation."""

import random

import pytest

from tests.oracle import caches as oracle
from tests.support.caches import simulate

BASE = 1 << 20
# Small caches, so that small problems show what large ones do.
TINY = {
    "sms": 1, "groups": 16, "warps": 64, "local": 49152, "l1_bytes": 0, "l1_ways": 0,
    "l2_bytes": 8192, "l2_ways": 16, "l2_line": 32,
}  # fmt: skip
LARGE = TINY | {"sms": 4, "l1_bytes": 16384, "l1_ways": 4, "l2_bytes": 1 << 20, "l2_line": 128}


def _kernel(items, *accesses):
    """One group of one phase: of each item the accesses that the functions give, keyed by their place."""
    return [[[(site, *access(item)) for site, access in enumerate(accesses)] for item in range(items)]]


def _floats(groups, items, *sites):
    """A launch whose items load or store the elements (array, index, kind) of each site, arrays 16 MB apart."""
    launch = []
    for group in range(groups):
        phase = []
        for item in range(items):
            where = [site(group * items + item) for site in sites]
            phase.append([(key, BASE + (a << 24) + 4 * at, 4, kind) for key, (a, at, kind) in enumerate(where)])
        launch.append([phase])
    return launch


def test_a_copy_moves_each_sector_once():
    copy = _floats(8, 64, lambda i: (0, i, "load"), lambda i: (1, i, "store"))
    counts = simulate(TINY, copy, 64)
    assert (counts["load requests"], counts["load sectors"]) == (16, 64)
    assert (counts["dram reads"], counts["dram writes"] + counts["dram left dirty"]) == (64, 64)


def test_an_offset_costs_each_warp_a_sector_and_dram_one_in_all():
    offset = _floats(8, 64, lambda i: (0, i + 1, "load"), lambda i: (1, i, "store"))
    counts = simulate(LARGE, offset, 64)
    assert (counts["load sectors"], counts["dram reads"]) == (16 * 5, 65)


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_strides(stride, sectors):
    counts = simulate(LARGE, _floats(2, 32, lambda i: (0, stride * i, "load")), 32)
    assert counts["load sectors"] == 2 * sectors
    assert counts["dram reads"] == 2 * sectors


def test_a_transposition_stores_a_sector_an_item_and_l2_joins_them():
    n = 64
    transpose = _floats(n, n, lambda i: (0, i, "load"), lambda i: (1, i % n * n + i // n, "store"))
    large = simulate(LARGE, transpose, n)
    assert large["store sectors"] == n * n
    assert large["dram writes"] + large["dram left dirty"] == n * n // 8
    tiny = simulate(TINY | {"groups": 1, "l2_bytes": 1024}, transpose, n)
    assert tiny["dram writes"] + tiny["dram left dirty"] == n * n  # none is joined: each leaves with one element


def test_a_stencil_reads_each_element_once_and_its_neighbours_from_l1():
    stencil = _floats(8, 64, *(lambda i, d=d: (0, i + d, "load") for d in (0, 1, 2)), lambda i: (1, i, "store"))
    counts = simulate(LARGE | {"sms": 1}, stencil, 64)
    assert counts["dram reads"] == 65
    assert counts["l1 load hits"] == counts["load sectors"] - 65


def test_a_triad():
    triad = _floats(4, 128, lambda i: (0, i, "load"), lambda i: (1, i, "load"), lambda i: (2, i, "store"))
    counts = simulate(TINY, triad, 128)
    assert (counts["dram reads"], counts["dram writes"] + counts["dram left dirty"]) == (128, 64)


def test_stores_of_part_of_a_sector_write_it_whole():
    counts = simulate(TINY, _floats(1, 32, lambda i: (0, 8 * i, "store")), 32)
    assert (counts["store sectors"], counts["dram left dirty"], counts["dram reads"]) == (32, 32, 0)


def test_a_reduction_by_halves():
    group = [[[(0, BASE + 4 * (64 * g + i), 4, "load")] for i in range(64)] for g in range(4)]
    counts = simulate(
        TINY, [[phase, [[(1, BASE + (1 << 24) + 4 * g, 4, "store")]]] for g, phase in enumerate(group)], 64
    )
    assert (counts["load requests"], counts["store requests"]) == (8, 4)
    assert (counts["dram reads"], counts["dram left dirty"]) == (32, 1)


def test_random_atomics_touch_the_sectors_that_chance_gives():
    pick = random.Random(5)
    sectors = 32
    launch = _floats(200, 32, lambda i: (0, 8 * pick.randrange(sectors), "atomic"))
    counts = simulate(TINY, launch, 32)
    assert counts["atomic sectors"] / counts["atomic requests"] == pytest.approx(32 * (1 - (31 / 32) ** 32), rel=0.02)
    assert counts["l2 reads"] == counts["l2 writes"] == counts["atomic sectors"]


def _tiled(n, tile):
    """A product of matrices by tiles in shared memory; a group a tile of the result, rows of tiles first."""
    launch = []
    for group in range((n // tile) ** 2):
        row, column = group // (n // tile) * tile, group % (n // tile) * tile
        phases = []
        for k in range(0, n, tile):
            items = [(i % tile, i // tile) for i in range(tile * tile)]
            loads = [((row + y) * n + k + x, (k + y) * n + column + x) for x, y in items]
            phases.append(
                [[(2 * k, BASE + 4 * a, 4, "load"), (2 * k + 1, BASE + (1 << 24) + 4 * b, 4, "load")] for a, b in loads]
            )
        phases.append([[(2 * n, BASE + (2 << 24) + 4 * ((row + y) * n + column + x), 4, "store")] for x, y in items])
        launch.append(phases)
    return launch


def test_a_tiled_product_reads_one_matrix_once_and_the_other_for_each_row_of_tiles():
    n = 64
    small = simulate(TINY | {"groups": 1, "l2_bytes": 16384, "l2_ways": 512}, _tiled(n, 16), 256)
    large = simulate(LARGE, _tiled(n, 16), 256)
    assert 32 * small["dram reads"] == 4 * n * n * (n / 16 + 1)
    assert 32 * large["dram reads"] == 8 * n * n
    assert small["load sectors"] == large["load sectors"] == 8 * n**3 // 16 // 32


def test_a_plain_product_reads_rows_by_one_sector_and_columns_by_four():
    n = 32
    launch = [
        [[[(k * 2 + s, BASE + (s << 24) + 4 * ((g * n + k) if s == 0 else k * n + i), 4, "load") for k in range(n) for s in (0, 1)] for i in range(n)]]
        for g in range(n)
    ]  # fmt: skip
    counts = simulate(LARGE, launch, n)
    assert counts["load sectors"] == n * n * (1 + 4)
    assert counts["dram reads"] == 2 * 4 * n * n // 32


def test_divergent_loops_are_matched_by_iteration_and_not_by_occurrence():
    lengths = [1 + item % 4 for item in range(32)]
    loop = [[(100 + k, BASE + 4096 * k + 4 * item, 4, "load") for k in range(lengths[item])] for item in range(32)]
    after = [(7, BASE + (1 << 24), 4, "load")]
    counts = simulate(TINY, [[[one + after for one in loop]]], 32)
    assert counts["load requests"] == 4 + 1
    by_occurrence = [[(100 + k, *rest) for k, (_, *rest) in enumerate(one + after)] for one in loop]
    assert simulate(TINY, [[by_occurrence]], 32)["load requests"] == 5  # the same number, other sectors:
    assert counts["load sectors"] < simulate(TINY, [[by_occurrence]], 32)["load sectors"]


def test_warm_l2_keeps_what_the_launch_before_left():
    copy = _floats(1, 32, lambda i: (9, i, "load"))
    simulate(LARGE | {"l2_ways": 8}, copy, 32)
    first = simulate(LARGE, copy, 32)
    assert first["dram reads"] == 4
    assert simulate(LARGE, copy, 32, warm=True)["dram reads"] == 0


def _random_launch(seed):
    pick = random.Random(seed)
    one_of = pick.choice
    gpu = {
        "sms": one_of([1, 2, 5]), "groups": one_of([2, 4]), "warps": one_of([4, 8]), "local": 4096,
        "l1_bytes": one_of([0, 1024, 2048]), "l1_ways": one_of([1, 4]), "l1_shares": one_of([0, 1]), "l1_least": one_of([0, 512]),
        "l1_keeps_stores": one_of([0, 1]), "l2_bytes": one_of([2048, 8192]), "l2_ways": one_of([2, 16]),
        "l2_line": one_of([32, 64, 128]),
    }  # fmt: skip
    items, reach = one_of([1, 20, 32, 50, 96]), one_of([256, 20000])

    def accesses():
        for site in range(pick.randint(0, 5)):
            kind = ["load", "load", "store", "atomic"][site % 4]
            for turn in range(pick.randint(0, 3)):
                key = site * 1000 + turn * one_of([1, 1, 1, 0])
                yield key, BASE + pick.randrange(reach), one_of([1, 4, 8, 16]), kind

    groups = [
        [[list(accesses()) for _ in range(items)] for _ in range(pick.randint(1, 2))]
        for _ in range(pick.randint(1, 10))
    ]
    return gpu, groups, items, one_of([0, 700, 1500])


@pytest.mark.parametrize("seed", range(25))
def test_random_launches_as_the_slow_second_implementation_has_them(seed):
    gpu, groups, items, local_bytes = _random_launch(seed)
    expected = oracle.launch(gpu, groups, items, local_bytes)
    assert simulate(gpu, groups, items, local_bytes) == expected
    assert simulate(gpu, groups, items, local_bytes, threads=2) == expected
