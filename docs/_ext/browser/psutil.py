"""Nothing: a browser has no processes to watch. The package imports the name; no run in a browser uses it."""
