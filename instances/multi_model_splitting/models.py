"""The eight models of Synergy's Table 1, per layer, from ``instances/networks/synergy/*.yaml``.

The layer tables are those of the accelerator vendor's training and synthesis repositories, in the authors' forks;
their layer counts and model bytes equal Table 1. Two cycle counts are kept per layer: the equation of Sec. 5.4.1 and
the vendor's latency estimator, whose mean over the layers is what Table 1 prints as "Avg. Out Size".
"""

from __future__ import annotations

import json
from functools import cache
from math import prod

from pydantic import Field, ValidationError, model_validator

from mapgap.core import Frozen, InputError
from mapgap.instances.facts import NETWORK_INPUT, ROOT, read_table, unknown

FOLDER = ROOT / "networks" / "synergy"
TITLES = {
    "convnet5": "ConvNet5",
    "kws": "KWS",
    "simplenet": "SimpleNet",
    "widenet": "WideNet",
    "ressimplenet": "ResSimpleNet",
    "unet": "UNet",
    "efficientnetv2": "EfficientNetV2",
    "mobilenetv2": "MobileNetV2",
}
"""File stem to the name in Table 1, in the order of Table 1."""
AUDIO = ("kws",)
"""Models that listen; the others see (Table 1, column "Sensing")."""
SIGNALS = ("image", "audio")
"""What models sense."""
_COLUMNS = {"i": "index", "from": "inputs", "wbytes": "weights", "bbytes": "bias"}
_KEPT = ("index", "op", "inputs", "weights", "bias", "macs", "out", "cycles", "estimated_cycles")
_COLUMNS |= {"cyc_eq": "cycles", "cyc_izer": "estimated_cycles"}


class Row(Frozen):
    """One layer as it runs on the accelerator.

    Attributes
    ----------
    index : int
    op : str
        conv1d, conv2d, convtranspose2d, mlp, passthrough, add or avgpool.
    inputs : tuple of int
        Producing rows; -1 is the model's input.
    weights, bias : int
        Bytes.
    macs : int
    out : int
        Output bytes (8-bit elements).
    cycles : int
        Equation of Sec. 5.4.1 with the input as it is after pooling; 0 for layers without convolution.
    estimated_cycles : int
        The vendor's latency estimator.
    """

    index: int = Field(ge=0)
    op: str
    inputs: tuple[int, ...] = Field(min_length=1)
    weights: int = Field(ge=0)
    bias: int = Field(ge=0)
    macs: int = Field(ge=0)
    out: int = Field(ge=1)
    cycles: int = Field(ge=0)
    estimated_cycles: int = Field(ge=0)


class Model(Frozen):
    """A model of Table 1.

    Attributes
    ----------
    name, title : str
        File stem and the paper's name.
    input_bytes : int
        8-bit elements.
    rows : tuple of Row
    printed_layers, printed_bytes, printed_average : int
        Table 1: layers, model size, "Avg. Out Size".
    """

    name: str
    title: str
    input_bytes: int
    rows: tuple[Row, ...] = Field(min_length=1)
    printed_layers: int
    printed_bytes: int
    printed_average: int

    @property
    def model_bytes(self) -> int:
        """Weights and bias."""
        return sum(row.weights + row.bias for row in self.rows)

    @property
    def signal(self) -> str:
        """What is sensed: ``audio`` or ``image``."""
        return "audio" if self.name in AUDIO else "image"

    @property
    def average_cycles(self) -> float:
        """Accelerator cycles per layer of the vendor's estimator."""
        return sum(row.estimated_cycles for row in self.rows) / len(self.rows)

    @property
    def average_output(self) -> float:
        """Output bytes per layer."""
        return sum(row.out for row in self.rows) / len(self.rows)

    def boundary_bytes(self, live: bool = False) -> list[int]:
        """Bytes that cross each boundary 0..L.

        Parameters
        ----------
        live : bool
            Every tensor that a later layer still reads; otherwise the output of the last layer before the boundary,
            as the paper counts.
        """
        found = [self.input_bytes, *(row.out for row in self.rows)]
        if not live:
            return found
        for b in range(1, len(self.rows)):
            read = {i for row in self.rows[b:] for i in row.inputs if i < b}
            found[b] = sum(self.input_bytes if i == NETWORK_INPUT else self.rows[i].out for i in read)
        return found

    @model_validator(mode="after")
    def _check(self) -> Model:
        found = []
        for position, row in enumerate(self.rows):
            if row.index != position or any(not NETWORK_INPUT <= i < position for i in row.inputs):
                found.append(f"rows[{position}]: expected producers among the rows before, found {row.inputs}")
        if len(self.rows) != self.printed_layers:
            found.append(f"rows: expected {self.printed_layers} (Table 1), found {len(self.rows)}")
        if self.model_bytes != self.printed_bytes:
            found.append(f"rows: expected {self.printed_bytes} bytes (Table 1), found {self.model_bytes}")
        if found:
            raise ValueError("\n".join(found))
        return self


@cache
def load_model(name: str) -> Model:
    """A model by file stem or by the paper's name.

    Raises
    ------
    InputError
        No such model, or its file contradicts itself or Table 1.
    """
    stem = name.lower()
    if stem not in TITLES:
        raise unknown("model", name, list(TITLES))
    data = read_table(FOLDER / f"{stem}.yaml", _COLUMNS)
    printed = data["table1"]
    content = {
        "name": stem,
        "title": data["model"],
        "input_bytes": prod(data["input_chw"]),
        "rows": [{key: row[key] for key in _KEPT} for row in data["rows"]],
        "printed_layers": printed["layers"],
        "printed_bytes": printed["model_bytes"],
        "printed_average": printed["avg_out_size"],
    }
    try:
        return Model.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise InputError(f"networks/synergy/{stem}.yaml: {error}") from error
