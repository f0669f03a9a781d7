"""An instance of ``layer_flow`` from measured throughputs and link rates in CSV files."""

from tables import read

from mapgap.catalogue.files import save_expanded
from mapgap.problems.layer_flow import Instance, Node

LAYERS, SCALE = 4, 10
ACTIVATION_BYTES, TOKEN_BYTES = 16_384, 4  # of one token between two layers, and at source and sink

measured: dict[str, list[int]] = {}
kinds = {}
for row in read("cluster_nodes.csv"):  # one row for every number of layers from 1 on
    measured.setdefault(row["node"], []).append(round(SCALE * float(row["tokens_per_s"])))
    kinds[row["node"]] = row["kind"]
names = list(measured)

rates = {}
for row in read("cluster_links.csv"):
    ends = (row["from"], row["to"])
    size = TOKEN_BYTES if {"source", "sink"} & set(ends) else ACTIVATION_BYTES
    rates[ends] = round(SCALE * float(row["mbit_per_s"]) * 1e6 / 8 / size)

instance = Instance(
    name="my_cluster",
    source="measured 2026",
    scale=SCALE,
    layers=LAYERS,
    nodes=tuple(Node(name=name, kind=kinds[name], throughput=tuple(row)) for name, row in measured.items()),
    entry=tuple(rates.get(("source", name), 0) for name in names),
    exit=tuple(rates.get((name, "sink"), 0) for name in names),
    links=tuple(tuple(rates.get((a, b), 0) for b in names) for a in names),
)
save_expanded(instance, "my_cluster.yaml")
