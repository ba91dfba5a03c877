"""What every room may use: errors, marks, the vocabulary, safe text, TOML with line numbers, the folders of data."""

__version__ = "0.1.0"  # which every document names
