"""Instances of multi model splitting: library files, their compact form and its expansion, random families."""

from mapgap.instances.house import house_library

SCALING = (
    *("wearables_4x4", "mixed_4x4", "wearables_6x4", "mixed_6x4", "wearables_10x8", "mixed_10x8"),
    *("wearables_14x8", "mixed_14x8", "wearables_20x16", "mixed_20x16", "large_models_20x16"),
    *("wearables_30x20", "mixed_30x20", "large_models_30x20"),
)
LIBRARY = house_library("multi_model_splitting", "tiny", "realistic", "small", "full", *SCALING, boards=True)
