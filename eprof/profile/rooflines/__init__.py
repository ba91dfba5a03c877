"""Rooflines in time, energy and power: what a GPU can do at best, and how far kernels are from it (docs/model.md)."""
