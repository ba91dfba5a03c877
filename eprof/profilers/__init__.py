"""The profilers, a folder each, which holds all that knows it. `collector.py` of a folder ends in `COLLECTOR`."""
