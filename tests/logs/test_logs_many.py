"""Many logs and large ones: packed, cached, over processes and over Dask; the same result to the last digit."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from logs_support import EVENTS, METRICS, TRACE, TRACE_UNITS, event, launch, metric, profiled

from eprof.base.errors import LogError, UsageError
from eprof.logs import many, stream
from eprof.profile import api

ROOT = Path(__file__).parents[2]


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
    monkeypatch.setattr(stream, "_FREE_BYTES", 1 << 22)
    path = tmp_path / "bomb.csv.zst"
    path.write_bytes(zstd(text().encode()) + zstd(b"a" * (8 << 20)) * 3)
    with pytest.raises(LogError, match=r"bomb\.csv\.zst: the zstd data unpack to more than 300 times"):
        api.load(path)


def test_the_cache_gives_back_what_was_read(tmp_path, monkeypatch):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
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
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text(1))
    before = document(path)
    path.write_text(text(1).replace("1001", "9009"))  # as long, and changed within the clock's last tick
    assert document(path) != before


def settled(path):
    """A log that was last changed so long ago that its times are trusted."""
    state = path.stat()
    until = time.monotonic() + 300
    while time.time() - max(state.st_mtime, state.st_ctime) < many._SETTLED_S:
        assert time.monotonic() < until
        time.sleep(0.02)
    return path


@pytest.mark.parametrize(
    ("changed_s", "inode_s", "settled"), [(60, 60, True), (60, 0, False), (0, 60, False), (-60, 60, False)]
)
def test_a_log_that_was_only_just_changed_is_not_trusted(changed_s, inode_s, settled):
    """Neither if its content was, nor if its inode was, nor if it is of the future."""
    ago_ns = [time.time_ns() - int(1e9 * seconds) for seconds in (changed_s, inode_s)]
    assert many.Stamp("log.csv", 100, tuple(ago_ns), (1, 2)).is_settled is settled


@pytest.mark.parametrize("how", ["in place", "moved over it"])
def test_a_log_that_is_changed_and_given_its_old_time_is_read_again(tmp_path, monkeypatch, how):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    monkeypatch.setattr(many, "_SETTLED_S", 0.05)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text(1))
    before = json.loads(document(settled(path)))
    assert json.loads(document(path)) == before
    old = path.stat()
    changed = path if how == "in place" else tmp_path / "new.csv"
    changed.write_text(text(1).replace("1001", "9009"))
    os.utime(changed, ns=(old.st_atime_ns, old.st_mtime_ns))
    changed.replace(path)
    new = path.stat()
    assert (new.st_size, new.st_mtime_ns) == (old.st_size, old.st_mtime_ns)
    after = json.loads(document(settled(path)))
    assert after["inputs"][0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert after["inputs"][0]["sha256"] != before["inputs"][0]["sha256"]
    assert after["counts"] != before["counts"]


@pytest.mark.parametrize(("place", "mode"), [("", 0o770), ("", 0o707), ("stamps", 0o775)])
def test_a_cache_that_others_can_write_is_not_used(tmp_path, monkeypatch, place, mode):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    folder = tmp_path / "cache"
    monkeypatch.setenv("EPROF_CACHE", str(folder))
    path = tmp_path / "log.csv"
    path.write_text(text())
    first = json.loads(document(path))
    # What another user could do: the log's entry tells other counts.
    (entry,) = folder.glob("*-*-*")
    forged = msgspec.msgpack.decode(entry.read_bytes()[32:])
    content = msgspec.msgpack.encode({**forged, "notes": ["forged"]})
    entry.write_bytes(hashlib.sha256(content).digest() + content)
    assert any("forged" in one for one in json.loads(document(path))["warnings"])
    (folder / place).chmod(mode)
    refused = json.loads(document(path))
    (said,) = [one for one in refused["warnings"] if "cache" in one]
    assert said == f"Others can write to the cache {folder / place}, so it is not used; run `chmod -R go-w {folder}`."
    refused["warnings"].remove(said)
    assert refused == first
    (folder / place).chmod(0o755)
    assert not any("Others can" in one for one in json.loads(document(path))["warnings"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder to another user")
def test_a_cache_of_another_user_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 54321, 54321)
    monkeypatch.setenv("EPROF_CACHE", str(folder))
    path = tmp_path / "log.csv"
    path.write_text(text())
    (said,) = [one for one in json.loads(document(path))["warnings"] if "cache" in one]
    assert said.startswith(f"The cache {folder} belongs to another user, so it is not used; name one of your own")
    assert not list(folder.iterdir())


def test_a_cache_is_made_for_its_user_alone_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text())
    old = os.umask(0)
    try:
        document(path)
    finally:
        os.umask(old)
    modes = {place.name: place.stat().st_mode & 0o777 for place in (tmp_path / "cache", tmp_path / "cache" / "stamps")}
    assert modes == {"cache": 0o700, "stamps": 0o700}
    assert not any("cache" in one for one in json.loads(document(path))["warnings"])


def test_a_cache_that_others_can_write_is_not_spoken_of_where_nothing_would_be_kept(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text())
    assert not any("cache" in one for one in json.loads(document(path))["warnings"])


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[:-9], lambda data: data.replace(b"K20c", b"K20d"), lambda data: data[:32]],
)
def test_a_damaged_cache_is_no_harm(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text())
    os.utime(path, (1, 1))
    first = document(path)
    entry = next((tmp_path / "cache").glob("*-*-*"))
    damaged = damage(entry.read_bytes())
    assert damaged != entry.read_bytes()
    entry.write_bytes(damaged)
    assert document(path) == first


def test_a_cache_that_cannot_be_written_is_no_harm(tmp_path, monkeypatch):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "file" / "cache"))
    path = tmp_path / "log.csv"
    path.write_text(text())
    assert document(path)


@pytest.mark.parametrize("room", ["logs", "nvidia", "profilers", "readers"])
def test_a_log_that_other_code_read_is_read_again(tmp_path, monkeypatch, room):
    code = tmp_path / room / "reader.py"
    code.parent.mkdir()
    monkeypatch.setattr(many, "__file__", str(tmp_path / "logs" / "many.py"))
    requests = []
    for version in ("old", "new"):
        code.write_text(version)
        requests.append(many.Reading(None, {}, lambda _: frozenset())._request)
    assert requests[0] != requests[1]


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
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", *words], **quiet, env=environment)


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
        deadline = time.monotonic() + 300
        while not place.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(place), timeout="60s") as client, ThreadPoolExecutor(1) as thread:
            client.wait_for_workers(2, timeout=300)
            coming = thread.submit(document, *logs, scheduler=client.scheduler.address)
            while not coming.done() and not all(client.processing().values()):
                time.sleep(0.02)
            processes[1].kill()
            assert coming.result(timeout=300) == expected
            assert len(client.scheduler_info()["workers"]) == 1
    finally:
        for one in processes:
            one.kill()
            one.wait()
