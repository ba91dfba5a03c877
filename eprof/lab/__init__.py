"""What commands share and a report does without: measured rows, fits, scores, power over time."""
