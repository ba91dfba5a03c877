"""`eprof tune` on tables whose columns have other names: it says which it wants."""

import json

TABLE = "kernel-name,core-freq,mem_clk,kernel-time [ms],energy [J]\naxpy,1000,877,4,8\naxpy,500,877,6,6\n"
NAMED = "benchmark=kernel-name, core_mhz=core-freq, memory_mhz=mem_clk, time_ms=kernel-time [ms], energy_j=energy [J]"


def test_tune_says_which_columns_it_wants_and_takes_the_line_that_it_suggests(eprof_here, tmp_path):
    (tmp_path / "runs.csv").write_text(TABLE)
    run = eprof_here("tune", "runs.csv")
    assert run.returncode == 1 and f"--mapping '{NAMED}'" in run.stderr
    run = eprof_here("tune", "runs.csv", "--mapping", NAMED)
    said = " ".join(run.stdout.split())
    assert run.returncode == 0 and "500/877 MHz gives the least energy: 25 % less energy and 50 % more time" in said
    assert "model" not in said and "No setting" not in said, "nothing was counted, so nothing is predicted"


def test_the_cache_of_kernel_tuner_is_a_table(eprof_here, tmp_path):
    rows = {f"32,{mhz}": {"nvml_gr_clock": mhz, "time": 2000 / mhz, "times": [1.0], "nvml_power": mhz / 10}
            for mhz in (500, 1000)}  # fmt: skip
    (tmp_path / "cache.json").write_text(json.dumps({"kernel_name": "fma", "cache": rows}))
    run = eprof_here("tune", "cache.json")
    line = "benchmark=kernel, core_mhz=nvml_gr_clock, memory_mhz=?, time_ms=time_ms, power_w=nvml_power"
    assert run.returncode == 1 and f"--mapping '{line}'" in run.stderr
    run = eprof_here("tune", "cache.json", "--mapping", line.replace("?", "1215"), "--objective", "edp")
    assert run.returncode == 0 and "1000/1215 MHz" in run.stdout.splitlines()[1]
