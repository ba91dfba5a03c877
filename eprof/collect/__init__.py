"""Running programs under a profiler: raw logs into a run directory. The one room that starts processes.

Only the standard library is imported here (`pynvml` late, where there is one), and of it nothing slow before the
program starts: values are named tuples, because `dataclasses` imports `inspect` (benchmarks/overhead.py).
"""
