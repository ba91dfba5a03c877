"""Levers of the first screen on small logs: what each is about, and the numbers that it is told with."""

import pytest

from eprof.profile import api
from eprof.profile.document import document
from eprof.show.report.levers import _levers, _sorted, what_to_try
from eprof.show.report.view import View


def view_of(path, text):
    path.write_text(text)
    return View(document(api.load(path, cache=False).energy()))


ROW = '"Tesla K40c (0)","{kernel}",1,"{name}","{name}",{value},{value},{value}\n'
HEAD = (
    "==1== NVPROF is profiling process 1, command: ./a.out\n==1== Profiling application: ./a.out\n"
    "==1== Profiling result:\n==1== Metric result:\n"
    '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
)


def moving(kernel, rate, level, flops):
    """Rows of a kernel that reads 2,097,152 sectors of DRAM at so many GB/s."""
    rows = [("dram_read_transactions", 2097152), ("dram_read_throughput", f"{rate}GB/s")]
    rows += [("dram_write_transactions", 0), ("dram_utilization", f'"{level}"'), ("flop_count_sp_add", flops)]
    return "".join(ROW.format(kernel=kernel, name=name, value=value) for name, value in rows)


def test_a_kernel_can_gain_what_another_reaches_for_the_same_bytes(tmp_path):
    """64 MiB at 40 and at 10 GiB/s: 1.5625 and 6.25 ms, so the slower one gains 4.6875 ms at most."""
    text = HEAD + moving("inorder", 40, "High (8)", 0)
    slow = moving("scattered", 10, "Low (3)", 0)
    view = view_of(tmp_path / "slow.csv", text + slow)
    change = _sorted(view)[0]
    assert "in scattered as inorder does (as many DRAM bytes in 4.00 times the time" in change.act
    (kernel,) = (kernel for kernel in view.kernels if kernel.name == "scattered")
    assert kernel.time_s == pytest.approx(6.25e-3, rel=1e-3)
    assert change.likely == pytest.approx(0.75 * view.timed(kernel), rel=1e-3)
    assert "scattered" in what_to_try(view).text
    for other in (
        moving("scattered", 10, "Low (3)", 2 * 2**26),  # which computes: two flops a byte
        moving("scattered", 10, "High (7)", 0),  # whose DRAM is busy
        slow.replace("2097152", "1048576"),  # which moves half of the bytes
    ):
        view = view_of(tmp_path / "other.csv", text + other)
        assert not any("as inorder does" in change.act for change in _levers(view))
