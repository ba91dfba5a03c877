"""Logs of meters as people have them: joules by hand, or one true sentence; what is wrong in a log is said, never added."""

import csv
import gzip
import json
import os
from pathlib import Path

import pytest

from eprof.base.errors import EprofError
from eprof.base.resources import folder
from eprof.cli import main
from eprof.collect import sensors
from eprof.collect.meter import Component
from eprof.lab.power import logs as power
from eprof.lab.power.meters import known

METERS = Path(__file__).parents[4] / "shared" / "data" / "meters"


def joules(series):
    return {each.component: float(each.energy_j(each.edges[[0]], each.edges[[-1]])[0]) for each in series}


def read(tmp_path, content, interval_s=None, name="log"):
    """The joules of a log, its series, and what is said of it."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    notes = []
    series = power.read(str(path), notes, interval_s)
    return joules(series), series, " ".join(notes)


# ------------------------------------------------------------------------------------------------- as people have them

RUNS = "no power over time"
ASKS = "nothing in the log says how often it read; say so with `eprof timeline \\S+ --interval 1s`"
# Joules by hand (sums of rows times their intervals), or what the refusal says; how often the log was read, where only its author says.
REAL = {
    "turbostat/adl0.turbostat.txt": (None, {"PkgWatt": 154.86, "CorWatt": 10.574}),
    "turbostat/bdwup0.turbostat.txt": (None, {"PkgWatt": 770.25, "CorWatt": 69.635}),
    "turbostat/milan0.turbostat.txt.gz": (None, {"PkgWatt": 13268.7, "CorWatt": 12.613}),
    "turbostat/lefevre-2020_06_16.out.gz": (
        60,
        {"PkgWatt": 57488.4, "CorWatt": 27048.0, "GFXWatt": 14383.8, "RAMWatt": 11850.6},
    ),
    "turbostat/lefevre-SecondTest.out.gz": (
        1,
        {"PkgWatt": 7906.67, "CorWatt": 6195.78, "GFXWatt": 741.91, "RAMWatt": 776.14},
    ),
    "turbostat/lefevre-ThirdTest.out.gz": (
        10,
        {"PkgWatt": 8406.8, "CorWatt": 3300.5, "GFXWatt": 1135.7, "RAMWatt": 2722.6},
    ),
    "tegrastats/log-project.log.gz": (
        1,
        {
            "VDD_IN": 9724.43,
            "VDD_CPU": 1865.1,
            "VDD_GPU": 986.678,
            "VDD_SOC": 1730.06,
            "VDD_WIFI": 25.896,
            "VDD_DDR": 2345.07,
        },
    ),
    "tegrastats/sumant-tegrastats.txt": (0.25, {"POM_5V_IN": 126.447, "POM_5V_GPU": 63.573, "POM_5V_CPU": 11.603}),
    "tegrastats/tegra_burn.log": (None, {"VDD_IN": 1358.65, "VDD_CPU_GPU_CV": 727.298, "VDD_SOC": 207.072}),
    "nvidia-smi/eobo-gpu_log.csv.gz": (None, {"gpu NVIDIA GeForce RTX 4090": 805169.0}),
    "nvidia-smi/flame.csv": (None, {"gpu": 80.959}),
    "nvidia-smi/fletcher-gpu_power.csv": (None, {"gpu NVIDIA GeForce GTX 1650": 18.38}),
    "nvidia-smi/gpu_glasses.csv": (None, 3964.18),
    "nvidia-smi/migsec-power_data.csv": (None, {"power": 960.09}),
    "meter-csv/codecarbon-powergadget.csv": (None, {"package-0": 3.141, "core-0": 1.182, "dram-0": 1.426}),
    "meter-csv/directlab-power_usage.csv.gz": (None, "below 0 in 1,284 of 5,999 samples"),
    "meter-csv/e2fl-power_log.csv": (None, {"power": 49.649}),
    "meter-csv/gargant-power_log.csv.gz": (None, {"power": 11584441.3}),
    "meter-csv/kepler-dram_power.csv": (None, {"kepler-dram 0.0": 5116.95, "kepler-dram 1.0": 5479.45}),
    "meter-csv/milan0-yokogawa-acpower.csv": (None, {"system": 20808.2}),
    "meter-csv/rajesh-dgemm.tsv": (None, "columns of power with their unit in the header"),
    "perf-stat/peakler-README-extract.csv": (None, {"energy-pkg": 595.11}),
    "perf-stat/ysay-perf_stat.txt": (None, f"what perf stat counted in a whole run .*{RUNS}"),
    "ipmi/milan0-ipmi-inband.txt": (None, {"system": 15341.7}),
    "ipmi/snr0-ipmi-oob.txt": (None, f"sensors, of which none tells Watts, and {RUNS}"),
    "powermetrics/codecarbon-powermetrics.txt": (
        None,
        {"package": 0.550957, "cpu": 0.335212, "gpu": 0.0409266, "dram": 0.109045, "ane": 0.0},
    ),
    "powerjoular/afonso-exp.csv": (None, {"Total": 95.286, "CPU": 18.723, "GPU": 76.563}),
    "codecarbon/kasper-emissions.csv": (None, f"CodeCarbon's table of runs.*{RUNS}"),
    "jtop/agentmesh-jtop_log.csv": (None, {"System": 149.032, "CPU": 18.388, "GPU": 106.4}),
    "zeus/zeus-a40-4gpu.csv": (None, f"a table of windows by Zeus.*{RUNS}"),
    "dmon-pmon/slm-gpu_stats.log": (1, {"gpu 0": 2518.0}),
    "sacct/autosubmit-wrapper1.txt": (None, f"jobs, by sacct.*{RUNS}"),
    "sacct/autosubmit-wrapper_big-derived.psv": (None, f"energy of jobs, by sacct.*{RUNS}"),
    "sacct/ear-santis-derived.psv": (None, f"energy of jobs, by sacct.*{RUNS}"),
    "sacct/ood-test-sacct.txt": (None, f"a list of jobs, by sacct.*{RUNS}"),
    "sacct/slurmio-sacct.txt": (None, f"a list of jobs, by sacct.*{RUNS}"),
    "sacct/steampunk-tests-sacct.csv": (None, f"energy of jobs, by sacct.*{RUNS}"),
}


@pytest.mark.parametrize("name", REAL)
def test_logs_of_strangers_give_joules_by_hand_or_one_true_sentence(name):
    interval_s, expected = REAL[name]
    if not (METERS / name).is_file():
        pytest.skip("the shared data is not here")
    if isinstance(expected, str) or interval_s:
        with pytest.raises(EprofError, match=ASKS if interval_s else expected):
            power.read(str(METERS / name), [])
        if not interval_s:
            return
    found = joules(power.read(str(METERS / name), [], interval_s))
    if isinstance(expected, float):
        assert len(found) == 8 and sum(found.values()) == pytest.approx(expected, rel=1e-4)
    else:
        assert found == pytest.approx(expected, rel=1e-4)


def test_every_log_of_strangers_is_in_the_table():
    if METERS.is_dir():
        files = {path.relative_to(METERS).as_posix() for path in METERS.glob("*/*")}
        assert files <= set(REAL)


# -------------------------------------------------------------------------------------------------- made by their forms


def rows(form, *columns):
    return "".join(form.format(*cells) for cells in zip(*columns, strict=True))


def stamps(form="2024-01-01 00:00:{:02d}", seconds=range(4)):
    return [form.format(second) for second in seconds]


def smi(*columns, header="timestamp, power.draw [W]"):
    """nvidia-smi's rows of 10 s, two a second: 50 W and 100 W."""
    form = "2024/01/01 00:00:{0:02d}.00{1}, " + "".join(f"{column}, " for column in columns) + "{2}.00 W\n"
    return (
        header
        + "\n"
        + "".join(form.format(second, place, watts) for second in range(10) for place, watts in ((0, 50), (1, 100)))
    )


TEGRA = "RAM 1/2MB (lfb 1x4MB) CPU [0%@1] VDD_IN {}/5000 VDD_SOC {}mW/7mW\n"
PERF = "{:16.9f},{},Joules,power/energy-pkg/,1000,100.00,,\n"
SOCKETS = "{:16.9f},S{},1,{},Joules,power/energy-pkg/,1000,100.00,,\n"
PERF_JSON = '{{"interval" : {}.5, "socket" : "S{}", "counter-value" : "{}", "unit" : "Joules", "event" : "power/energy-pkg/"}}\n'
TURBO = "CPU\tBusy%\tPkgWatt\n-\t5\t{0}\n0\t5\t{0}\n"
DMON = "# gpu    pwr\n# Idx      W\n    0     10\n    1      -\n    0     10\n    1     20\n# gpu    pwr\n# Idx      W\n    0     30\n    1     20\n"
DCGM = "# Entity  SMACT  POWER  TOTEC\n      Id             W     mJ\n" + "".join(
    f"   GPU 0  0.500  10.000  {1000 + 10000 * row}\n   GPU 1  N/A  20.000  {5000 + 20000 * row}\n" for row in range(5)
)
SIX = "time_s,power_w\n0,1\n1,2\n2,4\n3,8\n4,16\n5,32\n"

READ = {
    "two GPUs of one moment": (smi(), None, {"gpu 0": 500, "gpu 1": 1000}, "no column tells its 2 GPUs apart"),
    "two GPUs of one name": (smi("A100", header="timestamp, name, power.draw [W]"), None, {"gpu A100 0": 500, "gpu A100 1": 1000}, "no column"),
    "GPUs by bus": (smi("0000:0{1}:00.0", header="timestamp, pci.bus_id, power.draw [W]"), None, {"gpu 0000:00:00.0": 500, "gpu 0000:01:00.0": 1000}, ""),
    "GPUs by gpu, index": (smi("{1}", "0", header="timestamp, gpu, index, power.draw [W]"), None, {"gpu 0": 500, "gpu 1": 1000}, ""),
    "no header": ("".join(f"2024/01/01 00:00:0{s}.00{k}, GPU-{k}, 3 %, {w}.00 W\n" for s in range(5) for k, w in ((0, 50), (1, 100))), None, {"gpu GPU-0": 250, "gpu GPU-1": 500}, ""),
    "no header, no names": ("2024/01/01 00:00:00.000, 5.00 W\n2024/01/01 00:00:01.000, 5.00 W\n", None, {"gpu": 10}, ""),
    "no header, a limit beside it": ("".join(f"2024/01/01 00:00:0{s}.000, 9 MHz, {w}.00 W, 300.00 W\n" for s, w in enumerate((50, 60, 60))), None, {"gpu": 170}, ""),
    "a header in a comment": ("# Sampled at 1 Hz\n# Columns: timestamp, power_limit, power_draw\n" + "".join(f"2024/01/01 00:00:0{s}.000, 300.00 W, 50.00 W\n" for s in range(3)), None, {"gpu": 150}, ""),
    "tegrastats of a Xavier": ("RAM 1/2MB (lfb 1x4MB) SWAP 0/4096MB (cached 0MB) IRAM 0/252kB(lfb 252kB) CPU [0%@1] GPU 0/0 CPU 311/311 SYS5V 1863/1863\n" * 2, 1.0, {"GPU": 0, "CPU": 0.622, "SYS5V": 3.726}, ""),
    "tegrastats with stamps before": ("".join(f"[2023-05-01 12:00:0{s}.500] {TEGRA.format(10000, 0)}" for s in range(3)), None, {"VDD_IN": 30, "VDD_SOC": 0}, ""),
    "perf as JSON": ("".join(PERF_JSON.format(t, s, "<not counted>" if (t, s) == (2, 1) else "10.5") for t in range(1, 5) for s in (0, 1)), None, ({"energy-pkg": 63}, 1), ""),
    "powerstat": ("Running for 3 seconds\n  Time    User  Idle  Watts\n12:00:01   1.0  99.0   5.50\n12:00:02   1.0  99.0   7.50\n-------- ----- ----- -----\n Average   1.0  99.0   6.50\n", None, {"package": 13}, ""),
    "turbostat with commas": (TURBO.replace("\t", ",").format(10) * 2, 5.0, {"PkgWatt": 100}, ""),
    "a clock of twelve hours": ("Time,power_w\n11:59:59 AM,10\n12:00:00 PM,20\n12:00:01 PM,30\n", None, {"power": 60}, ""),
    "a US date": ("timestamp,power_w\n10/02/2018 11:59:59 AM,10\n10/02/2018 12:00:00 PM,20\n", None, {"power": 30}, ""),
    "energies of EnergiBridge": ("Delta,Time,PACKAGE_ENERGY (J),PP0_ENERGY (J),SYSTEM_POWER (Watts)\n0,1700000000000,100,50,9\n100,1700000000100,102,51,9\n100,1700000000200,104,52,9\n", None, {"package": 4, "pp0": 2, "system": 1.8}, ""),
    "readings of sdr without times": ("Pwr Consumption  | 100 Watts | ok\nFan | 5 RPM | ok\n" * 3, 5.0, {"system": 1500}, ""),
    "sdr elist, five columns": ("".join(f"17000000{s}0\nTemp | 0Eh | ok  |  3.1 | 33 degrees C\nPwr Consumption  | 77h | ok  |  7.1 | {w} Watts\n" for s, w in ((0, 182), (1, 168), (2, 154))), None, {"system": 10 * (182 + 168 + 154)}, ""),
    "a GPU without any reading": ("timestamp, index, power.draw [W]\n" + "".join(f"2026/03/07 00:20:3{s}.000, {k}, {w}\n" for s in range(3) for k, w in ((0, "[N/A]"), (1, "76 W"))), None, ({"gpu 1": 3 * 76, "gpu 0": 0}, 3), ""),
    "only the mean": ("timestamp, power.draw.average [W]\n2024/01/01 00:00:00.000, 5.00 W\n2024/01/01 00:00:01.000, 5.00 W\n", None, {"gpu": 10}, ""),
    "tegrastats among other lines": (TEGRA.format(10000, 3000) * 10 + "\nhello VDD_IN 1/1\n" + TEGRA.format(10000, 3000) * 10, 0.1, {"VDD_IN": 20, "VDD_SOC": 6}, ""),
    "tegrastats that tells its interval": ("$ tegrastats --interval 100\n" + TEGRA.format(10000, 3000) * 10, None, {"VDD_IN": 10, "VDD_SOC": 3}, ""),
    "tegrastats of 100 ms with stamps of 1 s": ("".join(f"01-01-2024 00:00:{7 + k // 10:02d} " + TEGRA.format(10000 if k < 40 else 20000, 0) for k in range(3, 87)), None, {"VDD_IN": 131, "VDD_SOC": 0}, ""),
    "clock coarser than samples": ("timestamp,power_w\n" + rows("{},{}\n", stamps(seconds=[k // 2 for k in range(20)]), [5 + k % 2 for k in range(20)]), 0.5, {"power": 55}, ""),
    "ms and W": ("time_ms,power_w\n0,10\n1000,20\n2000,30\n", None, {"power": 60}, ""),
    "s and mW": ("Timestamp (s),Power (mW)\n0,10000\n1,20000\n2,30000\n", None, {"power": 60}, ""),
    "units in a row": ("time,power\nms,mW\n0,10000\n1000,20000\n", None, {"power": 30}, ""),
    "a time without a unit": ("time,power_w\n0,10\n1,10\n", None, {"power": 20}, "no unit is written for its time; taken for s"),
    "newest first": ("timestamp,power_w\n" + rows("{},{}\n", reversed(stamps()), [40, 30, 20, 10]), None, {"power": 100}, ""),
    "packed": (gzip.compress(SIX.encode()), None, {"power": 63}, ""),
    "cut while packing": (gzip.compress(SIX.encode())[:-4], None, {"power": 63}, "the gzip file is cut off"),
    "UTF-16": (SIX.encode("utf-16"), None, {"power": 63}, ""),
    "semicolons": ("time_s;power_w\n0,5;10,500\n1,5;10,500\n", None, {"power": 21}, ""),
    "quoted commas": ('time_s,power_w\n"0,5","10,5"\n"1,5","10,5"\n', None, {"power": 21}, ""),
    "commas without quotes": ("timestamp,Power (W)\n" + rows("{},{}\n", stamps(), ["30,3", "31", "30,3", "30,3"]), None, {"power": 121.9}, ""),
    "a glitch": ("time_s,power_w\n" + rows("{},{}\n", range(20), [10] * 5 + [-12977] + [10] * 14), None, ({"power": 180}, 1), "1 sample of power below 0"),
    "too much in a cell": ("time_s,power_w\n0,1e999\n1,10\n2,10\n", None, ({"power": 10}, 1), "of 1e.08 W and more: not known"),
    "too much of a counter": ("time_s,cpu_j\n0,0\n1,1e9\n2,1000000010\n", None, ({"cpu": 10}, 1), "of 1e.08 W and more: not known"),
    "a unit in header and cells": ("time_s,power_mW\n0,10 mW\n1,10 mW\n", None, {"power": 0.02}, ""),
    "units that differ": ("time_s,power [W]\n0,10 W\n1,10000 mW\n2,0.01 kW\n3,10\n4,5 V\n5,10\n", None, ({"power": 40}, 1), ""),
    "two micro signs": ("time_s,power,x (\u00b5W),y [\u03bcW]\n0,5 \u00b5W,1,2\n1,5 \u03bcW,1,2\n2,5 uW,1,2\n", None, {"power": 15e-6, "x": 3e-6, "y": 6e-6}, ""),
    "no answer": ("time_s,power_w\n0,None\n1,[N/A]\n2,5\n3,nan\n4,5\n", None, ({"power": 5}, 3), ""),
    "cut in a number": ("time_s,power_w\n0,100\n1,100\n2,10", None, {"power": 200}, "its last number may be cut"),
    "no end, as many decimals": ("time_s,power_w\n0,100.0\n1,100.0\n2,100.0", None, {"power": 300}, ""),
    "no end, a unit": ("time_s,power\n0,100 W\n1,100 W\n2,100 W", None, {"power": 300}, ""),
    "a short row": ("time_s,a_w,b_w\n0,10,1\n1\n2,10,1\n", None, ({"a": 10, "b": 1}, 1), ""),
    "perf": (rows(PERF, range(1, 8), [10] * 7), None, {"energy-pkg": 70}, ""),
    "perf, not counted": (rows(PERF, range(1, 8), [10, 10, "<not counted>", 10, 10, 10, 10]), None, ({"energy-pkg": 60}, 1), ""),
    "perf, a socket not counted": ("".join(SOCKETS.format(t, s, "<not counted>" if (t, s) == (3, 1) else 10) for t in range(1, 8) for s in (0, 1)), None, ({"energy-pkg": 120}, 1), ""),
    "perf, a socket gone": ("".join(SOCKETS.format(t, s, 10) for t in range(1, 8) for s in (0, 1) if (t, s) != (3, 1)), None, ({"energy-pkg": 120}, 1), ""),
    "perf, not supported": (rows(PERF, range(1, 8), [10] * 7) + rows(PERF.replace("pkg", "psys"), range(1, 8), ["<not supported>"] * 7), None, {"energy-pkg": 70}, ""),
    "perf, decimal commas": ("".join(f"     {t},000083000;2{t + 4},50;Joules;power/energy-pkg/;1000083000;100,00;;\n" for t in (1, 2, 3)), None, {"energy-pkg": 25.5 + 26.5 + 27.5}, ""),
    "perf, decimal commas of joules alone": ("".join(f"     {t}.000083000;2{t + 4},50;Joules;power/energy-pkg/;1000083000;100,00;;\n" for t in (1, 2, 3)), None, {"energy-pkg": 25.5 + 26.5 + 27.5}, ""),
    "perf as text, decimal commas": ("# time counts unit events\n" + "".join(f"     {t},000083000   1.0{t}6,50 Joules power/energy-pkg/\n" for t in (1, 2, 3)), None, {"energy-pkg": 1016.5 + 1026.5 + 1036.5}, ""),
    "perf as text": ("# time counts unit events\n" + "".join(f"     {t}.000123456 S{s}     1     10.50 Joules power/energy-pkg/  \n" for t in range(1, 5) for s in (0, 1)), None, {"energy-pkg": 84}, ""),
    "perf, a CPU of each socket": ("".join(f"{t}.0,CPU{s},10,Joules,power/energy-pkg/,1\n" for t in range(1, 8) for s in (0, 24)), None, {"energy-pkg": 140}, ""),
    "turbostat, its head": ("Measurement interval: 5.000 seconds\n" + TURBO.format(10) * 2, None, {"PkgWatt": 100}, ""),
    "turbostat, as users say": (TURBO.format(10) * 2, 60.0, {"PkgWatt": 1200}, ""),
    "turbostat in a letter": ("This mends SysWatt when it is read\n$ turbostat -S -i 2\nPkgWatt\tSysWatt\n10.0\t20.0\n10.0\t20.0\n", None, {"PkgWatt": 40, "SysWatt": 80}, ""),
    "turbostat of a program": (TURBO.format(50) + "3.5 sec\n", None, {"PkgWatt": 175}, ""),
    "turbostat above a sentence": ("$ turbostat -S --interval 1\nPkgWatt\tCorWatt\tSysWatt\n6.0\t1.0\t13.0\n6.5\t1.5\t12.0\n\nBut what a program took was\nSysWatt told:\n$ turbostat --show Pkg_J sleep 1\n", None, {"PkgWatt": 12.5, "CorWatt": 2.5, "SysWatt": 25}, ""),
    "turbostat and packages of a program": ("$ turbostat --Joules --show Pkg_J ./a.out\nthe 5 th run took 7 s\n16.5 sec\nPkg_J\n195.33\n195.33\n", None, {"PkgWatt": 195.33}, ""),
    "turbostat, a header each second row": ("PkgWatt\n30.0\n31.0\nPkgWatt\n32.0\n30.0\n", 1.0, {"PkgWatt": 123}, ""),
    "turbostat by core": ("Core\tPkgWatt\n-\t30.0\n0\t30.0\n" * 2, 1.0, {"PkgWatt": 60}, ""),
    "turbostat on a machine of one CPU": ("Core\tCPU\tBusy%\tPkgWatt\n" + "0\t0\t100\t23.0\n0\t0\t99\t22.5\n" * 2, 2.0, {"PkgWatt": 2 * (23 + 22.5 + 23 + 22.5)}, ""),
    "turbostat on one CPU, a header each row": ("- before:\nCore\tCPU\tPkgWatt\n0\t0\t23.24\n- with `new(1024)`:\nCore\tCPU\tPkgWatt\n0\t0\t22.46\n", 1.0, {"PkgWatt": 45.7}, ""),
    "turbostat, joules": (TURBO.replace("PkgWatt", "Pkg_J").format(50) * 2, 5.0, {"PkgWatt": 100}, ""),
    "turbostat, summary": ("PkgWatt\tRAMWatt\n10.0\t1.0\nPkgWatt\tRAMWatt\n10.0\t1.0\n", 5.0, {"PkgWatt": 100, "RAMWatt": 10}, ""),
    "dmon": (DMON, 1.0, ({"gpu 0": 20, "gpu 1": 20}, 1), ""),
    "dmon by its command": ("$ nvidia-smi dmon -s pu -d 5\n" + DMON, None, ({"gpu 0": 100, "gpu 1": 100}, 5), ""),
    "dmon by a command in another": ("srun -n1 nvidia-smi dmon -s pu -d 5\n" + DMON, None, ({"gpu 0": 100, "gpu 1": 100}, 5), ""),
    "perf in text, grouped": (
        " 1.000000000  1,500.00 Joules power/energy-pkg/\n 2.000000000  20.00 Joules power/energy-pkg/\n", None, {"energy-pkg": 1520}, "",
    ),
    "dmon by its command alone": ("root@a:~# nvidia-smi dmon -s pu\n" + DMON, None, ({"gpu 0": 20, "gpu 1": 20}, 1), ""),
    "the first and last rows of a log": ("timestamp, power.draw [W]\n" + rows("2024/01/01 00:{}, 60.00 W\n", ["00:01.1", "00:02.1", "00:03.1", "10:01.1", "10:02.1", "10:03.1"]), None, ({"gpu": 240}, 598), "not known for 598 s"),
    "DCGM at its own pace": (DCGM, None, {"gpu 0": 40, "gpu 1": 80}, "a row is 1000 ms, by its joules over its watts"),
    "DCGM with an interval": (DCGM.replace("TOTEC", "OTHER"), 2.0, {"gpu 0": 100, "gpu 1": 200}, ""),
    "DCGM as CSV": ("timestamp,gpu,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_PROF_SM_ACTIVE\n1700000000,0,5,0.5\n1700000001,0,5,0.5\n", None, {"gpu 0": 10}, ""),
    "DCGM's power alone": (
        "#Entity   POWER      TOTEC\nID          W          mJ\n" + rows("GPU 0     50.0     {}\n", range(0, 300_000, 100_000)), None, {"gpu 0": 200}, "a row is 2000 ms",
    ),
    "DCGM's exporter of a GPU without shares": (
        rows('{}\n# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\nDCGM_FI_DEV_GPU_TEMP{{gpu="3"}} 40\nDCGM_FI_DEV_POWER_USAGE{{gpu="3"}} 60.5\n', range(1_700_000_000, 1_700_000_040, 10)), None, {"gpu 3": 2420}, "",
    ),
    "dmon with dates": ("#Date Time gpu pwr\n#YYYYMMDD HH:MM:SS Idx W\n20240101 00:00:00 0 10\n20240101 00:00:02 0 10\n", None, {"gpu 0": 40}, ""),
    "times of day over midnight": ("time,power_w\n23:59:59,10\n00:00:00,20\n00:00:01,10\n", None, {"power": 40}, ""),
    "date and time apart": ("Date;Time;CPU [W]\n22.11.2024;13:45:10.5;55,3\n22.11.2024;13:45:12.5;55,3\n", None, {"cpu": 221.2}, ""),
    "a counter of Prometheus": ("timestamp,node_joules_total\n1700000000,100\n1700000003,130\n1700000006,160\n", None, {"node": 60}, ""),
    "a column that counts rows": ("index,time_s,power_w\n0,0,5\n1,1,5\n2,2,5\n3,3,5\n", None, {"power": 20}, ""),
    "not per cent": ("time_s,power (%),power_limit_w,power_w\n0,10,9,1\n1,10,9,1\n", None, {"power": 2}, ""),
    "doubled": (SIX * 2, None, {"power": 63}, "6 samples of power are there twice, and count once"),
    "partly doubled": (SIX + "3,8\n4,16\n", None, {"power": 63}, "2 samples of power are there twice, and count once"),
    "each row twice": ("".join(line + line for line in SIX.splitlines(True)), None, {"power": 63}, "at one moment are the same, and count once"),
    "powermetrics, one block": ("*** Sampled system activity (Fri Nov 10 12:37:08 2023 +0100) (500.0ms elapsed) ***\nCPU Power: 1000 mW\n", None, {"cpu": 0.5}, ""),
    "powermetrics of Intel": ("*** Sampled system activity (Fri Nov 10 12:37:08 2023 +0100) (500.0ms elapsed) ***\nIntel energy model derived package power (CPUs+GT+SA): 3.00W\n" * 2, None, {"package": 3}, ""),
    "ipmitool sensor": ("".join(f"{1700000000 + s}\nPwr Consumption  | 100.000 | Watts | ok\nPSU1 | na | Watts | na\n" for s in range(3)), None, {"system": 300}, ""),
    "rows of one time, as users say": ("Date,Time,Power Used\n" + "04-03-2021,13:32:39,5\n" * 4, 0.5, {"used": 10}, "no unit is written for used"),
    "a clock set back": ("timestamp,power_w\n" + "".join(f"2024-10-27 0{h}:{m:02d}:00,60\n" for h in (1, 2, 2, 3) for m in range(60)), None, {"power": 4 * 3600 * 60}, "its clock was set back by an hour"),
    "a clock set forward": ("timestamp,power_w\n" + "".join(f"2024-03-31 0{h}:{m:02d}:00,60\n" for h in (0, 1, 3, 4) for m in range(60)), None, {"power": 4 * 3600 * 60}, "its clock was set forward by an hour"),
    "an hour without samples in UTC": ("timestamp,power_w\n" + "".join(f"2024-03-31 0{h}:{m:02d}:00Z,60\n" for h in (0, 1, 3, 4) for m in range(60)), None, ({"power": 14340 * 60 - 3600}, 3660), "not known for"),
    "an hour without samples": ("timestamp,power_w\n" + "".join(f"2024-04-02 0{h}:{m:02d}:00,60\n" for h in (0, 1, 3, 4) for m in range(60)), None, ({"power": 14340 * 60 - 3600}, 3660), "not known for"),
}  # fmt: skip


@pytest.mark.parametrize("what", READ)
def test_what_a_log_says_is_read_and_what_it_does_not_say_is_told(what, tmp_path):
    content, interval_s, expected, said = READ[what]
    expected, unknown_s = expected if isinstance(expected, tuple) else (expected, 0)
    found, series, notes = read(tmp_path, content, interval_s)
    assert found == pytest.approx(expected), notes
    assert max(each.unknown_s for each in series) == pytest.approx(unknown_s), notes
    if said:
        assert said.replace("1e.08", "1e+08") in notes
    elif not unknown_s:
        assert notes == ""


REFUSED = {
    "tegrastats": (TEGRA.format(1, 1) * 5, f"tegrastats wrote no times, and {ASKS} .tegrastats: 1 s a line, unless"),
    "turbostat": (TURBO.format(1) * 5, f"turbostat wrote no times, and {ASKS} .turbostat: 5 s a row"),
    "turbostat, other columns": ("PkgWatt\tCorWatt\n1\t1\nPkgWatt\tRAMWatt\n2\t1\n", ":3: another header begins, with other columns"),
    "turbostat without the machine's row": ("CPU\tPkgWatt\n0\t30.0\n1\t\n2\t31.0\n" * 2, "no power over time was found"),
    "turbostat, two programs": ("2.5 sec\nPkg_J\n9\n3.5 sec\nPkg_J\n8\n", ":4: a second program ran so long"),
    "turbostat, a program behind others' power": (
        "$ turbostat -S -i 1\nPkgWatt\tSysWatt\n6.2\t13.0\n6.0\t12.8\n\nOf a program:\n$ sudo turbostat -S sleep 1\n"
        "1.004736 sec\nPkgWatt\tSysWatt\n6.05\t0.03\n",
        ":7: another run begins, and nothing tells when; cut the log in two there",
    ),
    "turbostat, rows of a program behind others": ("PkgWatt\n6\n6\n1.5 sec\nPkgWatt\n9\n", ":4: another run begins"),
    "turbostat by core, two commands": ("CPU\tPkgWatt\n-\t6\n0\t6\n# turbostat -i 1\nCPU\tPkgWatt\n-\t9\n", ":4: another run begins"),
    "dmon": (DMON, f"nvidia-smi dmon wrote no times, and {ASKS}"),
    "all rows of one time": ("Date,Time,Power Used\n" + "04-03-2021,13:32:39,5\n" * 45, "all 45 rows of used have one time, so nothing tells how long they are apart"),
    "rows of one time": ("timestamp,power_w\n" + rows("{},{}\n", stamps(seconds=[0, 0, 1, 1]), [1, 2, 1, 2]), "several rows of power have one time"),
    "GPUs that come and go": (smi().replace("2024/01/01 00:00:03.001, 100.00 W\n", ""), "several rows of gpu have one time"),
    "groups or decimals": ('time_s,power_w\n0,"10,500"\n1,"10,500"\n', "`10,500` may have decimals or thousands"),
    "below 0": ("time_s,power_w\n0,-1\n1,-1\n2,-1\n", "power is below 0 in 3 of 3 samples"),
    "joules a row": ("time_s,cpu_j\n" + rows("{},{}\n", range(20), [10 + t * 7 % 5 for t in range(20)]), "falls again and again, so its joules are no counter"),
    "pmon": ("# gpu        pid  type    sm\n# Idx          #   C/G     %\n    0          -     -     -\n", "printed of processes, without their power"),
    "no header, two in W": ("2024/01/01 00:00:00.000, 5.00 W, 9.00 W\n" * 2, "no power over time was found"),
    "a day or a month": ("timestamp,power_w\n01/02/2018 11:59:59,10\n01/02/2018 12:00:00,20\n", "`01/02/2018 11:59:59` is no time that is read; write s, or 2026-01-31"),
    "one reading of sdr": ("Pwr Consumption  | 100 Watts | ok\nFan | 5 RPM | ok\n", "is one reading of ipmitool sdr, and no power over time"),
    "pyJoules": ("timestamp;tag;duration;package_0\n1;a;2;3\n", "pyJoules' table of runs"),
    "two columns of one name": ("time_s,power_w,power_w\n0,1,2\n1,1,2\n", "log: two columns are called `power_w`; rename one"),
    "another packing": (b"BZh91AY", "is packed with bzip2; unpack it first"),
    "one reading": (TEGRA.format(1, 1), "is one reading of tegrastats, and no power over time"),
    "a long cell": ('time_s,power_w,x\n0,10,"' + "a" * 200_000 + '"\n', "log: field larger than field limit"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_nobody_can_know_is_asked(what, tmp_path):
    content, sentence = REFUSED[what]
    with pytest.raises(EprofError, match=sentence):
        read(tmp_path, content)


def test_a_command_that_names_as_many_columns_as_its_table_is_no_header(tmp_path):
    command = "`nvidia-smi --query-gpu=index,timestamp,power.draw --format=csv -l 1`\n```\n"
    table = "index, timestamp, power.draw [W]\n" + "".join(f"0, {stamp}, 50.00 W\n" for stamp in stamps())
    assert sum(read(tmp_path, command + table)[0].values()) == pytest.approx(200.0)


def test_what_is_no_file_is_refused_before_it_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "gone", "."):
        with pytest.raises(EprofError, match="cannot be read"):
            power.read(str(tmp_path / path), [])


def test_means_are_of_the_time_before_their_stamp(tmp_path):
    """Turbostat's 10 W of the first 5 s and 30 W of the next."""
    text = "Measurement interval: 5.000 seconds\n" + "".join(
        f"Time_Of_Day_Seconds CPU Busy% PkgWatt\n{1700000000 + at} - 5 {watts}\n" for at, watts in ((5, 10), (10, 30))
    )
    (series,) = read(tmp_path, text)[1]
    assert (series.edges - 1700000000).tolist() == [0, 5, 10] and series.watts.tolist() == [10, 30] and series.zoned


def test_packages_below_their_sum_are_its_parts(tmp_path):
    intervals = ("30.01\t3\n10.00\t1\n20.00\t2\n", "40.00\t3\n10.00\t1\n30.00\t2\n", "9.00\t3\n4.00\t1\n")
    text = "".join(f"PkgWatt\tRAMWatt\n{interval}" for interval in intervals)  # the last was cut
    assert joules(read(tmp_path, text, 2.0)[1]) == pytest.approx({"PkgWatt": 158.02, "RAMWatt": 18})


def test_parts_that_a_meter_names_lie_in_their_whole(tmp_path):
    from eprof.lab.power.series import shared

    block = "*** Sampled system activity (Fri Nov 10 12:37:08 2023 +0100) (100.0ms elapsed) ***\n"
    parts = "DRAM Power: 20 mW\nCPU Power: 900 mW\nGPU Power: 100 mW\nPackage Power: 1473 mW\n"
    assert shared(read(tmp_path, (block + parts) * 3)[1]).wholes == dict.fromkeys(("dram", "cpu", "gpu"), "package")


def test_the_page_of_docs_lists_every_meter():
    page = (Path(str(folder("counters"))).parent / "docs" / "timeline.md").read_text()
    for meter in known()[0]:
        assert f"| {meter.log} | {meter.reads} |" in page


# ------------------------------------------------------------------------------------------------------- what is shown


def test_a_region_of_which_nothing_is_known_is_null_everywhere(tmp_path, capsys):
    """Power is known until 3 s and from 6 s on; 10 W before, 50 W behind; idle power is 10 W."""
    log = "time_s,cpu_w,gpu_w\n" + "".join(f"{t},{'' if 3 <= t < 6 else 10 if t < 6 else 50},20\n" for t in range(10))
    (tmp_path / "p.csv").write_text(log)
    (tmp_path / "m.csv").write_text("begin_s,end_s,name\n3,6,dark\n6,8,light\n5,7,both\n")
    outputs = [tmp_path / f"x.{suffix}" for suffix in ("json", "html", "csv", "trace.json")]
    words = ["timeline", str(tmp_path / "p.csv"), "--marks", str(tmp_path / "m.csv")]
    with pytest.raises(SystemExit) as ended:
        main([*words, *(word for out in outputs for word in ("-o", str(out)))])
    assert not ended.value.code and "not known" in capsys.readouterr().out
    made = json.loads(outputs[0].read_text())
    dark, both, light = (next(f for f in made["functions"] if f["name"] == name) for name in ("dark", "both", "light"))
    assert dark["energy_j"] == {"cpu": None, "gpu": 40} and dark["above_idle_j"] == {"cpu": None, "gpu": 0}
    assert both["energy_j"] == {"cpu": None, "gpu": 20}
    assert light["above_idle_j"]["cpu"] == pytest.approx(light["energy_j"]["cpu"] - 10 * light["time_s"])
    assert dark["inclusive_j"]["cpu"] is None and dark["unknown_s"] == 2
    assert 'class="unknown"' in outputs[1].read_text()
    cells = [row["energy_j"] for row in csv.DictReader(outputs[2].open()) if row["function"] == "dark"]
    assert cells == ["", "40.0"]
    slices = [row for row in json.loads(outputs[3].read_text())["traceEvents"] if row["ph"] == "X"]
    lost = next(row for row in slices if row["name"] == "dark")["args"]
    assert "cpu_j" not in lost and lost["gpu_j"] == 60 and lost["power_not_known_s"] == 3


@pytest.mark.parametrize(("said", "total_j"), [("250ms", 30), ("0.5 s", 60), ("1min", 7200), ("2", 240)])
def test_users_say_how_often_a_meter_was_read(said, total_j, tmp_path, capsys):
    (tmp_path / "t.log").write_text(TEGRA.format(10000, 0) * 12)
    with pytest.raises(SystemExit) as ended:
        main(["timeline", str(tmp_path / "t.log"), "--interval", said, "-o", str(tmp_path / "x.json")])
    assert not ended.value.code and json.loads((tmp_path / "x.json").read_text())["total_j"] == pytest.approx(total_j)
    capsys.readouterr()


@pytest.mark.parametrize("said", ["0", "-1s", "fast", "1 day", "48h"])
def test_an_interval_is_a_time(said, tmp_path, capsys):
    (tmp_path / "t.log").write_text(TEGRA.format(10000, 0) * 12)
    with pytest.raises(SystemExit) as ended:
        main(["timeline", str(tmp_path / "t.log"), f"--interval={said}"])
    assert ended.value.code and "--interval" in capsys.readouterr().err


def test_nvidia_smi_without_stamps_has_a_row_an_interval(tmp_path):
    """Rows of half a second: (61 + 250 + 251 + 60) W x 0.5 s. Whose they are is not told."""
    rows = "".join(f"{watts} W, 50 %\n" for watts in (61, 250, 251, 60))
    log = f"power.draw [W], utilization.gpu [%]\n{rows}"
    with pytest.raises(EprofError, match=ASKS):
        read(tmp_path, log)
    seen, _, notes = read(tmp_path, log, 0.5)
    assert list(seen.values()) == [pytest.approx(311)] and "nothing tells whose each row is" in notes


@pytest.mark.parametrize("margin", ["> ", "// ", "[1,0]<stdout>:", "[RANK:3] ", "0: "])
def test_what_stands_before_each_line_is_left_out(margin, tmp_path):
    """100 W at 0, 1 and 2 s, the last of which holds as long as the others."""
    lines = ["time_s,power_w", "0,100", "1,100", "2,100"]
    seen, _, notes = read(tmp_path, "".join(f"{margin}{line}\n" for line in lines))
    assert list(seen.values()) == [pytest.approx(300)]
    assert f"begin with {margin.strip()}, which was left out" in notes


def test_lines_of_several_ranks_keep_what_stands_before_them(tmp_path):
    lines = ["time_s,power_w", "0,100", "1,100", "2,100"]
    with pytest.raises(EprofError):
        read(tmp_path, "".join(f"[{rank}] {line}\n" for line in lines for rank in (0, 1)))


@pytest.mark.parametrize(
    ("answer", "cell"), [(None, ""), (5, "5.000000"), (OSError(), ""), (ValueError(), ""), (RuntimeError(), "")]
)
def test_a_sensor_that_gives_no_answer_leaves_its_cell_empty(answer, cell):
    def read():
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert sensors._cell(Component("gpu0", "W", read)) == cell


def test_a_table_of_watts_within_a_long_report_is_no_power_log(tmp_path):
    """As CrayPat writes it: energy, power and time of the program, among hundreds of lines."""
    from eprof.lab.power.logs import what_it_is

    table = "time_s,power_w\n1.0,100\n2.0,110\n3.0,105\n"
    log, report = tmp_path / "power.csv", tmp_path / "program.rpt"
    log.write_text("# node7\n" + table)
    report.write_text("Profile by function\n" * 200 + table)
    assert what_it_is(str(log)).startswith("power over time")
    assert what_it_is(str(report)) is None


def test_a_log_without_marks_tells_its_base_power_and_when_it_worked(capsys):
    """A PyTorch program on an RTX 4090's log: loading, 2.6 s of work, the end; by hand from its 65 rows."""
    log = METERS.parent / "traces" / "power" / "flame-torch-ex-smi.csv"
    if not log.is_file():
        pytest.skip("the shared data is not here")
    with pytest.raises(SystemExit):
        main(["timeline", str(log), "--format", "json"])
    (gpu,) = json.loads(capsys.readouterr().out)["components"]
    rows = [line.split(",")[1] for line in log.read_text().splitlines()[1:] if "W" in line]
    watts = sorted(float(cell.split()[0]) for cell in rows)
    assert len(gpu["bursts"]) == 1 and watts[0] < gpu["base_w"] < watts[len(watts) // 2] < gpu["mean_w"]
    (burst,) = gpu["bursts"]
    seconds = burst["end_s"] - burst["begin_s"]
    assert burst["energy_j"] > 2 * gpu["base_w"] * seconds and burst["energy_j"] < gpu["energy_j"]
    with pytest.raises(SystemExit):
        main(["timeline", str(log)])
    said = " ".join(capsys.readouterr().out.split())
    assert "base power, 22.5 W, takes 45 % of it and 178 J are above. One burst, from 2.81 s to 5.42 s: 212 J" in said
    assert "not seen" not in said


@pytest.mark.parametrize(
    ("names", "says"),
    [
        # Eight GPUs of 72.6 to 74.3 W, some of whose last rows the log lacks.
        (
            ["nvidia-smi/gpu_glasses.csv"],
            ["587 W on average", "Lost The power of gpu 3, gpu 4 and 3 more is not known"],
        ),
        (["nvidia-smi/migsec-power_data.csv"], ["migsec-power_data.csv · power over 12.0 s 960 J in 12.0 s: 80.0 W"]),
        (["nvidia-smi/gpu_glasses.csv"], ["At least 3.96 kJ in 8.00 s: 587 W on average while it is known."]),
        (["powerjoular/afonso-exp.csv"], ["base power, 16.4 W, takes 94 %"]),  # its floor is 16.1 to 16.5 W
        (
            [
                "ipmi/milan0-ipmi-inband.txt",
                "meter-csv/milan0-yokogawa-acpower.csv",
                "turbostat/milan0.turbostat.txt.gz",
            ],
            ["At least 20.8 kJ in 122 s: 173 W on average. In parts: 64 % in PkgWatt"],  # IPMI saw the whole again
        ),
    ],
)
def test_what_meters_saw_is_told_by_what_each_saw_while_it_did(names, says, capsys):
    if not METERS.is_dir():
        pytest.skip("the shared data is not here")
    with pytest.raises(SystemExit):
        main(["timeline", *(str(METERS / name) for name in names)])
    said = " ".join(capsys.readouterr().out.split())
    assert [text for text in says if text not in said] == []


TABLE_OF_RUNS = "benchmark,time,average_power,core_frequency\n" + rows(
    "fft,{},{},900\n", [3, 1, 2, 5, 4, 6, 2, 1], range(50, 58)
)


def test_a_table_of_runs_is_no_power_over_time(tmp_path):
    """Its times are durations: in no order, and each of its own run."""
    with pytest.raises(EprofError, match="times go back in 4 of 8 rows.*`eprof tune` reads it"):
        read(tmp_path, TABLE_OF_RUNS)
    (tmp_path / "runs.csv").write_text(TABLE_OF_RUNS)
    assert power.what_it_is(str(tmp_path / "runs.csv")) is None
    (tmp_path / "runs.csv").write_text("program,size,processes,core_mhz,time_s,energy_j\nft,1,1,2800,9,1800\n" * 2)
    assert "`eprof scale" in power.what_it_is(str(tmp_path / "runs.csv"))
    newest_first = "time_s,power_w\n" + rows("{},{}\n", range(9, -1, -1), range(10))
    (tmp_path / "runs.csv").write_text(newest_first)
    assert "`eprof timeline" in power.what_it_is(str(tmp_path / "runs.csv"))


@pytest.mark.parametrize("cell", ["{} %", "{}"])
def test_nvidia_smi_tells_for_how_long_anything_ran(cell, tmp_path, capsys):
    """Half of 20 s at 50 %; a cell that is not known, or a last line cut behind its power, takes nothing from the power."""
    head = "timestamp, power.draw [W], utilization.gpu [%]\n"
    body = [f"2024/01/01 00:00:{s:02d}.000, 100.00 W, {cell.format(50 * (s < 10))}\n" for s in range(20)]
    (tmp_path / "smi.csv").write_text(head + "".join(body))
    (series,), (busy,) = power.sampled(str(tmp_path / "smi.csv"), [])
    assert (busy.watts.sum(), series.energy_j(series.edges[:1], series.edges[-1:]).sum()) == (5.0, 2000.0)
    with pytest.raises(SystemExit):
        main(["timeline", str(tmp_path / "smi.csv")])
    out = " ".join(capsys.readouterr().out.split())
    assert "gpu was busy for 5.00 s of 20.0 s." in out and "--costs" not in out
    body[3] = "2024/01/01 00:00:03.000, 100.00 W, [N/A]\n"
    body[-1] = "2024/01/01 00:00:19.000, 100.00 W"
    (tmp_path / "smi.csv").write_text(head + "".join(body) + "\n")
    (cut,), _ = power.sampled(str(tmp_path / "smi.csv"), [])
    assert len(cut.watts) == len(series.watts) and not cut.unknown_s


def test_no_gpu_is_busy_for_longer_than_its_power_is_known(tmp_path, capsys):
    """A sample of each of two GPUs at 0 s; the next at 3 s and 2 s: busy for 3 s and 2 s, not for 6 s and 4 s."""
    head = 'LOG = """timestamp, index, uuid, utilization.gpu [%], power.draw [W]\n'
    body = "".join(
        f"2024/01/01 00:00:{second:02d}.000, {gpu}, GPU-{gpu}, 100 %, 50.00 W\n"
        for second, gpu in ((0, 0), (0, 1), (2, 1), (3, 0))
    )
    (tmp_path / "smi.py").write_text(head + body + '"""\n')
    with pytest.raises(SystemExit):
        main(["timeline", str(tmp_path / "smi.py")])
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("smi.py · gpu 0, gpu 1 over")
    assert "2 GPUs were busy for at least 2.50 s of 3.00 s on average" in said


def test_a_long_log_of_nvidia_smi_has_the_same_busy_time(tmp_path):
    head = "timestamp, power.draw [W], utilization.gpu [%]\n"
    rows_ = [
        f"2024/01/01 {s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}.000, 100.00 W, {s % 101} %\n"
        for s in range(40_000)
    ]
    (tmp_path / "smi.csv").write_text(head + "".join(rows_))
    assert (tmp_path / "smi.csv").stat().st_size > 1 << 20
    (_,), (busy,) = power.sampled(str(tmp_path / "smi.csv"), [])
    assert busy.watts @ (busy.edges[1:] - busy.edges[:-1]) == pytest.approx(
        sum(s % 101 for s in range(40_000)) / 100, rel=1e-3
    )


def test_rows_that_tell_power_apart_or_not_do_so_without_their_busy_time(tmp_path):
    """Rows of one moment with the same power count once, whatever else differs in them."""
    stamp_ = "2024/01/01 00:00:0{}.000, 100.00 W, {} %\n"
    text = "timestamp, power.draw [W], utilization.gpu [%]\n" + "".join(
        stamp_.format(s, 30 * i) for s in range(9) for i in (1, 2)
    )
    (tmp_path / "smi.csv").write_text(text)
    without = text.replace(", utilization.gpu [%]", ", x")
    (tmp_path / "x.csv").write_text(without)
    watts = [power.read(str(tmp_path / name), [])[0].watts.tolist() for name in ("smi.csv", "x.csv")]
    assert watts[0] == watts[1]


def test_the_scale_of_power_stands_beside_its_chart_and_the_headline_is_not_repeated(tmp_path):
    log = tmp_path / "power.csv"
    log.write_text("time_s,power_w\n" + "".join(f"{second},{20 + second % 2}\n" for second in range(8)))
    with pytest.raises(SystemExit) as ended:
        main(["timeline", str(log), "-q", "-o", str(tmp_path / "t.html")])
    page = (tmp_path / "t.html").read_text()
    scale = page.split('<svg class="scale"')[1].split("</svg>")[0]
    chart = page.split('aria-label="power of')[1].split('<span class="full"')[0]
    assert not ended.value.code and "W</text>" in scale and "<text" not in chart
    assert '<dl class="figures">' not in page
