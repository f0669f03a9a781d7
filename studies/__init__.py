"""The committed studies, one module each; a module exports ``STUDY``."""
