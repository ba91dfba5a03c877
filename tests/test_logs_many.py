"""Many logs and large ones: packed, cached, over processes and over Dask; the same result to the last digit."""

import gzip
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from logs_support import EVENTS, METRICS, TRACE, TRACE_UNITS, event, launch, metric, profiled

from eprof import api
from eprof.errors import LogError, UsageError
from eprof.logs import cache, many, packing

ROOT = Path(__file__).parents[1]


def text(seed=1, kernels=5):
    rows = [metric("inst_integer", 1000 * seed + i, kernel=f"kernel_{i}()") for i in range(kernels)]
    rows += [metric("dram_read_transactions", 7 * seed + i, kernel=f"kernel_{i}()") for i in range(kernels)]
    times = [launch(seed * 0.1 + i / 7, kernel=f"kernel_{i}()") for i in range(kernels)]
    return profiled(seed, "==1== Metric result:", METRICS, *rows) + profiled(seed + 50, TRACE, TRACE_UNITS, *times)


def document(*paths, **options):
    made = api.load(*paths, **options).energy("gtx680").document()
    for key in ("created_utc", "command_line"):
        made.pop(key, None)
    return json.dumps(made)


@pytest.fixture
def logs(tmp_path):
    paths = []
    for rank in range(6):
        paths.append(tmp_path / f"rank{rank}.csv")
        paths[-1].write_text(text(1 + rank))
    return paths


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, "gz"), (zstd, "zst")])
def test_packed_logs_say_the_same(tmp_path, pack, ending):
    plain, packed = tmp_path / "log.csv", tmp_path / f"log.csv.{ending}"
    plain.write_text(text())
    packed.write_bytes(pack(text()[:300].encode()) + pack(text()[300:].encode()))
    one, other = api.load(plain), api.load(packed)
    assert one.counts().table.equals(other.counts().table)


@pytest.mark.parametrize(("pack", "words"), [(gzip.compress, "cut off"), (zstd, "cut off")])
def test_a_packed_log_that_is_cut_says_so(tmp_path, pack, words):
    path = tmp_path / "log"
    data = pack(text(kernels=3000).encode())
    path.write_bytes(data[: len(data) * 3 // 4])
    warnings = " ".join(api.load(path).warnings)
    assert words in warnings


def test_a_decompression_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_FREE_BYTES", 1 << 22)
    path = tmp_path / "bomb.csv.zst"
    path.write_bytes(zstd(text().encode()) + zstd(b"a" * (8 << 20)) * 3)
    with pytest.raises(LogError, match=r"bomb\.csv\.zst: the zstd data unpack to more than 300 times"):
        api.load(path)


def test_the_cache_gives_back_what_was_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 1)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text() + profiled(9, "==9== Event result:", EVENTS, event("gld_request", "<OVERFLOW>")))
    os.utime(path, (1, 1))
    first = document(path)
    assert len(list((tmp_path / "cache").glob("*-*-*"))) == 1
    monkeypatch.setattr(many, "read", lambda *_, **__: pytest.fail("the log was read again"))
    assert document(path) == first
    # A copy elsewhere is known by its content.
    copy = tmp_path / "copy" / "log.csv"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    assert document(copy) == first.replace(str(path), str(copy))


def test_a_changed_log_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 1)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text(1))
    before = document(path)
    path.write_text(text(2))  # as long, and changed within the clock's last tick
    assert document(path) != before


@pytest.mark.parametrize(
    "damage",
    [lambda entry: (entry / "log.json").write_text("{"), lambda entry: (entry / "0.parquet").write_bytes(b"PAR1")],
)
def test_a_damaged_cache_is_no_harm(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 1)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text())
    os.utime(path, (1, 1))
    first = document(path)
    damage(next((tmp_path / "cache").glob("*-*-*")))
    assert document(path) == first


def test_a_cache_that_cannot_be_written_is_no_harm(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 1)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "file" / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text())
    assert document(path)


def test_processes_say_the_same_to_the_last_digit(logs, monkeypatch):
    one_by_one = document(*logs)
    monkeypatch.setattr(many, "_MANY_FILES", 1)
    assert document(*logs, workers=2) == one_by_one


def test_one_unreadable_log_is_left_out_or_with_strict_the_end(logs):
    logs[3].write_text("nothing")
    made = json.loads(document(*logs))
    assert any("rank3.csv" in one for one in made["warnings"])
    with pytest.raises(LogError, match=r"rank3\.csv"):
        api.load(*logs, strict=True)


def test_progress_counts_every_byte(logs):
    told = []
    api.load(*logs, progress=lambda done, total: told.append((done, total)))
    total = sum(path.stat().st_size for path in logs)
    assert told[-1] == (total, total) and [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_scheduler_that_is_not_there_is_one_sentence(logs):
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match="no Dask scheduler answers there"):
        api.load(*logs, scheduler="tcp://127.0.0.1:9")


# In a worker only: each log takes a while, so that one is surely being read when the worker dies.
SLOW = """
import time
from eprof import logs
from eprof.logs import many
def slowly(*arguments, **options):
    time.sleep(0.4)
    return logs.read(*arguments, **options)
many.read = slowly
"""


def dask(*words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )


def test_a_killed_dask_worker_changes_nothing(logs, tmp_path):
    distributed = pytest.importorskip("distributed")
    expected = document(*logs)
    (tmp_path / "slow.py").write_text(SLOW)
    place = tmp_path / "scheduler.json"
    shared = ["--scheduler-file", str(place), "--no-dashboard"]
    worker = [
        "distributed.cli.dask_worker",
        *shared,
        "--nthreads",
        "1",
        "--no-nanny",
        "--preload",
        str(tmp_path / "slow.py"),
    ]
    processes = [dask("distributed.cli.dask_scheduler", "--port", "0", *shared), dask(*worker), dask(*worker)]
    try:
        deadline = time.monotonic() + 60
        while not place.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(place), timeout="60s") as client, ThreadPoolExecutor(1) as thread:
            client.wait_for_workers(2, timeout=60)
            coming = thread.submit(document, *logs, scheduler=client.scheduler.address)
            while not coming.done() and not all(client.processing().values()):
                time.sleep(0.02)
            processes[1].kill()
            assert coming.result(timeout=60) == expected
            assert len(client.scheduler_info()["workers"]) == 1
    finally:
        for one in processes:
            one.kill()
            one.wait()
