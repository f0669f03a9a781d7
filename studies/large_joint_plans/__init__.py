"""The study large_joint_plans."""

from mapgap.studies.large_joint_plans.study import STUDY

__all__ = ["STUDY"]
