"""Oclgrind: how it is started, and how its counts are read."""
