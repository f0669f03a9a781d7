"""Layers of language models on the boards of a home: what rules of known programs lose to certified optima."""

from mapgap.studies.llm_placement.study import STUDY

__all__ = ["STUDY"]
