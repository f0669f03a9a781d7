"""The study equal_time."""

from mapgap.studies.equal_time.study import STUDY

__all__ = ["STUDY"]
