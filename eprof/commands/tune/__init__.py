"""Which DVFS setting a kernel should run at, and what choosing wrongly costs (docs/tune.md)."""
