"""An instance of ``hybrid_pipeline`` from measured times in CSV files."""

from collections import defaultdict

from tables import read, table, units

from mapgap.catalogue.files import save_expanded
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Instance, Layer

micro_batch, mini_batch, unit = 4, 16, 1024
cluster = {"nano_a": "nano", "nano_b": "nano", "tx2_a": "tx2"}
memory = {"nano": 2 * 10**9, "tx2": 6 * 10**9}  # bytes that a training process may use
times = defaultdict(dict)
for row in read("board_times.csv"):
    for phase in ("forward", "backward"):
        times[row["type"], phase, row["layer"]][int(row["samples"])] = float(row[f"{phase}_us"])

rows = read("board_layers.csv")
layers = tuple(
    Layer(
        name=row["layer"],
        output_bytes=int(row["output_bytes"]),
        weight_bytes=int(row["weight_bytes"]),
        state_memory=units(3 * int(row["weight_bytes"]), unit),  # weights, gradients, momentum
        activation_memory=units(row["activation_bytes"], unit),
    )
    for row in rows
)
kinds = list(memory)
types = tuple(
    DeviceType(
        name=kind,
        memory=memory[kind] // unit,
        **{
            phase: tuple(table(times[kind, phase, row["layer"]], micro_batch) for row in rows)
            for phase in ("forward", "backward")
        },
    )
    for kind in kinds
)
speed = 100 * 10**6 // 8  # 100 Mbit/s
instance = Instance(
    name="my_pipeline",
    source="measured 2026 on my boards",
    mini_batch=mini_batch,
    micro_batch_sizes=(micro_batch,),
    tick_ns=1000,
    memory_unit_bytes=unit,
    types=types,
    layers=layers,
    devices=tuple(Device(name=name, type=kinds.index(kind)) for name, kind in cluster.items()),
    bandwidth=tuple(tuple(0 if a == b else speed for b in cluster) for a in cluster),
)
save_expanded(instance, "my_pipeline.yaml")
