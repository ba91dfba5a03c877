"""The roofline's time: which work stands under it, and at which peaks."""

import numpy as np
import pytest

from eprof import costs
from eprof.base.arrays import Columns
from eprof.energy.modelled_time import UNDER_THE_ROOF, roofline_s, under_the_roof


def table_of(n, **counts):
    return Columns.of({**dict.fromkeys(UNDER_THE_ROOF, np.full(n, np.nan)), **counts}, n)


def test_the_least_time_is_that_of_the_cores_in_use():
    """One core of 52 takes a second for 40 GB, its path to DRAM, though the socket's 307 GB/s are all its own."""
    one_core = costs.load("sapphirerapids").in_sockets(1 / 52).at()
    table = table_of(1, dram_read=np.array([30e9]), dram_write=np.array([10e9]))
    assert roofline_s(table, one_core) == pytest.approx([1.0])


def test_a_total_in_flops_is_all_of_its_width_and_one_in_instructions_stands_beside_its_kinds():
    """Kinds are 3 + 2 x 4 flops; of a row without a total they are all, and an instruction is taken for 2 flops."""
    kinds = {"fp64_add": np.array([3.0, 3.0]), "fp64_fma": np.array([4.0, 4.0])}
    table = table_of(2, **kinds, fp64=np.array([20.0, np.nan]))
    assert under_the_roof(table, {"fp64"})["fp64"].tolist() == [20, 11]
    assert under_the_roof(table)["fp64"].tolist() == [51, 11]
