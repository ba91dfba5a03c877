"""Callgrind and cachegrind: how a CPU program is run under them, and how their profiles are decoded and read."""
