"""Running programs under a profiler: raw logs into a run directory. The one room that starts processes.

Only the standard library is imported here (`pynvml` late, where there is one), so that little time is added to a run.
"""
