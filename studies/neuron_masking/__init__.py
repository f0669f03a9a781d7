"""The study neuron_masking."""

from mapgap.studies.neuron_masking.study import STUDY

__all__ = ["STUDY"]
