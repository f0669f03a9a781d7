"""``python -m mapgap``."""

from mapgap.cli import main

main()
