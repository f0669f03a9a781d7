"""An instance of ``fpga_gpu_partition`` from measured times in CSV files."""

from collections import defaultdict

from tables import read

from mapgap.catalogue.files import save_expanded
from mapgap.problems.fpga_gpu_partition import NETWORK_INPUT, Fabric, Instance, Layer, Link, Module, Option, Read

options = defaultdict(list)
for row in read("gpu_fpga_options.csv"):
    side = row["side"]
    spent = {f"{side}_ticks": round(float(row["us"])), f"{side}_energy": round(float(row["uj"]))}
    options[row["layer"]].append(
        Option(name=side, kind=side, home=side, multipliers=int(row["multipliers"]), m20k=int(row["m20k"]), **spent)
    )

rows = read("gpu_fpga_layers.csv")
place = {row["layer"]: i for i, row in enumerate(rows)}
modules = defaultdict(list)
for row in rows:
    sources = [place[name] for name in row["reads"].split()] or [NETWORK_INPUT]
    modules[row["module"]].append(
        Layer(
            name=row["layer"],
            operation=row["operation"],
            reads=tuple(Read(source=source) for source in sources),
            outputs=(int(row["output_bytes"]),),
            options=tuple(options[row["layer"]]),
        )
    )

instance = Instance(
    name="my_partition",
    source="measured 2026",
    objective="energy",
    tick_ns=1000,
    energy_unit_nj=1000,
    standby_mw=500,
    input_bytes=290_400,
    fabric=Fabric(multipliers=5184, m20k=587),
    link=Link(bytes_per_second=2_500_000_000, setup_ticks=20, setup_energy=10, energy_per_mb=400),
    modules=tuple(Module(name=name, kind=name, layers=tuple(layers)) for name, layers in modules.items()),
)
save_expanded(instance, "my_partition.yaml")
