"""What heuristics and exact methods of multi-model splitting share; the specification itself does not use it."""
