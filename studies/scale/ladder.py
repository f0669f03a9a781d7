"""What is run: per problem instances of growing size, two fresh seeds each, and the methods that run on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from mapgap.catalogue import registry
from mapgap.core import InstanceBase
from mapgap.execution.sweep import MethodJob
from mapgap.instances.hybrid_pipeline.families import clusters
from mapgap.instances.suboperation_mapping.compact import Compact, expand

TIME_S, MEMORY_MB = 10.0, 4000
BATCH = 16
"""Of the networks on FPGAs."""
RATES = (0.125, 0.5, 1.0, 3.0, 7.5, 15.0)
"""Bandwidths of MTrain's experiments in GB/s; every pair of FPGAs has one of them."""

Make = Callable[[int], InstanceBase]


@dataclass(frozen=True)
class Rung:
    """Instances of one size.

    Attributes
    ----------
    series : str
        What grows; sizes of one series are comparable, and stand in growing order.
    size : str
        As tables show it.
    make : callable
        The instance of a seed.
    seeds : tuple of int
        Where a family's sizes depend on the seed, seeds of this size.
    """

    series: str
    size: str
    make: Make
    seeds: tuple[int, ...] = (200, 201)

    def names(self, problem: str) -> dict[int, str]:
        """The name of every seed's instance, which says where it stands."""
        place = f"{self.series}_{self.size}".replace(" ", "_").replace("×", "x")
        return {seed: f"{problem}:{place}_{seed}" for seed in self.seeds}


@dataclass(frozen=True)
class Ladder:
    """The sizes of a problem.

    Attributes
    ----------
    published : str
        The heuristic of the paper.
    exact : str
        The exact method that proves most; named here, so that the runs stay the study's when ranks change.
    unit : str
        What a size counts.
    rungs : tuple of Rung
        In growing order; the first series is the one that figures show.
    """

    published: str
    exact: str
    unit: str
    rungs: tuple[Rung, ...]


def family(problem: str, name: str) -> Make:
    """The instances of a generator."""
    return partial(registry.library(problem).generate, name)


def fpgas(network: str, count: int, seed: int) -> InstanceBase:
    """A network of the library on pairs of U50LV and U30, with a bandwidth of its own for every pair of FPGAs."""
    rng = random.Random(f"scale-{network}-{count}-{seed}")
    rates = [[1.0] * count for _ in range(count)]
    for a in range(count):
        for b in range(a):
            rates[a][b] = rates[b][a] = rng.choice(RATES)
    return expand(
        Compact(
            name=f"{network}_{count}fpga_{seed}",
            source="generated: study scale",
            network=network,
            devices=("U50LV", "U30") * (count // 2),
            batch=BATCH,
            bandwidth_gbs=tuple(map(tuple, rates)),
        )
    )


def _typed(layers: int, sizes: tuple[int, ...]) -> Make:
    return lambda seed: clusters(seed, layers, sizes)


LADDERS: dict[str, Ladder] = {
    "suboperation_mapping": Ladder(
        published="mtrain_converting",
        exact="stage_mip",
        unit="layers × accelerators",
        rungs=(
            Rung("layers", "5 × 2", family("suboperation_mapping", "small"), (200, 206)),
            Rung("layers", "8 × 3", family("suboperation_mapping", "small"), (204, 209)),
            Rung("layers", "AlexNet × 2", partial(fpgas, "alexnet", 2)),
            Rung("layers", "ResNet-18 × 4", partial(fpgas, "resnet18", 4)),
            Rung("layers", "ResNet-18 × 8", partial(fpgas, "resnet18", 8)),
        ),
    ),
    "hybrid_pipeline": Ladder(
        published="asteroid",
        exact="label_dp",
        unit="layers × devices",
        rungs=(
            Rung("different devices", "7 × 4", family("hybrid_pipeline", "small"), (202, 204)),
            Rung("different devices", "213 × 8", family("hybrid_pipeline", "distinct"), (203, 210)),
            Rung("different devices", "213 × 12", family("hybrid_pipeline", "distinct"), (206, 213)),
            Rung("different devices", "213 × 14", family("hybrid_pipeline", "distinct"), (207, 214)),
            Rung("different devices", "213 × 20", family("hybrid_pipeline", "distinct"), (208, 215)),
            Rung("three types", "53 × 6", _typed(53, (1, 2, 3))),
            Rung("three types", "213 × 32", _typed(213, (8, 8, 16))),
        ),
    ),
    "multi_model_splitting": Ladder(
        published="synergy",
        exact="joint",
        unit="pipelines × devices",
        rungs=tuple(
            Rung(series.replace("_", " "), f"{p} × {d}", family("multi_model_splitting", f"{series}_{p}x{d}"))
            for series, p, d in (
                *(("mixed", p, d) for p, d in ((4, 4), (10, 8), (20, 16), (30, 20))),
                *(("large_models", p, d) for p, d in ((20, 16), (30, 20))),
            )
        ),
    ),
    "fpga_gpu_partition": Ladder(
        published="paper_rule",
        exact="label_setting",
        unit="layers",
        rungs=(
            Rung("layers", "16", family("fpga_gpu_partition", "small"), (214, 216)),
            Rung("layers", "63", family("fpga_gpu_partition", "networks"), (209, 229)),
            Rung("layers", "155", family("fpga_gpu_partition", "networks"), (205, 225)),
        ),
    ),
    "neuron_masking": Ladder(
        published="elfish_greedy",
        exact="lagrangian",
        unit="layers × neurons",
        rungs=(
            Rung("chain", "5 × 64", family("neuron_masking", "ladder"), (204, 222)),
            Rung("chain", "20 × 256", family("neuron_masking", "ladder"), (206, 224)),
            Rung("chain", "50 × 1024", family("neuron_masking", "ladder"), (208, 226)),
            Rung("chain", "100 × 2048", family("neuron_masking", "ladder"), (209, 227)),
            Rung("fleet", "5 devices", family("neuron_masking", "fleet"), (201, 205)),
        ),
    ),
}


def roles(problem: str) -> dict[str, str]:
    """The methods of a problem by what they are."""
    return {
        "published heuristic": LADDERS[problem].published,
        "quick planner": registry.fast_planner(problem).name,
        "strongest exact method": LADDERS[problem].exact,
        "CP-SAT": "cpsat",
        "MIP": "mip",
    }


def jobs(problem: str, rungs: int | None = None, seeds: int | None = None) -> Iterator[MethodJob]:
    """The runs of a problem, smallest instances first; of the first so many sizes and seeds only, if given."""
    for rung in LADDERS[problem].rungs[:rungs]:
        for seed, name in list(rung.names(problem).items())[:seeds]:
            instance = rung.make(seed).changed(name=name)
            yield from (MethodJob(instance, method, TIME_S, MEMORY_MB) for method in roles(problem).values())
