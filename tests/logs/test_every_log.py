"""Every real log, and every way to spoil one: a report or one clear sentence, never a traceback, never a silent zero."""

import gzip
import json
import shutil

import pytest
from conftest import SHARED

from eprof import cli
from eprof.base.resources import folder

LOGS = sorted(path for path in (SHARED / "nvprof").glob("*") if path.suffix != ".tsv") if SHARED.is_dir() else []
EXTRA = {
    "gt630-dev1-events-rows-headerless.csv": [
        "--columns",
        str(SHARED / "nvprof/columns-for-headerless-rows-events-2x.csv"),
    ],
    "titanblack-dev2-overflow-and-invalid-rows.csv": [
        "--columns",
        str(SHARED / "nvprof/columns-for-headerless-rows-metrics-3x.csv"),
    ],
}


def run(capsysbinary, *arguments):
    """(exit code, document or None, standard error) of `eprof report ... --format json`, in this process."""
    with pytest.raises(SystemExit) as done:
        cli.main(["report", *map(str, arguments), "--costs", "jetson-tk1", "--format", "json"])
    out, err = capsysbinary.readouterr()
    return done.value.code, json.loads(out) if out else None, err.decode()


def answer(capsysbinary, *arguments):
    """A document that says something, or one sentence; returns the document if there is one."""
    code, document, err = run(capsysbinary, *arguments)
    if code == 0:
        assert document["kernels"]
        assert document["counts"] or document["time_s"] is not None, "a report about nothing"
        return document
    assert code == 1
    assert document is None
    assert len(err.strip().splitlines()) == 1 and err.startswith("eprof: "), err
    assert len(err) > 40
    return None


@pytest.mark.skipif(not LOGS, reason="the real logs are not part of this project")
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_real_log_gives_a_report_or_one_sentence(capsysbinary, path):
    document = answer(capsysbinary, path, "--capability", "3.5", *EXTRA.get(path.name, []))
    if "error-" in path.name or path.name.startswith("columns-"):
        assert document is None
    if path.name in EXTRA:
        assert document["counts"]


@pytest.mark.parametrize("name", sorted(EXTRA))
def test_headerless_rows_without_a_column_list_are_refused(capsysbinary, real_log, name):
    code, _, err = run(capsysbinary, real_log(name))
    assert code == 1 and "--columns" in err


def test_two_gpus_are_reported_apart(capsysbinary, tmp_path):
    """Synthetic: no real log holds two GPUs."""
    log = tmp_path / "two.csv"
    log.write_text(
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
        '"Tesla K20c (0)","a(int)",1,"inst_integer","Integer Instructions",10,10,10\n'
        '"GeForce GTX 1080 (1)","a(int)",1,"inst_integer","Integer Instructions",30,30,30\n'
    )
    code, document, _ = run(capsysbinary, log)
    assert code == 0
    assert [device["capability"] for device in document["devices"]] == ["3.5", "6.1"]
    assert {kernel["device"]: kernel["counts"]["integer"]["value"] for kernel in document["kernels"]} == {
        "Tesla K20c (0)": 10,
        "GeForce GTX 1080 (1)": 30,
    }


SPOILT = {
    "empty": b"",
    "blank": b"\n\n  \n",
    "nul bytes": b"\0" * 5000,
    "an ELF program": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8,
    "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "prose": b"Dear colleague,\nhere is the log that you asked for.\n",
    "a truncated gzip": gzip.compress(b"==1== NVPROF is profiling process 1, command: ./x\n" * 100, mtime=0)[:60],
    "a header and nothing else": b'"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n',
    "a damaged SQLite file": b"SQLite format 3\0" + b"\x10\x00garbage" * 200,
    "HTML": b"<!doctype html><title>404 Not Found</title>",
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_no_log_is_told_in_one_sentence(capsysbinary, tmp_path, name):
    path = tmp_path / "spoilt.csv"
    path.write_bytes(SPOILT[name])
    assert answer(capsysbinary, path) is None


def test_a_directory_and_a_file_without_permission(capsysbinary, tmp_path):
    assert answer(capsysbinary, tmp_path) is None
    assert answer(capsysbinary, tmp_path / "not-there.csv") is None


WHOLE = {}  # log -> J, of a log that is not cut


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.85, 0.999])
@pytest.mark.parametrize(
    "name", ["k20c-metrics-summary.csv", "k20c-gpu-trace.csv", "titan-wide-trace-events-and-metrics.csv"]
)
def test_a_log_that_is_cut_off_says_so_or_is_refused(capsysbinary, real_log, tmp_path, name, share):
    whole = real_log(name).read_bytes()
    path = tmp_path / "cut.csv"
    path.write_bytes(whole[: int(len(whole) * share)])
    document = answer(capsysbinary, path)
    if name not in WHOLE:
        WHOLE[name] = answer(capsysbinary, real_log(name))["energy_j"]["total"] or 0
    if document is not None:
        assert (document["energy_j"]["total"] or 0) <= WHOLE[name] * (1 + 1e-9)


def test_latin_1_and_gzip_and_line_ends(capsysbinary, real_log, tmp_path):
    plain = real_log("k20c-metrics-summary.csv")
    wanted = answer(capsysbinary, plain)["counts"]
    zipped = tmp_path / "log.csv.gz"
    with plain.open("rb") as source, gzip.open(zipped, "wb") as out:
        shutil.copyfileobj(source, out)
    dos = tmp_path / "dos.csv"
    dos.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n"))
    latin = tmp_path / "latin.csv"
    latin.write_bytes("caf\xe9 au lait\n".encode("latin-1") + plain.read_bytes())
    wide = tmp_path / "utf16.csv"
    wide.write_bytes(plain.read_text().encode("utf-16"))
    for path in (zipped, dos, latin, wide):
        assert answer(capsysbinary, path)["counts"] == wanted, path.name


def test_a_kernel_name_of_ten_thousand_characters(capsysbinary, tmp_path):
    name = "f<" + "x, " * 3333 + "y>(int)"
    log = tmp_path / "long.csv"
    log.write_text(
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
        f'"Tesla K20c (0)","{name}",1,"inst_integer","Integer Instructions",10,10,10\n'
    )
    assert answer(capsysbinary, log)["kernels"][0]["name"] == name


def test_a_cost_table_with_an_unknown_unit_is_told_with_its_line(capsysbinary, real_log, tmp_path):
    table = tmp_path / "mine.toml"
    text = (folder("costs") / "gtx680.toml").read_text()
    table.write_text(text.replace("dram_byte", "dram_furlong"))
    with pytest.raises(SystemExit) as done:
        cli.main(["report", str(real_log("k20c-metrics-summary.csv")), "--costs", str(table)])
    err = capsysbinary.readouterr().err.decode()
    assert done.value.code == 1
    assert "mine.toml:" in err and "furlong" in err
