"""An instance of ``multi_model_splitting`` from measured times in CSV files."""

from tables import read

from mapgap.catalogue.files import save_expanded
from mapgap.problems.multi_model_splitting import Boundary, Device, Instance, Layer, Pipeline, Requirement

devices = (
    Device(name="ring", weights=50_000, bias=2048, layers=32, sensors=("microphone",)),
    Device(name="watch", weights=80_000, bias=2048, layers=32, sensors=("imu",), interfaces=("display",)),
)
copy_us, radio_us = 0.08, 5.0  # measured per byte: into or out of the accelerator; sending or receiving
asks = {"kws": ("microphone", 1960, 20_000), "gesture": ("imu", 600, 10_000)}  # sensor, bytes of input, time to sense


def boundary(size, first, last):
    copied, moved = (round(size * copy_us),) * len(devices), (round(size * radio_us),) * len(devices)
    return Boundary(
        bytes=size, load=() if last else copied, unload=() if first else copied, transmit=moved, receive=moved
    )


pipelines = []
for model, (sensor, input_bytes, sensing_us) in asks.items():
    rows = [row for row in read("wearable_layers.csv") if row["model"] == model]
    sizes = [input_bytes, *(int(row["output_bytes"]) for row in rows)]
    pipelines.append(
        Pipeline(
            name=model,
            model=model,
            source=Requirement(type=sensor),
            target=Requirement(type="display"),
            sensing=(sensing_us,) * len(devices),
            layers=tuple(
                Layer(
                    name=row["layer"],
                    weights=int(row["weights"]),
                    bias=int(row["bias"]),
                    output_bytes=int(row["output_bytes"]),
                    inference=tuple(round(float(row[f"{device.name}_us"])) for device in devices),
                )
                for row in rows
            ),
            boundaries=tuple(boundary(size, b == 0, b == len(rows)) for b, size in enumerate(sizes)),
        )
    )

instance = Instance(
    name="my_wearables", source="measured 2026", tick_ns=1000, devices=devices, pipelines=tuple(pipelines)
)
save_expanded(instance, "my_wearables.yaml")
