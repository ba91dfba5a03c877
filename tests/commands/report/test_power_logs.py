"""`eprof report` on a log of power: it says which command reads it."""

import json

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


TABLE = "kernel-name,core-freq,mem_clk,kernel-time [ms],energy [J]\naxpy,1000,877,4,8\naxpy,500,877,6,6\n"
NAMED = "benchmark=kernel-name, core_mhz=core-freq, memory_mhz=mem_clk, time_ms=kernel-time [ms], energy_j=energy [J]"


def test_tune_says_which_columns_it_wants_and_takes_the_line_that_it_suggests(eprof_command, tmp_path):
    (tmp_path / "runs.csv").write_text(TABLE)
    run = eprof_command("tune", "runs.csv")
    assert run.returncode == 1 and f"--mapping '{NAMED}'" in run.stderr
    run = eprof_command("tune", "runs.csv", "--mapping", NAMED)
    said = " ".join(run.stdout.split())
    assert run.returncode == 0 and "500/877 MHz gives the least energy: 25 % less energy and 50 % more time" in said
    assert "model" not in said and "No setting" not in said, "nothing was counted, so nothing is predicted"


def test_the_cache_of_kernel_tuner_is_a_table(eprof_command, tmp_path):
    rows = {f"32,{mhz}": {"nvml_gr_clock": mhz, "time": 2000 / mhz, "times": [1.0], "nvml_power": mhz / 10}
            for mhz in (500, 1000)}  # fmt: skip
    (tmp_path / "cache.json").write_text(json.dumps({"kernel_name": "fma", "cache": rows}))
    run = eprof_command("tune", "cache.json")
    line = "benchmark=kernel, core_mhz=nvml_gr_clock, memory_mhz=?, time_ms=time_ms, power_w=nvml_power"
    assert run.returncode == 1 and f"--mapping '{line}'" in run.stderr
    run = eprof_command("tune", "cache.json", "--mapping", line.replace("?", "1215"), "--objective", "edp")
    assert run.returncode == 0 and "1000/1215 MHz" in run.stdout.splitlines()[1]
