"""CUDA without a toolkit: compiling, loading and running microbenchmarks, and holding clocks."""
