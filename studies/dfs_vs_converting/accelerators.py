"""What the accelerator models give: IP, tiles and throughput of every board alone, and the published check figures."""

from __future__ import annotations

from typing import Any

from mapgap.instances.suboperation_mapping.accelerators import (
    EFFICIENCY_PERMILLE,
    IP,
    Array2D,
    Board,
    board,
    choose,
    flops,
    nanoseconds,
)
from mapgap.instances.suboperation_mapping.network import blocks_of
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.dfs_vs_converting.experiments import TITLES

BATCHES = {
    "U50LV": 64, "U30": 64, "XCZU9EG": 16, "XC7Z045": 16, "XC7Z015": 16, "VCU128": 64, "ZCU102": 64, "ZCU104": 64
}  # fmt: skip
"""Boards of Table II in the order of the clusters, with the batch of their cluster."""
CLUSTERS = (("U50LV", "U30"), ("XCZU9EG", "XC7Z045", "XC7Z015"), ("VCU128", "ZCU102", "ZCU104"))
NAMES: dict[IP, str] = {"ef_train": "EF", "darkfpga": "Dark"}
CHECKS = (("vgg16", 16, 46.99), ("alexnet", 16, 34.52), ("alexnet", 4, 34.52))
"""Network, batch and GFLOPS that EF-Train publishes for the ZCU102 with 16 x 16 units at 100 MHz."""


def peak(device: Board) -> float:
    """GFLOPS with every unit busy in every cycle."""
    return 2 * device.macs * device.clock_mhz / 1000


@tabulated(
    "accelerators",
    "Every board alone [GFLOPS]",
    "board | batch | dsp: DSP | macs: MAC units | clock: MHz | peak; .0f"
    + "".join(f" | {network}_tiles: {title}, tiles | {network}: {title}; .0f" for network, title in TITLES.items()),
    "EF: EF-Train, output by input channels; Dark: DarkFPGA, samples by output channels. DRAM size ignored.",
)
def accelerators() -> Rows:
    """Per board: the IP and tiles that Alg. 1 chooses for each network, and the throughput alone."""
    for name, batch in BATCHES.items():
        device = board(name)
        row: dict[str, Any] = {"board": name, "batch": batch, "dsp": device.dsp, "macs": device.macs}
        row |= {"clock": device.clock_mhz, "peak": peak(device)}
        for network in TITLES:
            blocks = blocks_of(network)
            array, ns = choose(blocks, device, batch)
            row[f"{network}_tiles"] = f"{NAMES[array.ip]} {array.tiles[0]} x {array.tiles[1]}"
            row[network] = flops(blocks, batch) / ns
        yield row


@tabulated(
    "limits", "All units of a cluster busy [GFLOPS]", "cluster: cl. | peak; .0f | limit: with the efficiency; .0f"
)
def limits() -> Rows:
    """Per cluster: the throughput that no mapping can exceed, with every unit of every board busy."""
    for number, boards in enumerate(CLUSTERS, 1):
        total = sum(peak(board(name)) for name in boards)
        yield {"cluster": number, "peak": total, "limit": total * EFFICIENCY_PERMILLE / 1000}


@tabulated(
    "checks",
    "EF-Train on the ZCU102 [GFLOPS]",
    "network | batch | printed; g | ours: model; .2f | difference: difference [%]; +.1f",
    "The efficiency is fitted to the first.",
)
def checks() -> Rows:
    """EF-Train's published throughput on one board; the efficiency is fitted to the first row."""
    device = Board("ZCU102, 16 x 16, 100 MHz", 16 * 16 * 5, 4 * 10**9, 17060, 100)
    for network, batch, printed in CHECKS:
        blocks, array = blocks_of(network), Array2D("ef_train", (16, 16))
        total = sum(int(nanoseconds(b, phase, array, device, batch)) for b in blocks for phase in b.phases)
        ours = flops(blocks, batch) / total
        row = {"network": network, "batch": batch, "printed": printed, "ours": ours}
        yield row | {"difference": 100 * (ours / printed - 1)}
