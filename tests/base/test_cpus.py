"""CPUs: their microarchitecture by name, by LIKWID's type, and by the numbers of /proc/cpuinfo."""

import pytest

from eprof.base import cpus
from eprof.counts.definition_files import capability_of


@pytest.mark.parametrize(
    ("name", "microarchitecture"),
    [
        ("Intel(R) Core(TM) i7 CPU         950  @ 3.07GHz", "nehalem"),
        ("Intel(R) Xeon(R) CPU           X5550  @ 2.67GHz", "nehalem"),
        ("Intel(R) Xeon(R) CPU           X5650  @ 2.67GHz", "westmere"),
        ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", "sandybridge"),
        ("Intel(R) Core(TM) i7-2600K CPU @ 3.40GHz", "sandybridge"),
        ("Intel(R) Xeon(R) CPU E5-2690 v2 @ 3.00GHz", "ivybridge"),
        ("Intel(R) Xeon(R) CPU E5-2650 v3 @ 2.30GHz", "haswell"),
        ("Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz", "broadwell"),
        ("Intel(R) Core(TM) i3-7100U CPU @ 2.40GHz", "skylake"),
        ("Intel(R) Core(TM) i5-7500 CPU @ 3.40GHz", "skylake"),
        ("Intel(R) Core(TM) i7-10700K CPU @ 3.80GHz", "skylake"),
        ("Intel(R) Core(TM) i9-7900X CPU @ 3.30GHz", "skylake-sp"),
        ("Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz", "skylake-sp"),
        ("Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", "skylake-sp"),
        ("Intel(R) Xeon(R) Platinum 8376H CPU @ 2.60GHz", "skylake-sp"),
        ("Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz", "icelake-sp"),
        ("Intel(R) Xeon(R) Platinum 8468", "sapphirerapids"),
        ("Intel(R) Xeon(R) CPU Max 9470", "sapphirerapids"),
        ("11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", "icelake"),
        ("Intel(R) Core(TM) i7-1065G7 CPU @ 1.30GHz", "icelake"),
        ("11th Gen Intel(R) Core(TM) i9-11900K @ 3.50GHz", "icelake"),
        ("12th Gen Intel(R) Core(TM) i7-12700H", "alderlake"),
        ("13th Gen Intel(R) Core(TM) i7-1365U", "alderlake"),
        ("Intel(R) Core(TM) Ultra 7 155H", "meteorlake"),
        ("AMD EPYC 7601 32-Core Processor", "zen1"),
        ("AMD Ryzen 7 2700X Eight-Core Processor", "zen1"),
        ("AMD EPYC 7702 64-Core Processor                ", "zen2"),
        ("AMD EPYC 7H12 64-Core Processor", "zen2"),
        ("AMD Ryzen 9 3900X 12-Core Processor", "zen2"),
        ("AMD EPYC 7763 64-Core Processor", "zen3"),
        ("AMD Ryzen 9 5950X 16-Core Processor", "zen3"),
        ("AMD EPYC 9654 96-Core Processor", "zen4"),
        ("AMD EPYC 9J14 96-Core Processor", "zen4"),
        ("AMD Ryzen 9 7950X 16-Core Processor", "zen4"),
        ("AMD EPYC 9755 128-Core Processor", "zen5"),
        ("AMD Ryzen 9 9950X 16-Core Processor", "zen5"),
        ("Intel Coffeelake processor", "skylake"),
        ("Intel Cascadelake SP processor", "skylake-sp"),
        ("Intel Xeon Haswell EN/EP/EX processor", "haswell"),
        ("AMD K17 (Zen+) architecture", "zen1"),
        ("AMD K19 (Zen4c) architecture", "zen4"),
        ("ARM Neoverse N1", "neoverse-n1"),
        ("Nvidia Grace", "neoverse-v2"),
        ("QEMU Virtual CPU, skylake-sp", "skylake-sp"),
    ],
)
def test_a_name_tells_the_microarchitecture(name, microarchitecture):
    assert cpus.microarchitecture(name) == microarchitecture
    assert capability_of(name) == (microarchitecture,)


@pytest.mark.parametrize(
    "name", ["Tesla K20c", "NVIDIA GeForce RTX 3080", "Quadro RTX 4000", "AMD Radeon RX 580X", "Oclgrind Simulator", ""]
)
def test_a_gpu_is_no_cpu(name):
    assert cpus.microarchitecture(name) is None


@pytest.mark.parametrize(
    ("numbers", "microarchitecture"),
    [
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Xeon\n", "sapphirerapids"),
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\nprocessor\t: 1\n", "zen4"),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n", "neoverse-n1"),
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 9999\n", None),
        ("", None),
    ],
)
def test_cpuinfo_tells_the_microarchitecture(numbers, microarchitecture):
    assert cpus.in_cpuinfo(numbers) == microarchitecture
