"""Instances as arrays: what heuristics and exact methods read. The evaluator does not."""
