"""Writes the compact library files next to this module: ``python -m
mapgap.instances.fpga_gpu_partition.write_library``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mapgap.instances.writing import compact_text, write_files

FOLDER = Path(__file__).parent / "library"
text = partial(compact_text, "fpga_gpu_partition")
NETWORKS = {
    "squeezenet": "squeezenet1_0",
    "mobilenetv2_x0_5": "mobilenetv2_x0_5",
    "shufflenetv2_x0_5": "shufflenetv2_x0_5",
}
"""Name in the library to layer table; the paper does not say which SqueezeNet it uses, 1.0 is assumed."""
OTHERS = ("resnet18", "vgg16")
MODULES = {
    "squeezenet": ("fire2", "fire4", "fire9"),
    "mobilenetv2_x0_5": ("b1", "b2", "b8"),
    "shufflenetv2_x0_5": ("s2b0", "s2b1", "s3b1"),
}
PARALLEL = "shufflenetv2_x0_5"
"""The network with units whose depthwise layers may be split, as Sec. V-B describes its units with reduction."""
FOLDS = (1, 4)
MODULE_FOLD = 32
"""Largest fold of single modules: with it the pattern of Fig. 2 fits for every module of Table I."""
DERIVED = (
    "Derived: layer sizes from the network's shape arithmetic; latencies and energies from a fit to Table I "
    "(docs/fpga_gpu_calibration.md), one of several equally good ones. Published: 2.5 GB/s, 8-bit words, the limit of "
    "64 filters 5x5x3 on the Cyclone 10 GX (4,800 multipliers in logic; 384 in DSP blocks are added)."
)
SOURCES = {
    "network": "FPGA-GPU DHM paper (SLOHA 2021), Sec. V: {title} as a whole, {fold}. {derived}",
    "other": "{title} on the devices of the FPGA-GPU DHM paper , not an experiment there, {fold}. {derived}",
    "module": "FPGA-GPU DHM paper (SLOHA 2021), Table I and Fig. 4: module {title} alone, {fold}. {derived}",
}


def fold_text(max_fold: int) -> str:
    """How literally the instance takes direct hardware mapping."""
    if max_fold == 1:
        return "literal direct hardware mapping, one multiplier per weight"
    return f"a multiplier may serve up to {max_fold} weights in turn (assumed)"


def network_files() -> dict[str, str]:
    """Whole networks: the paper's three and two others, literal and with fold 4."""
    files = {}
    for short, network in {**NETWORKS, **{name: name for name in OTHERS}}.items():
        for fold in FOLDS:
            name = f"dhm_{short}_fold{fold}"
            key = "other" if short in OTHERS else "network"
            source = SOURCES[key].format(title=network, fold=fold_text(fold), derived=DERIVED)
            tags = ["dhm", key, network, f"fold{fold}"]
            files[name] = text(name, source, tags, {"network": network, "max_fold": str(fold), "cost_model": "fit1"})
    return files


def parallel_files() -> dict[str, str]:
    """ShuffleNetV2 with depthwise layers that may be split by channels."""
    files = {}
    for fold in FOLDS:
        title = f"{PARALLEL} as a whole, depthwise layers may be split by channels (units with spatial reduction, V-B)"
        source = f"FPGA-GPU DHM paper (SLOHA 2021), Sec. V: {title}, {fold_text(fold)}. {DERIVED}"
        fields = {"network": PARALLEL, "max_fold": str(fold), "cost_model": "fit1", "splits": "depthwise"}
        tags = ["dhm", "network", PARALLEL, f"fold{fold}", "depthwise"]
        name = f"dhm_{PARALLEL}_depthwise_fold{fold}"
        files[name] = text(name, source, tags, fields)
    return files


def module_files() -> dict[str, str]:
    """Single modules of Table I, with folds as large as the pattern needs."""
    files = {}
    for short, modules in MODULES.items():
        network = NETWORKS[short]
        for module in modules:
            name = f"dhm_{short}_{module}"
            title = f"{module} of {network}"
            source = SOURCES["module"].format(title=title, fold=fold_text(MODULE_FOLD), derived=DERIVED)
            fields = {
                "network": network,
                "module": module,
                "max_fold": str(MODULE_FOLD),
                "cost_model": "fit1",
            }
            files[name] = text(name, source, ["dhm", "module", network], fields)
    return files


def main() -> None:
    write_files(FOLDER, {**network_files(), **parallel_files(), **module_files()})


if __name__ == "__main__":
    main()
