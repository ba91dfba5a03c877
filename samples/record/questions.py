"""What nobody has written down about Nsight Compute's counters, and the kernels of questions.cu that answer it.

Marked [U] (uncertain) in eprof's notes on counters. `KNOWN` is what each kernel does, by its source; an analysis compares
it with what ncu counted. Nothing here needs a GPU.
"""

GROUPS, THREADS, TIMES = 64, 128, 256
_ALL = GROUPS * THREADS
_WARPS = _ALL // 32

KNOWN = {
    "packed_half_fma": {"instructions_hfma2": _ALL * TIMES, "multiply_adds": 2 * _ALL * TIMES},
    "scalar_half_fma": {"multiply_adds": _ALL * TIMES},
    "single_fma": {"multiply_adds": _ALL * TIMES},
    "double_fma": {"multiply_adds": _ALL * TIMES},
    "reciprocal_root": {"special_functions": _ALL * TIMES},
    "tensor_half_to_single": {"products_16x16x16": _WARPS * TIMES, "multiply_adds": _WARPS * TIMES * 4096},
    "shared_broadcast": {"warp_loads": _WARPS * TIMES, "requested_bytes": 4 * _ALL * TIMES},
    "shared_conflicts": {"warp_loads": _WARPS * TIMES, "requested_bytes": 4 * _ALL * TIMES, "conflict_ways": 32},
    "copy": {"loaded_bytes": 4 * _ALL, "stored_bytes": 4 * _ALL},
}

ASKED = {
    "packed half": "Does ...op_hfma_pred_on count HFMA2 once or twice? packed_half_fma against scalar_half_fma.",
    "fp16 metric": "Is ...op_fp16_pred_on in instructions or in operations? The same two kernels.",
    "tensor operations": "Does sm__ops_path_tensor_* count a multiply-add as 1 or 2? tensor_half_to_single.",
    "tensor instructions": "How many sm__inst_executed_pipe_tensor* is one 16x16x16 product? tensor_half_to_single.",
    "shared requested": "Is smsp__sass_data_bytes_mem_shared per lane, also for a broadcast? shared_broadcast.",
    "shared occupied": "Wavefronts of a broadcast and of a 32-way conflict: shared_broadcast, shared_conflicts.",
    "special functions": "Does pipe_xu minus conversions count MUFU exactly? reciprocal_root.",
    "unknown metric": "What does ncu print and return for a metric that does not exist? Step ncu-unknown-metric.",
    "no kernel": "What does ncu return for a program without kernels? Step ncu-no-kernel.",
    "passes": "How many passes do eprof's metrics take? `passes` in the logs of the ncu steps.",
}

_SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
METRICS = (
    *(_SASS.format(kind) for kind in ("hfma", "hadd", "hmul", "ffma", "fadd", "dfma", "fp16", "fp32", "fp64")),
    *(
        _SASS.format(kind)
        for kind in ("integer", "conversion", "memory", "control", "misc", "inter_thread_communication")
    ),
    "smsp__sass_thread_inst_executed_pred_on.sum",
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_pipe_xu_pred_on.sum",
    "smsp__inst_executed_pipe_xu.sum",
    "sm__inst_executed_pipe_tensor.sum",
    "smsp__sass_data_bytes_mem_shared_op_ld.sum",
    "smsp__sass_data_bytes_mem_global_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "lts__t_sectors_op_read.sum",
    "gpu__time_duration.sum",
)
OPCODES = ("sass__thread_inst_executed_true_per_opcode", "sass__inst_executed_per_opcode")
TENSOR = "regex:sm__ops_path_tensor.*sum$"
