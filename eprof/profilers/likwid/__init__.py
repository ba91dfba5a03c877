"""LIKWID: how the tables of likwid-perfctr are recognised and read."""
