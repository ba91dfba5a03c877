"""Calibration: microbenchmarks of known counts on this GPU, their power, and a cost table fitted to them.

The folder `calibration/` has the kernels in CUDA C and `benchmarks.toml`, which says what each launch does. The GPU
itself is driven by `eprof.collect.cuda.worker`, a process of its own; here are plans, checks and results.
"""
