"""The profilers, one a file. Each file ends in `COLLECTOR`."""
