"""Exact methods of hybrid pipeline planning."""
