"""Power over time: logs of meters, what ran when, joules of both."""
