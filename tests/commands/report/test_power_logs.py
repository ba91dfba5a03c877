"""`eprof report` on a log of power: it says which command reads it."""

import pytest

POWER = "timestamp, power.draw [W]\n2024/10/30 18:42:33.189, 22.89 W\n2024/10/30 18:42:33.239, 22.73 W\n"
FALLING = (2.16, 1.96, 2.09, 2.1, 2.0, 3.58, 1.66)  # J in each interval
JOBS = "JOB-STEP USER NODES ENERGY(J)\n2884239-0 me 1 7281\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (POWER, "this is power over time, as nvidia-smi writes it, which tells no kernels: `eprof timeline "),
        (
            "# Samples: 2K of event 'cycles'\n# Overhead  Command  Symbol\n    99.00%  a        [.] f\n",
            "this is what perf report printed: each function's share of the samples of an event, of which eprof makes "
            "no counts; count with perf stat -e cycles,instructions PROGRAM, or each function with `eprof run --profiler callgrind",
        ),
        (
            "".join(
                f"{number}.000100200 {joules} Joules power/energy-pkg/\n" for number, joules in enumerate(FALLING, 1)
            ),
            "this is power over time, as perf stat -I writes it, which tells no kernels: `eprof timeline log.txt`",
        ),
        (JOBS, "this is the energy of jobs, by EAR; it tells no kernels; give its joules with --energy"),
        ("=== OTF2-PRINT ===\n", "this is what otf2-print printed of a trace; `eprof comm --messages log.txt` prices"),
        (
            "@ mpiP\n@ Command : a.out\n",
            "this is a report of mpiP; `eprof comm --messages log.txt` prices its messages",
        ),
        (
            "JobID|NNodes|ElapsedRaw\n",
            "this is a list of jobs, by sacct, without their energy; ask sacct for it: sacct -P",
        ),
        (
            "kernel,ms,max_power_w\nf,4.39,53.8\ng,9.59,64.2\n",
            "this is a table of runs with their power (`max_power_w`)",
        ),
        (
            "kernel,latency_ms,power_w\nf,4.39,53.8\n",
            "this is a table of runs with their power (`power_w`) and without counts: beside a profiler's log of one of "
            "them give its joules, --energy J (mean watts times seconds; a largest value is no mean); `eprof tune` compares "
            "the runs (--mapping)",
        ),
        ("hello\n", "no log of a profiler that eprof reads"),
    ],
)
def test_report_names_what_reads_a_power_log(eprof_command, tmp_path, text, sentence):
    (tmp_path / "log.txt").write_text(text)
    run = eprof_command("report", "log.txt")
    assert run.returncode == 1
    assert f"log.txt: {sentence}" in run.stderr


def test_report_names_what_reads_a_trace_of_otf2(eprof_command, tmp_path):
    folder = tmp_path / "scorep"
    folder.mkdir()
    (folder / "traces.otf2").write_bytes(b"\x03BOTF2\0\3\2")
    run = eprof_command("report", "scorep")
    assert run.returncode == 1 and "otf2-print scorep/traces.otf2 > messages.txt" in run.stderr
    assert "eprof comm --messages messages.txt" in run.stderr
