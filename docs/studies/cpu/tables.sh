#!/bin/sh
# Makes the cost tables of costs/ that are fitted to public measurements of CPUs, in the present directory:
#   sh docs/studies/cpu/tables.sh DATA          (DATA: the folder with rrze-spechpc-icl-spr.csv.gz; docs/studies/cpu/README.md)
set -eu
data=$1/rrze-spechpc-icl-spr.csv.gz
source='RRZE-HPC/PMBS23-AD at commit 1e4aa08 (https://github.com/RRZE-HPC/PMBS23-AD; doi:10.5281/zenodo.8338037): counts and RAPL joules of nine SPEChpc 2021 programs by likwid-mpirun. Fitted by eprof'

eprof fit "$data" --mapping likwid --only cluster=ICL --only nodes=1 --reference 2400/3200 -o icelake-sp.toml -f -q \
    --title 'Intel Xeon Platinum 8360Y (Ice Lake SP, 36 cores)' --device 'Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz' \
    --source "$source" --year 2023 \
    --peak sp_flop_per_core_cycle=2304 --peak dp_flop_per_core_cycle=1152 --peak dram_byte_per_memory_cycle=64 --peak dram_path_byte_per_core_cycle=600 --peak power_limit_w=294
cat >> icelake-sp.toml <<'END'

[cache]                   # of a core, and the last level; for simulations of this processor (docs/cpu.md)
d1 = "49152,12,64"
ll = "33554432,16,64"
why = "Intel's manual of the microarchitecture: 48 KiB of L1 in 12 ways; 54 MiB of L3 in 12 ways, and a simulator takes 2^n sets: 32 MiB"
END

eprof fit "$data" --mapping likwid --only cluster=SPR --only nodes=1 --reference 2000/4800 -o sapphirerapids.toml -f -q \
    --title 'Intel Xeon Platinum 8470 (Sapphire Rapids, 52 cores)' --device 'Intel(R) Xeon(R) Platinum 8470' \
    --source "$source" --year 2023 \
    --peak sp_flop_per_core_cycle=3328 --peak dp_flop_per_core_cycle=1664 --peak dram_byte_per_memory_cycle=64 --peak dram_path_byte_per_core_cycle=1040 --peak power_limit_w=379
cat >> sapphirerapids.toml <<'END'

[cache]                   # of a core, and the last level; for simulations of this processor (docs/cpu.md)
d1 = "49152,12,64"
ll = "67108864,16,64"
why = "Intel's manual of the microarchitecture: 48 KiB of L1 in 12 ways; 105 MiB of L3 in 15 ways, and a simulator takes 2^n sets: 64 MiB"
END
