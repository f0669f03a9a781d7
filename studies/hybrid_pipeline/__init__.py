"""The study hybrid_pipeline."""

from mapgap.studies.hybrid_pipeline.study import STUDY

__all__ = ["STUDY"]
