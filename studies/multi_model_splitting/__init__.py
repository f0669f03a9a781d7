"""The study multi_model_splitting."""

from mapgap.studies.multi_model_splitting.study import STUDY

__all__ = ["STUDY"]
