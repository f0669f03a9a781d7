"""Writes the compact library files next to this module: ``python -m
mapgap.instances.suboperation_mapping.write_library``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mapgap.instances.suboperation_mapping.compact import BATCH
from mapgap.instances.writing import compact_text, write_files

FOLDER = Path(__file__).parent / "library"
text = partial(compact_text, "suboperation_mapping")
NETWORKS = ("alexnet", "vgg16", "resnet18", "tinyyolov3", "resnet56")
BANDWIDTHS = ("0.125", "0.5", "1", "3", "7.5", "15")
SCALE_BANDWIDTHS = ("0.5", "3", "15")
DERIVED = (
    "Derived: layer sizes from the network's shape arithmetic. Assumed: input size and classes of the network file, "
    "latency models and clocks of docs/accelerator_models.md, DRAM of the boards in devices/mtrain_fpga.yaml."
)
CLUSTER_SOURCE = (
    "MTrain, Sec. VI-A and Table II: cluster {cluster}, batch {batch}. Published: network, FPGAs, batch, range of "
    "bandwidths 0.125 to 15 GB/s, accelerator IPs, fp32. {derived}"
)
SCALE_SOURCE = (
    "MTrain, Sec. VI-E: {count} FPGAs in pairs U50 + U30. Published: number and types of FPGAs, range of bandwidths. "
    "Assumed: the network (not named), batch 64 as in cluster 1, U50LV for U50. {derived}"
)


def label(gbs: str) -> str:
    """``0.125`` as it stands in a name: ``0p125gbs``."""
    return gbs.replace(".", "p") + "gbs"


def cluster_files() -> dict[str, str]:
    """Sec. VI-A: five networks on three clusters under six bandwidths."""
    files = {}
    for cluster, batch in BATCH.items():
        source = CLUSTER_SOURCE.format(cluster=cluster, batch=batch, derived=DERIVED)
        for network in NETWORKS:
            for gbs in BANDWIDTHS:
                name = f"mtrain_c{cluster}_{network}_{label(gbs)}"
                fields = {"network": network, "cluster": str(cluster), "batch": str(batch), "bandwidth_gbs": gbs}
                files[name] = text(name, source, ["mtrain", f"cluster{cluster}", network, label(gbs)], fields)
    return files


def scale_files() -> dict[str, str]:
    """Sec. VI-E: 2 to 8 FPGAs."""
    files = {}
    for count in (2, 4, 6, 8):
        source = SCALE_SOURCE.format(count=count, derived=DERIVED)
        devices = f"[{', '.join(['U50LV', 'U30'] * (count // 2))}]"
        for gbs in SCALE_BANDWIDTHS:
            name = f"mtrain_scale_{count}fpga_resnet18_{label(gbs)}"
            fields = {"network": "resnet18", "devices": devices, "batch": "64", "bandwidth_gbs": gbs}
            files[name] = text(name, source, ["mtrain", "scale", f"{count}fpga", "resnet18", label(gbs)], fields)
    return files


def main() -> None:
    write_files(FOLDER, {**cluster_files(), **scale_files()})


if __name__ == "__main__":
    main()
