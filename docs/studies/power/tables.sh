#!/bin/sh
# Makes the cost tables of costs/ that are fitted to public measurements, in the present directory:
#   sh docs/studies/power/tables.sh DATA        (DATA: the folder with nvdvfs_counts_*.csv; docs/studies/power/README.md)
set -eu
data=$1
source='NV-DVFS-Benchmark, csvs/raw at commit 56df884 (https://github.com/blackjack2015/NV-DVFS-Benchmark): nvprof counts, time and power of 30 kernels; Q. Wang, X. Chu, ICPADS 2018. Fitted by eprof'

eprof fit "$data/nvdvfs_counts_gtx980_low.csv" "$data/nvdvfs_counts_gtx980_high.csv" -o gtx980.toml -f -q --loss l2 \
    --title 'NVIDIA GeForce GTX 980 (Maxwell GM204, compute capability 5.2)' --device 'GeForce GTX 980' \
    --default 1100/3600 --source "$source" --year 2018 \
    --peak sp_flop_per_core_cycle=4096 --peak dp_flop_per_core_cycle=128 --peak dram_byte_per_memory_cycle=64

eprof fit "$data/nvdvfs_counts_gtx1080ti.csv" -o gtx1080ti.toml -f -q --loss l2 \
    --title 'NVIDIA GeForce GTX 1080 Ti (Pascal GP102, compute capability 6.1)' --device 'GeForce GTX 1080 Ti' \
    --default 1600/5500 --source "$source" --year 2018 \
    --peak sp_flop_per_core_cycle=7168 --peak dp_flop_per_core_cycle=224 --peak dram_byte_per_memory_cycle=88

eprof fit "$data/nvdvfs_counts_v100.csv" -o v100.toml -f -q --loss l2 \
    --title 'NVIDIA Tesla V100 (Volta GV100, compute capability 7.0)' \
    --device 'Tesla V100' --device 'Tesla V100-PCIE-16GB' --device 'Tesla V100-PCIE-32GB' \
    --default 1380/877 --source "$source" --year 2018 \
    --note 'v100 was measured on a V100 with 1380 MHz at most (the PCIe board); other V100 boards may draw other power.' \
    --peak sp_flop_per_core_cycle=10240 --peak dp_flop_per_core_cycle=5120 --peak dram_byte_per_memory_cycle=1024

# SXM2 boards run up to 1530 MHz: with these volts 33 programs on one draw what they did (published.py judges them by another's).
cat >>v100.toml <<'BOARD'

[[board]]
devices = ["Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"]
setting = [               # from watts of 33 programs on a V100 of 300 W (zyjopensource/GPU-DVFS-Dataset at b25725f), median
    { core_mhz = 1462, core_v_rel = 1.0397, memory_mhz = 877, memory_v_rel = 1.0 },
    { core_mhz = 1530, core_v_rel = 1.0691, memory_mhz = 877, memory_v_rel = 1.0 },
]
why = "the same chip; it runs up to 1530 MHz"
BOARD

eprof fit "$data/nvdvfs_counts_p100.csv" -o p100.toml -f -q --loss l2 \
    --title 'NVIDIA Tesla P100 (Pascal GP100, compute capability 6.0)' \
    --device 'Tesla P100' --device 'Tesla P100-PCIE' --device 'Tesla P100-PCIE-12GB' --device 'Tesla P100-PCIE-16GB' --device 'Tesla P100-SXM2-16GB' \
    --default 1328/715 --source "$source" --year 2018 \
    --note 'p100 was measured on a P100 with 1328 MHz at most (the PCIe board); other P100 boards may draw other power.' \
    --peak sp_flop_per_core_cycle=7168 --peak dp_flop_per_core_cycle=3584 --peak dram_byte_per_memory_cycle=1024
