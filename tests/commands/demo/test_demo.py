"""`eprof demo` from a checkout; `tests/house/test_packaging.py` runs it from a wheel."""

from eprof.base import resources


def test_the_demo_writes_logs_and_two_pages_and_needs_nothing(eprof_command, tmp_path):
    done = eprof_command("demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n$ eprof ") == 2
    recorded = {log.name for log in resources.folder("samples/logs/simulated").glob("*.txt")}
    written = {path.name for path in (tmp_path / "eprof-demo").iterdir()}
    assert recorded and written == recorded | {"fmm.html", "gemm.html"}
