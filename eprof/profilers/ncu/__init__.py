"""Nsight Compute, `ncu`: how it is started, and how its tables, pages and reports are read."""
