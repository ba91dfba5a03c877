"""How far to trust a cost table or a fit: protocols that leak nothing, scores, baselines (docs/validate.md)."""
