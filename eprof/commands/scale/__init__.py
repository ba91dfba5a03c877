"""Programs on clusters: which node count and clock, how a problem must grow, why efficiency falls (docs/scale.md)."""
