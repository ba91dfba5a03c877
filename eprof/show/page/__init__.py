"""What every page is made of: its shell and frame, charts, and what draws blocks."""
