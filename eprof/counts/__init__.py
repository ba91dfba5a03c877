"""What counters mean: launches with counters become instructions by class, bytes by level, and time."""
