"""No profiler: the program alone, with the machine's power meters and the marks in its output."""
