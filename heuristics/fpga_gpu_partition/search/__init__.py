"""Kernels, moves and pools that several heuristics use."""
