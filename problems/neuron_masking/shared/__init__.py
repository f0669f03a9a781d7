"""What heuristics and exact methods of neuron masking share; the specification itself uses none of it."""
