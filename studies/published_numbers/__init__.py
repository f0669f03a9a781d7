"""Every published number of the five papers, next to what the committed runs make of it."""

from mapgap.studies.published_numbers.study import STUDY

__all__ = ["STUDY"]
