"""An instance of ``neuron_masking`` from measured times in CSV files."""

from tables import read, units

from mapgap.catalogue.files import save_expanded
from mapgap.problems.neuron_masking import Device, Instance, Layer, Rate

inputs, samples, unit_macs, unit_bytes = 1, 500, 100_000, 64
measured_s, limit_s, memory_bytes = (
    3.2,
    1.5,
    120_000,
)  # whole model on the straggler; the others' cycle; what it may use
rows = read("straggler_layers.csv")
layers = tuple(
    Layer(
        name=row["layer"],
        neurons=int(row["neurons"]),
        least=int(row["least"]),
        work=units(int(row["macs_per_pair"]) * samples, unit_macs),
        weights=units(2 * int(row["weight_bytes_per_pair"]), unit_bytes),  # and gradients
        features=units(row["feature_bytes"], unit_bytes),
    )
    for row in rows
)
before = [inputs, *(layer.neurons for layer in layers)]
work = sum(layer.work * n * layer.neurons for layer, n in zip(layers, before, strict=False))
tick_s = measured_s / work
told = {
    row["layer"]: tuple(int(u) for u in row["contributions"].split()) for row in read("straggler_contributions.csv")
}
device = Device(
    name="straggler",
    tick_ps=round(tick_s * 1e12),
    transfer=Rate(ticks=0, per=1),
    spill=Rate(ticks=0, per=1),
    overhead=0,
    time_limit=(int(limit_s / tick_s),),
    work_limit=(work,),
    memory_limit=memory_bytes // unit_bytes,
    contributions=tuple(told[layer.name] for layer in layers),
)
instance = Instance(
    name="my_straggler",
    source="measured 2026",
    objective="contribution",
    memory_unit_bytes=unit_bytes,
    work_unit_macs=unit_macs,
    cycle_ms=(round(1000 * limit_s),),
    inputs=inputs,
    layers=layers,
    devices=(device,),
)
save_expanded(instance, "my_straggler.yaml")
