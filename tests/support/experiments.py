"""Instances of a paper's experiments by the numbers that vary in them."""

from mapgap.instances.suboperation_mapping.compact import Compact, expand


def build(cluster, network, bandwidth_gbs, batch=None):
    """One of MTrain's: a cluster of Table II, a network, one bandwidth for all pairs in GB/s."""
    name = f"mtrain_c{cluster}_{network}_{bandwidth_gbs:g}gbs".replace(".", "p")
    return expand(Compact(name=name, network=network, cluster=cluster, batch=batch, bandwidth_gbs=bandwidth_gbs))
