"""Helix: placements of language models on clusters, its authors' program and logs beside bounds and plans of ours."""

from mapgap.studies.helix.study import STUDY

__all__ = ["STUDY"]
