"""The study quick_planners."""

from mapgap.studies.quick_planners.study import STUDY

__all__ = ["STUDY"]
