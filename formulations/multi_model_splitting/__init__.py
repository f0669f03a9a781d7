"""Exact models of multi-model splitting."""
