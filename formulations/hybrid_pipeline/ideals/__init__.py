"""The search over ideals of a graph of layers: the lattice, sums over its sets, and labels along it."""
