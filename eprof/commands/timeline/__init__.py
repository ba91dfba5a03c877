"""Joules over time: power of components beside what a program did, by function (docs/timeline.md)."""
