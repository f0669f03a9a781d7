"""Label search over stages, last stage first."""
