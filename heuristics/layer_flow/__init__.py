"""Published heuristics and baselines of layer flow."""

from mapgap.core import Method

_PROBLEM = "layer_flow"
_HERE = "mapgap.heuristics.layer_flow"

METHODS = [
    Method(
        "helix_placement",
        _PROBLEM,
        kind="published",
        reference="Mei et al., Helix, Sec. 4; placements in Thesys-lab/Helix-ASPLOS25",
        run=f"{_HERE}.helix_placement:run",
        summary="the placement that the authors' integer program found, for the instances that they published",
    ),
    Method(
        "petals",
        _PROBLEM,
        kind="published",
        reference="Borzunov et al., Petals, Appendix D, as Helix compares with it",
        run=f"{_HERE}.petals:run",
        summary="every node holds as many layers as it can, where the least throughput is so far",
    ),
    Method(
        "swarm",
        _PROBLEM,
        kind="published",
        reference="Ryabinin et al., SWARM parallelism, as Helix compares with it",
        run=f"{_HERE}.swarm:run",
        options={"stages": 0},
        summary="stages of equally many layers; every node joins the stage of least throughput",
    ),
    Method(
        "one_pipeline",
        _PROBLEM,
        kind="baseline",
        reference="chain partitioning by a threshold (bottleneck assignment)",
        run=f"{_HERE}.one_pipeline:run",
        summary="one node after the other, each with as many layers as the largest common throughput allows",
    ),
    Method(
        "stages",
        _PROBLEM,
        kind="baseline",
        reference="pattern model of stages, CP-SAT; exchange of nodes by maximum flow",
        run="mapgap.formulations.layer_flow.stages:run",
        params="mapgap.formulations.layer_flow.params:Stages",
        summary="stages of one or more nodes side by side, chosen by kinds for a flow, then given to nodes by links",
    ),
]
