"""Heuristics of multi-model splitting: Synergy, its ablations and the seven baselines of its paper."""
