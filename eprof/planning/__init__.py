"""What a profiler collects: the smallest set of counters, and a session that collects it."""
