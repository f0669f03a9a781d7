"""Tables, figures, charts and pages from run records."""
