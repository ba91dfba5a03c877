"""Energy over many runs of one program: what each took, and where it changed (docs/history.md)."""
