"""Clusters of nodes: what `eprof scale`, `eprof comm` and simulated runs share."""
