"""Run a built model under a budget; these modules know nothing of any problem."""
