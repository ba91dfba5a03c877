"""Nsight Systems, `nsys`: how it is started for the times of a run, and how its tables and databases are read."""
