"""The version of eprof, which every document names."""

__version__ = "0.1.0"
