"""Files as lines of text."""

import pytest

from eprof.base.errors import EprofError
from eprof.base.resources import lines
from eprof.commands.scale.measured_runs import read


def test_digits_beside_a_nul_byte_are_no_other_number(tmp_path):
    assert lines(b"1\x002,3\n4\n\0\0") == ["1\ufffd2,3", "4"], "NUL bytes at the end, as disks leave them, are nothing"
    table = tmp_path / "runs.csv"
    text = b"program,size,processes,time_s,energy_j\na,1,1,25,100\n"
    table.write_bytes(text + b"\0\0")
    assert [run.time_s for run in read([str(table)])[0]] == [25]
    table.write_bytes(text.replace(b"25", b"2\x005"))
    with pytest.raises(EprofError, match="which is no number"):
        read([str(table)])
