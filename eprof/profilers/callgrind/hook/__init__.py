"""What Python finds first, on PYTHONPATH, under callgrind."""
