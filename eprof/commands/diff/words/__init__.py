"""A difference in words: its answer, how far to trust it, what caused it, its tables. From `eprof.diff/1`."""
