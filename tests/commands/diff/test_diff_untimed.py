"""A difference whose one side has no time: real folders of Omniperf."""

import pytest
from conftest import SHARED

import eprof
from eprof.commands.diff.answer import headline

ROCPROF = SHARED / "rocprof"


@pytest.mark.skipif(not ROCPROF.is_dir(), reason="needs the real logs of rocprof")
def test_constant_power_is_not_compared_where_one_side_has_no_time():
    folders = ROCPROF / "omniperf2-mi200-vcopy", ROCPROF / "omniperf2-mi300x-vcopy"
    difference = eprof.diff(*folders)
    (kernel,) = difference.typed.kernels
    assert kernel.status == "matched"
    said = headline(difference.typed).text
    assert "NEW has no time, so constant power is not compared" in said
    assert "nothing but time" not in headline(eprof.diff(*folders, match=["vecCopy="]).typed).text
