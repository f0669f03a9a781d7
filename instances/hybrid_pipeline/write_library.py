"""Writes the compact library files next to this module: ``python -m
mapgap.instances.hybrid_pipeline.write_library``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mapgap.instances.writing import compact_text, write_files

FOLDER = Path(__file__).parent / "library"
text = partial(compact_text, "hybrid_pipeline")
NETWORKS = {
    "efficientnet_b1": ("efficientnet_b1_cifar", 2048, 128),
    "mobilenetv2": ("mobilenetv2_cifar", 2048, 128),
    "resnet50": ("resnet50", 256, 16),
    "bert_small": ("bert_small", 2048, 128),
}
"""Name in files: library network, mini-batch (Sec. 5.2), micro-batch (assumed: M = 16)."""
NANOS = range(1, 9)
PROFILES = (
    "Derived: layer sizes from the network's shape arithmetic; time tables from a roofline scaled to Table 1, of which "
    "Jetson NX from Table 8. Assumed: batch size and launch times behind the tables, memory taken by the system (1.2 "
    "GB), momentum as optimizer, half-duplex links."
)
TABLE_4 = (
    "Asteroid, Tables 4 and 6: environment {environment}, {mbps} Mbit/s, mini-batch {mini}. Published: devices, "
    "memory, bandwidth, mini-batch. Assumed: micro-batch {micro}. {profiles}"
)
SCALABILITY = (
    "Asteroid, Sec. 5.6 and Fig. 18: {count} Jetson Nano, 100 Mbit/s, 32 samples of a micro-batch per device. "
    "Published: devices, bandwidth, micro-batch. Assumed: 16 micro-batches in a mini-batch. {profiles}"
)
FAILURE = (
    "Asteroid, Sec. 5.5: {device} leaves EfficientNet-B1 on environment D, 100 Mbit/s. Published: environment, "
    "network, single failures of each device. Derived: the pipeline that ran before, Algorithm 2's plan for "
    "asteroid_d_efficientnet_b1_100mbps (Fig. 16 shows the authors' as a picture only). Assumed: bandwidth, 100 rounds "
    "to come. {profiles}"
)
POLICIES = (
    "Asteroid, Sec. 5.4 and Fig. 15(b): EfficientNet-B1 on three Jetson TX2. Published: devices, network. Assumed: "
    "{mbps} Mbit/s, mini-batch 2048 (Sec. 5.2), micro-batch 128. {profiles}"
)
PIPELINE = ((151, ("TX2", "Nano 1")), (210, ("Nano 2",)), (248, ("Nano 3",)))
"""Pipeline before the failure: last layer + 1 and devices of each stage."""


def table_4_files() -> dict[str, str]:
    """Four environments, four networks, two bandwidths."""
    files = {}
    for environment in "abcd":
        for short, (network, mini, micro) in NETWORKS.items():
            for mbps in (100, 1000):
                name = f"asteroid_{environment}_{short}_{mbps}mbps"
                source = TABLE_4.format(
                    environment=environment.upper(), mbps=mbps, mini=mini, micro=micro, profiles=PROFILES
                )
                fields = {
                    "network": network,
                    "cluster": environment.upper(),
                    "bandwidth_mbps": str(mbps),
                    "mini_batch": str(mini),
                    "micro_batch": str(micro),
                }
                tags = ["asteroid", f"env_{environment}", short, f"{mbps}mbps"]
                files[name] = text(name, source, tags, fields)
    return files


def scalability_files() -> dict[str, str]:
    """One to eight Jetson Nano."""
    files = {}
    for count in NANOS:
        for short in ("efficientnet_b1", "mobilenetv2"):
            name = f"asteroid_nano{count}_{short}_100mbps"
            source = SCALABILITY.format(count=count, profiles=PROFILES)
            fields = {
                "network": NETWORKS[short][0],
                "devices": f"[{', '.join(['Nano'] * count)}]",
                "bandwidth_mbps": "100",
                "mini_batch": str(16 * 32 * count),
                "micro_batch": str(32 * count),
            }
            files[name] = text(name, source, ["asteroid", "scalability", short, "100mbps"], fields)
    return files


def policy_files() -> dict[str, str]:
    """Three Jetson TX2, for the 1F1B policies."""
    files = {}
    for mbps in (100, 1000):
        name = f"asteroid_tx2x3_efficientnet_b1_{mbps}mbps"
        fields = {
            "network": "efficientnet_b1_cifar",
            "devices": "[TX2, TX2, TX2]",
            "bandwidth_mbps": str(mbps),
            "mini_batch": "2048",
            "micro_batch": "128",
        }
        source = POLICIES.format(mbps=mbps, profiles=PROFILES)
        files[name] = text(name, source, ["asteroid", "policies", "efficientnet_b1", f"{mbps}mbps"], fields)
    return files


def failure_files() -> dict[str, str]:
    """Each device of environment D leaves the same pipeline."""
    files = {}
    stages = ", ".join(f"{{stop: {stop}, devices: [{', '.join(names)}]}}" for stop, names in PIPELINE)
    for device in (name for _, names in PIPELINE for name in names):
        name = f"asteroid_d_efficientnet_b1_100mbps_without_{device.lower().replace(' ', '')}"
        fields = {
            "network": "efficientnet_b1_cifar",
            "cluster": "D",
            "bandwidth_mbps": "100",
            "mini_batch": "2048",
            "micro_batch": "128",
            "failure": f"{{device: {device}, rounds: 100, pipeline: [{stages}]}}",
        }
        source = FAILURE.format(device=device, profiles=PROFILES)
        files[name] = text(name, source, ["asteroid", "failure", "env_d", "efficientnet_b1"], fields)
    return files


def main() -> None:
    write_files(FOLDER, {**table_4_files(), **scalability_files(), **policy_files(), **failure_files()})


if __name__ == "__main__":
    main()
