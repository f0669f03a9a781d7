"""Instances of sub-operation mapping: the compact form, its expansion, and random families.

A compact file names a network, FPGAs and bandwidths; :func:`expand` lowers the network to layers
(``_network.py``), chooses an accelerator IP per FPGA and tabulates its latencies (``_accelerators.py``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mapgap.core import CompactBase
from mapgap.instances.suboperation_mapping._expand import expand_compact
from mapgap.problems.suboperation_mapping import Instance


class Compact(CompactBase):
    """A library network on library FPGAs.

    Attributes
    ----------
    network : str
        A network of the library.
    cluster : {1, 2, 3}, optional
        Cluster of MTrain's Table II.
    devices : tuple of str, optional
        FPGAs by name, in place of ``cluster``; equal ones are numbered.
    batch : int, optional
        Samples of an iteration; Sec. VI-A's 64, 16 and 64 for clusters 1 to 3.
    bandwidth_gbs : float or matrix of float
        Peer-to-peer bandwidth in 10^9 bytes per second, for every pair or from row to column (diagonal ignored).
    ip : {"best", "ef_train", "darkfpga"}
        Accelerator IP of all FPGAs; "best" chooses per FPGA (Alg. 1, step 2).
    """

    problem: Literal["suboperation_mapping"] = "suboperation_mapping"
    network: str
    cluster: Literal[1, 2, 3] | None = None
    devices: tuple[str, ...] | None = None
    batch: int | None = Field(default=None, ge=1)
    bandwidth_gbs: float | tuple[tuple[float, ...], ...]
    ip: Literal["best", "ef_train", "darkfpga"] = "best"


def expand(compact: Compact) -> Instance:
    """The expanded instance.

    Raises
    ------
    InputError
        Every field that cannot be expanded, each with what was expected and what was found.
    """
    return expand_compact(
        name=compact.name,
        source=compact.source,
        tags=compact.tags,
        network=compact.network,
        cluster=compact.cluster,
        devices=compact.devices,
        batch=compact.batch,
        bandwidth_gbs=compact.bandwidth_gbs,
        ip=compact.ip,
    )


def build(cluster: int, network: str, bandwidth_gbs: float, batch: int | None = None) -> Instance:
    """One of MTrain's experiments: a cluster of Table II, a network, one bandwidth for all pairs in GB/s.

    Raises
    ------
    InputError
        As :func:`expand`.
    """
    return expand_compact(
        name=f"mtrain_c{cluster}_{network}_{bandwidth_gbs:g}gbs".replace(".", "p"),
        source="",
        tags=(),
        network=network,
        cluster=cluster,
        devices=None,
        batch=batch,
        bandwidth_gbs=bandwidth_gbs,
        ip="best",
    )
