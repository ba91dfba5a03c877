"""What is asked of a profiler: the smallest set of counters, and a session that collects it."""
