"""NVML's GPM: how busy a GPU's units are, sampled while the program runs alone (Hopper and later)."""
