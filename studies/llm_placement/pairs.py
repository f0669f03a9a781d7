"""The instances: shipped models on shipped clusters, imported as ``mapgap import`` does.

Every instance is, from a checkout or an installation::

    mapgap import hugging_face/MODEL.json --cluster clusters/CLUSTER.yaml --set bits=4.5 --set message_us=300 --set …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.core.workload import Settings
from mapgap.importing.assemble import assemble
from mapgap.importing.cluster import load
from mapgap.importing.recognise import read
from mapgap.importing.source import located
from mapgap.problems.hybrid_pipeline import PROBLEM, Instance

MODELS = ("llama_3_2_3b", "llama_3_1_8b", "llama_2_13b", "qwen3_30b_a3b", "qwen2_5_32b", "llama_3_1_70b")
CLUSTERS = (
    *("mac_and_gpu", "three_macs", "four_minis", "large_macs", "three_gamers", "cheap_memory", "everything", "jetsons"),
    *("desk_macs", "two_studios", "studio_and_minis", "spark_and_studio", "sparks_and_halo", "four_halos"),
    *("halo_and_gpu", "old_cards", "lan_party", "two_makers", "workstations", "mining_rig", "new_and_old"),
    *("orins_and_gpu", "laboratory", "shared_flat"),
)
COMMON = {"bits": 4.5, "message_us": 300, "prompt": 2048}
"""Weights of 4 bits with their scales; 300 microseconds of a message on a local network; tokens of a prompt."""


@dataclass(frozen=True)
class Condition:
    """What is asked of a placement.

    Attributes
    ----------
    title : str
    settings : mapping
        Beside those of all.
    objective : str
    """

    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    objective: str = "latency"


CONDITIONS = {
    "decode": Condition("the time of a token after 4096, one sequence in flight"),
    "prefill": Condition("the time of a prompt of 2048 tokens", {"phase": "prefill"}),
    "flow": Condition("the longest step of a token, eight sequences in flight", {"mini_batch": 8}, "bottleneck"),
}


@cache
def instance(cluster: str, model: str, condition: str) -> Instance:
    """A model on a cluster."""
    asked = CONDITIONS[condition]
    boards = load(located(Path("clusters", f"{cluster}.yaml")))
    settings = Settings({**boards.settings, **COMMON, **asked.settings})
    graph = read([located(Path("hugging_face", f"{model}.json"))], settings)
    workload = assemble(graph, boards, settings, f"{cluster}:{model}:{condition}").workload
    made = registry.library(PROBLEM.name).imported(workload, settings)
    assert isinstance(made, Instance)
    return made.changed(objective=asked.objective)


def pairs(quick: bool = False) -> Iterator[tuple[str, str]]:
    """Clusters and models; of the small version two each."""
    for cluster in CLUSTERS[:2] if quick else CLUSTERS:
        for model in MODELS[1:6:4] if quick else MODELS:
            yield cluster, model
