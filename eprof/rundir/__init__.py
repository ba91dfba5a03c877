"""The run directory: written by `collect`, read by `logs`. Neither of them owns its form."""
