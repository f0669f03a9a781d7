"""The command line."""

from mapgap.cli.app import main

__all__ = ["main"]
