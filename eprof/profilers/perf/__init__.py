"""perf stat of Linux: how it is started, and how its counts are read."""
