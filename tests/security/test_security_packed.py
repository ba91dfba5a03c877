"""What is packed hundreds of times, or has a field of megabytes: refused in a sentence wherever eprof reads it."""

import bz2
import csv
import gzip
import sys

import pyarrow as pa
import pytest

from eprof.base.errors import EprofError, LogError
from eprof.lab.measurements import reading
from eprof.lab.power import marks
from eprof.logs import stream
from eprof.profile import api

_ROW = b"0,1,a\n"
PACKED = {"gzip": gzip.compress, "zstd": lambda data: pa.compress(data, "zstd", asbytes=True)}


@pytest.fixture
def rows(monkeypatch):
    """2.4 MB, where 1 MB is unpacked without a question."""
    monkeypatch.setattr(stream, "_FREE_BYTES", 1 << 20)
    return b"begin_s,end_s,name\n" + _ROW * 400_000


@pytest.mark.parametrize("how", PACKED)
def test_marks_that_are_packed_hundreds_of_times_are_refused(tmp_path, rows, how):
    (tmp_path / "marks.csv").write_bytes(PACKED[how](rows))
    with pytest.raises(LogError, match=rf"marks\.csv: the {how} data unpack to more than 300 times their size"):
        marks.read(str(tmp_path / "marks.csv"))


def test_a_bomb_in_a_strangers_run_directory_is_refused(tmp_path, rows):
    home = tmp_path / "theirs.eprof"
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "counters-1-1.csv").write_bytes(gzip.compress(rows))
    (home / "marks.csv").write_bytes(gzip.compress(rows))
    with pytest.raises(LogError, match="300 times their size"):
        api.load(home, cache=False)
    with pytest.raises(LogError, match="300 times their size"):
        marks.read(str(home / "marks.csv"))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_measurements_that_are_packed_hundreds_of_times_are_refused(tmp_path, rows, suffix):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": PACKED["zstd"]}[suffix]
    (tmp_path / f"a.csv{suffix}").write_bytes(pack(rows))
    with pytest.raises(EprofError, match="unpacks to hundreds of times its size"):
        reading.table(tmp_path / f"a.csv{suffix}")


@pytest.mark.parametrize("how", PACKED)
def test_packed_marks_are_read(tmp_path, how):
    text = b"begin_s,end_s,name\n" + b"".join(b"%d,%d.5,f%d\n" % (n, n, n * 7919 % 1000) for n in range(20_000))
    path = tmp_path / "marks.csv"
    path.write_bytes(PACKED[how](text))
    whole = marks.read(str(path))
    assert len(whole.marks) == 20_000 and not whole.notes
    trace = b'[{"event.begin#function": "f", "time.offset.ns": 0}, {"event.end#function": "f", "time.offset.ns": 9}]'
    path.write_bytes(PACKED[how](trace))
    assert [mark.end_s for mark in marks.read(str(path)).marks] == [pytest.approx(9e-9)]


def test_a_cut_of_packed_marks_is_said(tmp_path):
    packed = gzip.compress(b"begin_s,end_s,name\n" + _ROW * 1000)
    (tmp_path / "marks.csv").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(LogError, match=r"marks\.csv: the gzip file is cut off; copy the file again"):
        marks.read(str(tmp_path / "marks.csv"))


def test_marks_have_a_largest_size(tmp_path, monkeypatch):
    content = marks.stream.unpacked_content
    monkeypatch.setattr(marks.stream, "unpacked_content", lambda path, most: content(path, 1 << 20))
    (tmp_path / "marks.csv").write_bytes(gzip.compress(b"begin_s,end_s,name\n" + _ROW * 200_000))
    with pytest.raises(LogError, match="holds more than 1 MB of text"):
        marks.read(str(tmp_path / "marks.csv"))


def test_a_field_of_more_than_128_kb_is_a_sentence(tmp_path):
    field = "x" * (csv.field_size_limit() + 1)
    (tmp_path / "marks.csv").write_text(f"begin_s,end_s,name\n0,1,{field}\n")
    with pytest.raises(LogError, match=r"marks\.csv: a line is no row of a table \(field larger"):
        marks.read(str(tmp_path / "marks.csv"))
    (tmp_path / "nsight.csv").write_text(f"Annotation,Value,Metric,Kernel,Unit,GPU\n{field},1,m,k,inst,g\n")
    with pytest.raises(LogError, match=r"nsight\.csv: ") as said:
        api.load(tmp_path / "nsight.csv", cache=False)
    assert "field larger" in str(said.value), sys.version


def test_the_bound_is_of_what_was_taken_so_far():
    """A small file does no harm; a large one that is packed well is read."""
    assert not stream.is_bomb(1 << 25, 1)
    assert stream.is_bomb((1 << 25) + 1, 1)
    assert not stream.is_bomb(300 << 20, 1 << 20)
    assert stream.is_bomb((300 << 20) + 1, 1 << 20)
