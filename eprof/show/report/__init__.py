"""A report in words: its first screen, its headline, its tables. From `eprof.profile/1`."""
