"""Traces of the PyTorch profiler (Kineto): which operator and module launched each kernel, and when it ran."""
