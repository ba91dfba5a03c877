"""What the pages of differences, tunings and validations show: numbers arrive computed, here they are placed."""
