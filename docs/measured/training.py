"""An instance of ``suboperation_mapping`` from measured times in CSV files."""

from collections import defaultdict

from tables import read, table

from mapgap.catalogue.files import save_expanded
from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer

batch, devices, input_bytes = 4, ["u50", "u30"], 12_288
times = defaultdict(dict)
for row in read("fpga_times.csv"):
    for phase in ("fp", "bp", "wu"):
        if row[f"{phase}_us"]:
            times[row["layer"], phase, row["device"]][int(row["samples"])] = float(row[f"{phase}_us"])

rows = read("fpga_layers.csv")
place = {row["layer"]: i for i, row in enumerate(rows)}
layers = []
for row in rows:
    name, fused = row["layer"], row["kind"] == "fused"
    phases = {}
    for phase in ("fp", "bp", "wu"):
        if (name, phase, devices[0]) in times:
            found = [table(times[name, phase, device], batch) for device in devices]
            phases[phase] = tuple(ticks[-1:] if fused else ticks for ticks in found)
    inputs = tuple(Edge(source=place[p], bytes=int(rows[place[p]]["output_bytes"])) for p in row["reads"].split())
    layers.append(
        Layer(
            name=name,
            kind=row["kind"],
            inputs=inputs,
            network_input_bytes=0 if inputs else input_bytes,
            output_bytes=int(row["output_bytes"]),
            weight_bytes=int(row["weight_bytes"]),
            **phases,
        )
    )

instance = Instance(
    name="my_training",
    source="measured 2026 on my cluster",
    batch=batch,
    tick_ns=1000,
    memory_unit_bytes=1024,
    flops=0,
    accelerators=(
        Accelerator(name="u50", memory=8 * 2**20, pes=5952),
        Accelerator(name="u30", memory=4 * 2**20, pes=2000),
    ),
    bandwidth=((0, 3 * 10**9), (3 * 10**9, 0)),  # bytes per second, from row to column
    layers=tuple(layers),
)
save_expanded(instance, "my_training.yaml")
