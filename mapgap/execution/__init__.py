"""One measured run, and sweeps of them: budget, limits, warm processes, worker, watch."""
