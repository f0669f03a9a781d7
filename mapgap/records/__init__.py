"""What runs leave behind: the record of one run, files of them, and where they took place."""
