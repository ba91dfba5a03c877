"""What every room may use: errors, marks, the vocabulary, safe text, TOML with line numbers, the folders of data."""
