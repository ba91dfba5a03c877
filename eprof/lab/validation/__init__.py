"""How good a model of power is: protocols, baselines, scores."""
