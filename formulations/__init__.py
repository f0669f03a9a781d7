"""Exact models and exact algorithms, one folder per problem."""
