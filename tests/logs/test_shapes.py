"""Launch shapes: of nvprof's traces, of ncu's long logs; and that they do not change which logs are passes."""

import numpy as np
import pytest
from logs_support import TRACE, TRACE_UNITS, profiled, write

import eprof

GPU = "Tesla K20c (0)"
NCU = '"ID","Process ID","Kernel Name","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'


def launch(grid, block, registers="21", static="0.5", dynamic="1024", kernel="axpy(int)"):
    return f'0.5,0.1,{grid},{block},{registers},{static},{dynamic},,,"{GPU}","1","7","{kernel} [1]"'


def shape_of(*paths):
    """Each number of each kernel, for one launch."""
    counts = eprof.load(*map(str, paths)).counts()
    return {name: (counts.shape[name] / counts.rows.launches).tolist() for name in counts.shape.names}


def test_a_trace_has_the_mean_of_its_launches(tmp_path):
    rows = [launch("64,2,1", "32,1,1"), launch("128,1,1", "64,2,1"), launch("1,1,1", "8,8,1", kernel="b(int)")]
    shape = shape_of(write(tmp_path, profiled(1, TRACE, TRACE_UNITS, *rows)))
    assert (shape["blocks"], shape["threads"], shape["registers"]) == ([128, 1], [80, 64], [21, 21])
    # 0.5 KB, in the units of nvprof since CUDA 8, and 1024 B.
    assert shape["shared_byte"] == [1536, 1536]


@pytest.mark.parametrize("cell", ["", "many", "<OVERFLOW>"])
def test_a_cell_that_is_no_number_makes_the_shape_unknown(tmp_path, cell):
    shape = shape_of(write(tmp_path, profiled(1, TRACE, TRACE_UNITS, launch("64,1,1", "32,1,1", registers=cell))))
    assert np.isnan(shape["registers"]).all() and shape["blocks"] == [64]


def row(number, metric, value, grid="(64, 2, 1)", block="(128, 1, 1)"):
    return f'"{number}","7","axpy(int)","{block}","{grid}","0","8.6","Command line","{metric}","inst","{value}"'


def test_a_long_log_of_ncu_has_it_in_its_columns(tmp_path):
    metric = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    shape = shape_of(write(tmp_path, "\n".join([NCU, row(0, metric, 5), row(1, metric, 5, "(32, 1, 1)"), ""])))
    assert (shape["blocks"], shape["threads"]) == ([80], [128])
    broken = shape_of(write(tmp_path, "\n".join([NCU, row(0, metric, 5, "(64, 2)"), ""])))
    assert np.isnan(broken["blocks"]).all()


def test_passes_stay_passes(tmp_path):
    """Two logs of one metric each count the same launches, though both tell how these were shaped."""
    ops = [f"smsp__sass_thread_inst_executed_op_f{op}_pred_on.sum" for op in ("fma", "add")]
    paths = [
        write(tmp_path, "\n".join([NCU, row(0, op, number), ""]), f"{number}.csv")
        for number, op in enumerate(ops, start=5)
    ]
    counts = eprof.load(*map(str, paths)).counts()
    assert counts.rows.launches.tolist() == [1]
    assert (counts.amounts["fp32_fma"][0], counts.amounts["fp32_add"][0]) == (5, 6)
