"""Results as files: JSON, CSV, Parquet, Markdown."""
