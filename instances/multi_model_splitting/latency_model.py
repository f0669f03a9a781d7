"""The latency model of Sec. 5.4.1: devices and pipelines with integer ticks for all six types of tasks.

=====================  =========================================================================  ==========
task                   duration                                                                   status
=====================  =========================================================================  ==========
sensing                a parameter per signal, 0 unless set                                       assumed
loading, unloading     copy time per byte x bytes                                                 derived
inference              (In_col + Out_col Out_ch) In_row ceil(In_ch / 64) cycles / clock, per layer published
reception, sending     radio time per byte x bytes, on either side                                derived
=====================  =========================================================================  ==========
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from mapgap.instances.facts import load_devices, unknown
from mapgap.instances.multi_model_splitting.models import Model
from mapgap.problems.multi_model_splitting import Boundary, Device, Layer

RADIO_US_PER_BYTE = 109.8
"""From the extremes of Fig. 7: (161864.5 - 4426.2) ms / (147456 - 4032) bytes = 1.0977 ms/byte, taken as a slipped
decimal, because the mean of the same figure gives 6869.1 ms / 70424 bytes = 0.0975 and UART at 115200 baud 0.0868."""
COPY_US_PER_BYTE = 0.0746
"""Between the memories of MCU and accelerator; fits the mean memory latency of Fig. 7 (10.6 ms per layer of UNet)."""
WEIGHT_BYTES = {"MAX78000": 442_368, "MAX78002": 2_097_152}
"""The paper's 442 KB and 2 MB; the vendor gives 2,396,160 for the MAX78002."""


def make_device(name: str, accelerator: str, sensors: tuple[str, ...], interfaces: tuple[str, ...]) -> Device:
    """Limits of the accelerator from ``devices/synergy.yaml``.

    Raises
    ------
    InputError
        No such accelerator.
    """
    if accelerator not in WEIGHT_BYTES:
        raise unknown("type", accelerator, list(WEIGHT_BYTES))
    facts = load_devices("synergy").of(accelerator)
    return Device(
        name=name,
        weights=WEIGHT_BYTES[accelerator],
        bias=int(facts["bias_mem"].value),
        layers=int(facts["max_layers"].value),
        sensors=sensors,
        interfaces=interfaces,
    )


def _ticks(microseconds: Fraction, tick_ns: int) -> int:
    """Nearest whole tick."""
    return round(microseconds * 1000 / tick_ns)


@cache
def _inference_ticks(cycles: int, hertz: int, tick_ns: int) -> int:
    return _ticks(Fraction(cycles * 10**6, hertz), tick_ns)


def make_pipeline(
    model: Model, accelerators: Sequence[str], rates: tuple[float, float, float], live: bool, tick_ns: int
) -> dict[str, Any]:
    """Fields of a pipeline with a duration per task and device.

    Parameters
    ----------
    accelerators : sequence of str
        Type per device.
    rates : tuple of float
        Microseconds to send or receive a byte, microseconds to load or unload one, milliseconds to sense.
    live : bool
        Bytes at a cut: all live tensors, not only the last output.
    """
    table = load_devices("synergy")
    clocks = [int(table.of(kind)["cnn_clock"].value) for kind in accelerators]  # in Hz, the vendor's default
    n, last = len(clocks), len(model.rows)
    radio, copy, sensing_ms = (Fraction(str(rate)) for rate in rates)
    boundaries = []
    for b, size in enumerate(model.boundary_bytes(live)):
        moved, copied = (_ticks(rate * size, tick_ns) for rate in (radio, copy))
        boundaries.append(
            Boundary(
                bytes=size,
                load=(copied,) * n if b < last else (),
                unload=(copied,) * n if b > 0 else (),
                transmit=(moved,) * n,
                receive=(moved,) * n,
            )
        )
    layers = [
        Layer(
            name=f"{row.index}_{row.op}",
            weights=row.weights,
            bias=row.bias,
            output_bytes=row.out,
            inference=tuple(_inference_ticks(row.cycles, clock, tick_ns) for clock in clocks),
        )
        for row in model.rows
    ]
    return {
        "signal": f"{model.signal}_{model.input_bytes}",
        "model": model.title,
        "sensing": (_ticks(sensing_ms * 1000, tick_ns),) * n,
        "layers": tuple(layers),
        "boundaries": tuple(boundaries),
    }
