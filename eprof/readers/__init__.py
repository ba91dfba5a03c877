"""What readers of profilers' logs share: columns of CSV, cells and their units, gaps of traces, profilers' messages."""
