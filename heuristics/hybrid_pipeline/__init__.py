"""Methods of the problem of the same name."""
