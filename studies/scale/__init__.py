"""The study scale."""

from mapgap.studies.scale.study import STUDY

__all__ = ["STUDY"]
