"""`eprof report` on a log of power: it says which command reads it."""

import pytest

POWER = "timestamp, power.draw [W]\n2024/10/30 18:42:33.189, 22.89 W\n2024/10/30 18:42:33.239, 22.73 W\n"
JOBS = "JOB-STEP USER NODES ENERGY(J)\n2884239-0 me 1 7281\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (POWER, "this is power over time, as nvidia-smi writes it, which tells no kernels: `eprof timeline "),
        (JOBS, "this is the energy of jobs, by EAR, which tells no kernels; give its joules with --energy"),
        ("hello\n", "no log of a profiler that eprof reads"),
    ],
)
def test_report_names_what_reads_a_power_log(eprof_command, tmp_path, text, sentence):
    (tmp_path / "log.txt").write_text(text)
    run = eprof_command("report", "log.txt")
    assert run.returncode == 1
    assert f"log.txt: {sentence}" in run.stderr
