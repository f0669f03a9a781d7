"""What exists: problems, methods and instance files."""
