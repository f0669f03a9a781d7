"""Published heuristics and baselines of layer flow."""

from mapgap.core import methods_of

method = methods_of(__name__)

METHODS = [
    method(
        "helix_placement",
        kind="published",
        reference="Mei et al., Helix, Sec. 4; placements in Thesys-lab/Helix-ASPLOS25",
        summary="the placement that the authors' integer program found, for the instances that they published",
    ),
    method(
        "petals",
        kind="published",
        reference="Borzunov et al., Petals, Appendix D, as Helix compares with it",
        summary="every node holds as many layers as it can, where the least throughput is so far",
    ),
    method(
        "swarm",
        kind="published",
        reference="Ryabinin et al., SWARM parallelism, as Helix compares with it",
        options={"stages": 0},
        summary="stages of equally many layers; every node joins the stage of least throughput",
    ),
    method(
        "one_pipeline",
        kind="baseline",
        reference="chain partitioning by a threshold (bottleneck assignment)",
        summary="one node after the other, each with as many layers as the largest common throughput allows",
    ),
    method(
        "stages",
        kind="baseline",
        reference="pattern model of stages, CP-SAT; exchange of nodes by maximum flow",
        run="mapgap.formulations.layer_flow.stages:run",
        params="mapgap.formulations.layer_flow.params:Stages",
        summary="stages of one or more nodes side by side, chosen by kinds for a flow, then given to nodes by links",
    ),
]
