"""The GPU that a program's own output names, for logs whose tables do not."""

import re

import pytest
from msgspec.structs import replace

from eprof.base.gpus import Traits, alike, beginning, example, limit_told_in, sheets_with, told_in


@pytest.mark.parametrize(
    ("output", "gpu"),
    [
        (b"Detected GPU: NVIDIA A100-PCIE-40GB (SM 8.0)\n", "NVIDIA A100-PCIE-40GB"),
        (b"device: 0, GPU Compute Capability: 8.6, Driver API\n", "ncu device 0 (CC 8.6)"),
        (b"Compute Capability: 8.6\nCompute Capability: 7.5\n", None),
        (b"device: NVIDIA GeForce RTX 5070 (sm_120), 48 SMs\n", "NVIDIA GeForce RTX 5070"),
        (b'> Using CUDA Device [0]: Tesla K40c\nDevice name = "Tesla K40c"\n', "Tesla K40c"),
        (b"GPU: NVIDIA GeForce RTX 4090 with 24 GB\n", "NVIDIA GeForce RTX 4090"),
        (b"GPU 0: NVIDIA H100 PCIe\nGPU 1: Tesla V100-SXM2-16GB\n", None),
        (b"vendor: NVIDIA Corporation\n", None),
        (b"1.5us  Tesla V100-SXM2  1  7  kernel\n", None),
        (b"void kernel: A100 sm80_xmma\n", None),
        (b"GPU: NVIDIA GeForce RTX 9999\n", None),
    ],
)
def test_a_name_behind_a_colon_that_is_a_known_gpu_is_told(output, gpu):
    assert told_in(output) == gpu


def test_a_log_of_ncu_has_the_name_that_the_program_printed(tmp_path):
    import eprof

    table = (
        '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","k(int)","0","{cc}","GPU Speed Of Light","Duration","us","100"\n'
    )
    names = {}
    for cc in ("8.0", "8.6"):
        path = tmp_path / f"{cc}.csv"
        path.write_text("Detected GPU: NVIDIA A100-PCIE-40GB\n" + table.format(cc=cc))
        names[cc] = eprof.load(path).counted[0].device.name
    assert names == {"8.0": "NVIDIA A100-PCIE-40GB", "8.6": "ncu device 0 (CC 8.6)"}, "another capability, another GPU"


@pytest.mark.parametrize(
    ("start", "gpus"),
    [
        ("Tesla P100-PCIE", ["Tesla P100-PCIE"]),  # of 12 or 16 GB
        ("tesla k20x", ["Tesla K20X", "Tesla K20Xm"]),
        ("Quadro RTX 500", ["Quadro RTX 5000"]),
        ("GeForce GTX 98", [*(f"GeForce GTX 980{more}" for more in ("", " Ti", "M", "MX"))]),
        ("", []),
    ],
)
def test_a_name_that_was_cut_off_is_of_those_that_begin_so(start, gpus):
    assert beginning(start) == gpus


@pytest.mark.parametrize(
    ("start", "gpu"),
    [
        ("GeForce GTX 106", "GeForce GTX 1060"),  # of 3, 5 or 6 GB: one board but for that
        ("GeForce GTX 108", "GeForce GTX 108… (CC 6.1)"),  # with Ti, or without
        ("Quadro RTX 500", "Quadro RTX 5000"),
        ("GeForce GT 64", None),
    ],
)
def test_forms_of_one_gpu_are_that_gpu(start, gpu):
    assert alike(beginning(start), start) == gpu


def test_a_trace_as_text_is_of_the_gpu_whose_name_it_cuts_off(tmp_path):
    import eprof

    log = tmp_path / "trace.txt"
    log.write_text(
        "   Start  Duration   Grid Size  Block Size           Device   Context    Stream  Name\n"
        "351.49ms  1.5863ms   (512 1 1)    (16 1 1)  Tesla P100-PCIE         1         7  k(float*) [120]\n"
    )
    profile = eprof.load(log)
    assert [part.device.name for part in profile.counted] == ["Tesla P100-PCIE"]
    assert profile.energy().costs.name == "p100"
    log.write_text(log.read_text().replace("Tesla P100-PCIE", "GeForce GTX 108"))
    several = eprof.load(log)
    assert [part.device.name for part in several.counted] == ["GeForce GTX 108… (CC 6.1)"]
    assert any(
        "it may be GeForce GTX 1080, GeForce GTX 1080 Ti: say which" in note for note in several.energy().warnings
    )


@pytest.mark.parametrize(
    ("other", "times"),
    [
        ("GeForce GT 650M", {"Quadro T2000": 1e-3, "GeForce GT 650M": 5e-3}),
        ("Quadro T200    ", {"Quadro T2000": 6e-3}),  # cut shorter: it may be the same one
        ("Quadro T2000   ", {"Quadro T2000": 6e-3}),
    ],
)
def test_names_that_are_cut_off_unlike_are_of_two_gpus(tmp_path, other, times):
    """Three runs of a kernel: 1 ms on a Quadro T2000, whose number is cut, 2 and 3 ms on the other GPU."""
    import eprof

    text = ""
    for number, (device, milliseconds) in enumerate((("Quadro T2000 (0", 1), (other, 2), (other, 3))):
        text += (
            f"==10{number}== NVPROF is profiling process 10{number}, command: ./a\n==10{number}== Profiling result:\n"
        )
        text += "   Start  Duration   Grid Size  Block Size           Device   Context    Stream  Name\n"
        text += (
            f"351.49ms  {milliseconds}.0000ms   (512 1 1)    (16 1 1)  {device}         1         7  k(int) [120]\n\n"
        )
    (tmp_path / "trace.txt").write_text(text)
    profile = eprof.load(tmp_path / "trace.txt")
    told = {part.device.name: part.launches.rows.time_s.sum() for part in profile.counted}
    assert told == {name: pytest.approx(time_s) for name, time_s in times.items()}


def test_a_name_that_was_cut_off_leaves_the_boards_that_begin_so(eprof_here, tmp_path):
    """Of a GTX 1050 or 1050 Ti, 75 W each (or 1.25 times that), and no mean of all 32 boards with their chips."""
    header = "   Start  Duration   Grid Size  Block Size           Device   Context    Stream  Name"
    row = "351.49ms  158.63ms   (512 1 1)    (16 1 1)  GeForce GTX 105         1         7  k(float*) [120]"
    (tmp_path / "trace.txt").write_text(f"{header}\n{row}\n")
    said = " ".join(eprof_here("report", "trace.txt").stdout.split())
    assert "GeForce GTX 105… (CC 6.1)" in said and "the board may draw 93.8 W" in said
    assert "the mean of 2 boards of compute capability 6.1 with a name that begins with GeForce GTX 105," in said
    own = eprof_here("report", "trace.txt", "--costs", "GTX 1050 Ti").stdout
    assert own.startswith("trace.txt · GeForce GTX 1050 Ti")


@pytest.mark.parametrize(
    ("lowest", "highest", "gpu"), [(2.0, 12.1, "RTX 4090"), (2.0, 7.2, "Tesla V100"), (3.5, 3.5, "GTX 780")]
)
def test_the_gpu_of_an_example_is_one_that_the_log_may_be_of(lowest, highest, gpu):
    assert example(lowest, highest) == gpu


def test_a_name_beside_the_tables_is_told_without_its_number(tmp_path):
    import eprof

    log = tmp_path / "summary.csv"
    log.write_text(
        'Device "Tesla V100-SXM2-16GB (0)"\n==1== Profiling result:\n'
        '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,ms,ms,ms,\n'
        '"GPU activities",100.0,7.0,1,7.0,7.0,7.0,"k(int)"\n'
    )
    told = [note for note in eprof.load(log).energy().warnings if "no table" in note]
    assert told == ["no table has the GPU's whole name; by what the logs tell it is Tesla V100-SXM2-16GB"]


def test_an_estimate_for_no_named_gpu_says_of_how_many_boards_it_is_the_mean(tmp_path):
    import eprof
    from eprof.commands.report.trust import trust
    from eprof.commands.report.view import View
    from eprof.profile.document import document

    log = tmp_path / "ncu.csv"
    log.write_text(
        '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","k","0","12.0","Command line profiler metrics","gpu__time_duration.sum","ns","1000000"\n'
    )
    said = trust(View(document(eprof.load(log).energy("estimated")))).text
    assert re.search(r"Prices: the mean of \d+ boards of compute capability 12\.0, from their data sheets", said)


def test_a_kernel_without_any_instruction_counted_shows_no_zero(eprof_here, tmp_path):
    (tmp_path / "zeros.csv").write_text(
        '==1== Profiling result:\n"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
        '"Tesla K20c (0)","k(int)",1,"inst_fp_64","FP64",0,0,0\n'
    )
    shown = eprof_here("report", "zeros.csv", "--costs", "none").stdout.splitlines()
    assert ["k", "unknown"] in [line.split() for line in shown]


FIRST_PAGE = b"""
| N/A   34C    P0              %bW / %bW |   1234MiB / 16384MiB |     97%%      Default |
|  0%%   41C    P8    N/A / %bW |
"""
QUERIED = b"name, power.draw [W], enforced.power.limit [W]\nTesla V100-SXM2-16GB, 97.31 W, %b W\nTesla V100-SXM2-16GB, 24.30 W, %b W\n"
FULL = b"    Power Readings\n        Power Draw                  : 67.31 W\n        Current Power Limit         : %b W\n        Default Power Limit         : 300.00 W\n"


@pytest.mark.parametrize(
    ("output", "watts"),
    [
        (FULL % b"160.00", 160),
        (b"        Power Limit                 : 160 W\n        Enforced Power Limit : 160.00 W\n", 160),
        (FIRST_PAGE % (b"42", b"250", b"250"), 250),
        (FIRST_PAGE % (b"42", b"250", b"300"), None),
        (QUERIED % (b"150.00", b"150.00"), 150),
        (QUERIED % (b"150.00", b"300.00"), None),
        (b"power.limit [W]\n[N/A]\n", None),
        (b"Max power limit: 300 W, 42 W / 43 W\n" + b"9" * 4000, None),
        (b"", None),
    ],
)
def test_the_power_limit_that_nvidia_smi_prints(output, watts):
    assert limit_told_in(output) == watts


NAMELESS = {
    "nvprof": (
        '==1== Profiling result:\n"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,ms,ms,ms,\n'
        '"GPU activities",100.0,7.0,1,7.0,7.0,7.0,"k(int)"\n'
    ),
    "ncu": (
        '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","k(int)","0","8.9","GPU Speed Of Light","Duration","ms","7"\n'
    ),
    "kineto": (
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 7, "ts": 1.0, '
        '"dur": 7000.0, "args": {"device": 1, "stream": 7, "grid": [1, 1, 1], "block": [32, 1, 1]}}]}'
    ),
}


@pytest.mark.parametrize(
    ("log", "gpu", "name", "limit_w"),
    [
        ("nvprof", "Tesla V100", "Tesla V100", 300),
        ("nvprof", "titan xp", "TITAN Xp", 250 * 1.25),
        ("nvprof", "a100", None, None),  # nvprof knows no such GPU: prices of another
        ("nvprof", "sapphirerapids", None, None),  # no GPU
        ("nvprof", "none", None, None),
        ("ncu", "L4", "L4", 72),
        ("ncu", "a100", "ncu device 0 (CC 8.9)", None),  # of another capability
        ("kineto", "mi300a", "AMD Instinct MI300A", 760),
        ("kineto", "MI300X", "AMD Instinct MI300X", 750),
        ("kineto", "h100", "H100", 700),
    ],
)
def test_who_names_the_prices_of_a_gpu_names_the_gpu_of_logs_that_do_not(tmp_path, log, gpu, name, limit_w):
    """Its limit bounds the energy, and its profiler is advised; where the log can be of such a GPU."""
    import eprof
    from eprof.profile.priced_profile import board_limit_w

    path = tmp_path / "log.json"
    path.write_text(NAMELESS[log])
    profile = eprof.load(path, gpu=gpu, cache=False)
    (device,) = (part.device for part in profile.counted)
    assert device.name == name
    if limit_w is not None:
        energy = profile.energy(gpu)
        assert board_limit_w(energy, device) == limit_w and energy.profile.is_served_by(energy.table)
        assert not [note for note in energy.warnings if "is taken to be" in note], "the user knows"


def test_the_peak_of_dram_and_multiprocessors_tell_the_board():
    """Utilisation and bytes tell the peak: an L4 has 300 GB/s, laptops with as many multiprocessors have more."""
    of_58 = {sheet.name for sheet in sheets_with("8.9", Traits(58))}
    assert {"L4", "GeForce RTX 4080 Laptop GPU"} <= of_58
    assert [sheet.name for sheet in sheets_with("8.9", Traits(58, 299.8))] == ["L4"]
    assert {sheet.name for sheet in sheets_with("8.9", Traits(58, 120.0))} == of_58, "of none of them: no trait"
    assert {sheet.peaks["dram_gb_per_s"] for sheet in sheets_with("12.0", Traits(None, 441.2))} == {448}
    # 24.00 GB/s were 3.29 % of it: more than the 695.8 GB/s that an A40 has, 5 % less than an RTX A6000's 768.
    assert [sheet.name for sheet in sheets_with("8.6", Traits(84, 24.00 / 0.0329))] == ["RTX A6000"]


@pytest.mark.parametrize(
    ("capability", "told", "names"),
    [
        # The base clocks of the three RTX PRO 6000 are 1590, 1035 and 1590 MHz; a public log of a Max-Q told 1.01 GHz.
        ("12.0", Traits(188, base_mhz=1010), ["RTX PRO 6000 Blackwell Max-Q Workstation Edition"]),
        ("8.6", Traits(84, base_mhz=1300), ["A40"]),
        ("8.6", Traits(84, base_mhz=1410), ["RTX A6000"]),
    ],
)
def test_the_base_clock_to_which_ncu_locks_cores_tells_the_board(capability, told, names):
    assert [sheet.name for sheet in sheets_with(capability, told)] == names
    free = replace(told, base_mhz=2550.0)  # of none of them: the clock was not locked
    assert len(sheets_with(capability, free)) > 1


def test_a_log_tells_the_peak_of_its_boards_dram(tmp_path):
    import eprof

    path = tmp_path / "ncu.csv"
    metrics = {
        "Duration": ("ms", 10),
        "dram__bytes.sum": ("Gbyte", 1.5),
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", 50),
        "launch__sm_count": ("", 58),
    }
    rows = [
        f'"0","k(int)","0","8.9","Command line profiler metrics","{name}","{unit}","{number}"\n'
        for name, (unit, number) in metrics.items()
    ]
    path.write_text(NAMELESS["ncu"].splitlines(keepends=True)[0] + "".join(rows))
    (counted,) = eprof.load(path, cache=False).counted
    assert counted.device.told == Traits(58, pytest.approx(300.0))
    assert eprof.load(path, cache=False).energy().costs.peaks.power_limit_w == 72


def test_a_name_that_the_log_rules_out_is_not_its_gpu(tmp_path):
    """132 multiprocessors and 3.35 TB/s are an H100: an H200's prices stay another GPU's, and are marked so."""
    import eprof

    path = tmp_path / "ncu.csv"
    header = NAMELESS["ncu"].splitlines(keepends=True)[0]
    metrics = {
        "Duration": ("ms", 10),
        "dram__bytes.sum": ("Gbyte", 16.75),
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", 50),
        "launch__sm_count": ("", 132),
    }
    path.write_text(
        header
        + "".join(
            f'"0","k(int)","0","9.0","Command line profiler metrics","{name}","{unit}","{number}"\n'
            for name, (unit, number) in metrics.items()
        )
    )
    named = {gpu: eprof.load(path, gpu=gpu, cache=False).counted[0].device.name for gpu in ("h200", "H100 SXM5")}
    assert named["h200"] == "ncu device 0 (CC 9.0)", named
    assert named["H100 SXM5"] == "H100 SXM5"
