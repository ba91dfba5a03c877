"""nvprof: how it is started, and how its logs, CSV, text and SQLite, are read."""
