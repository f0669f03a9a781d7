"""The study dfs_vs_converting."""

from mapgap.studies.dfs_vs_converting.study import STUDY

__all__ = ["STUDY"]
