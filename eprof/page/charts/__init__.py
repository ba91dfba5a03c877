"""Charts of single pages: a difference, rooflines, clocks, a validation. Here numbers are placed, not computed."""
