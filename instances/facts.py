"""Facts that instances are made of: layer tables of networks and data of devices, as typed, checked, cached values.

The YAML files next to this module carry the provenance of every number. ``networks/<name>.yaml`` holds one row per
operator, ``devices/<name>.yaml`` one fact per row with its status (published, derived, assumed).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from mapgap.core import Finding, Frozen, InputError, Location, suggest

ROOT = Path(__file__).parent
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Columns of a layer table in the order of the files; the model's field names are spelt out.
_COLUMNS = {"i": "index", "from": "inputs", "hin": "height_in", "win": "width_in", "hout": "height", "wout": "width"}
_COLUMNS |= {"k": "kernel", "s": "stride", "p": "padding", "g": "groups"}
NETWORK_INPUT = -1
"""What a row lists under ``from`` when it reads the network input."""


class Row(Frozen):
    """One operator of a convolutional network; all sizes are per sample.

    Attributes
    ----------
    index : int
        Position in the table.
    name, type : str
        ``type`` is conv, fc, bn, maxpool, avgpool, add, mul, cat, split, upsample or padshortcut.
    inputs : tuple of int
        Producing rows; -1 is the network input.
    cin, cout, height_in, width_in, height, width : int
        Channels and pixels of input and output.
    kernel, stride, padding, groups : int
        0 where the operator has none.
    params, macs, out : int
        Parameters, multiply-accumulates of the forward pass, output elements.
    """

    index: int = Field(ge=0)
    name: str
    type: str
    inputs: tuple[int, ...] = Field(min_length=1)
    cin: int = Field(ge=1)
    cout: int = Field(ge=1)
    height_in: int = Field(ge=1)
    width_in: int = Field(ge=1)
    height: int = Field(ge=1)
    width: int = Field(ge=1)
    kernel: int = Field(ge=0)
    stride: int = Field(ge=0)
    padding: int = Field(ge=0)
    groups: int = Field(ge=0)
    params: int = Field(ge=0)
    macs: int = Field(ge=0)
    out: int = Field(ge=1)


class Network(Frozen):
    """Layer table of a convolutional network.

    Attributes
    ----------
    name : str
        File name without suffix.
    title : str
    input_chw : tuple of int
        Channels, height and width of the input.
    rows : tuple of Row
        In topological order.
    params, macs, out : int
        Totals stated by the file; they equal the sums over the rows.
    """

    name: str
    title: str
    input_chw: tuple[int, int, int]
    rows: tuple[Row, ...] = Field(min_length=1)
    params: int
    macs: int
    out: int

    @model_validator(mode="after")
    def _check(self) -> Network:
        found = [
            f"rows[{position}] ({row.name}): expected producers among the rows before, found {row.inputs}"
            for position, row in enumerate(self.rows)
            if row.index != position or any(not NETWORK_INPUT <= i < position for i in row.inputs)
        ]
        for column in ("params", "macs", "out"):
            total = sum(getattr(row, column) for row in self.rows)
            if total != getattr(self, column):
                found.append(f"totals.{column}: expected the sum of the rows {total}, found {getattr(self, column)}")
        if found:
            raise ValueError("\n".join(found))
        return self


class Fact(Frozen):
    """One number (or word) about a device and where it comes from."""

    device: str
    item: str
    value: int | float | str
    unit: str
    status: str
    seen: str
    src: str


class Devices(Frozen):
    """A table of device facts and the clusters made of the devices.

    A device named ``PART (BOARD)`` answers to the part and to the board.
    """

    facts: tuple[Fact, ...]
    clusters: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    def names(self) -> list[str]:
        """Every name a device answers to."""
        return list(self._by_name)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for fact in self.facts:
            for name in fact.device.removesuffix(")").split(" ("):
                found.setdefault(name, fact.device)
        return found

    def of(self, name: str) -> dict[str, Fact]:
        """Facts of one device by item.

        Raises
        ------
        KeyError
            No such device.
        """
        device = self._by_name[name]
        return {fact.item: fact for fact in self.facts if fact.device == device}


def read_yaml(path: Path) -> Any:
    """Plain data of a library file."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


def read_table(path: Path, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A library file whose ``rows`` have ``columns``, with the rows by column; ``names`` spells columns out."""
    data: dict[str, Any] = read_yaml(path)
    columns = [(names or {}).get(column, column) for column in data["columns"]]
    return data | {"columns": columns, "rows": [dict(zip(columns, row, strict=True)) for row in data["rows"]]}


def network_names() -> list[str]:
    """Networks of the library, alphabetically; only convolutional ones have a :class:`Network`."""
    return sorted(path.stem for path in (ROOT / "networks").glob("*.yaml"))


def unknown(field: str | Location, name: str, known: list[str]) -> InputError:
    """The error for a name that the library does not have, with the nearest one it has."""
    text = f"expected one of {', '.join(known)}; found {name!r}{suggest(str(name), known)}"
    return InputError(Finding(text, (field,) if isinstance(field, str) else field))


@cache
def load_network(name: str) -> Network:
    """The layer table of a convolutional network.

    Raises
    ------
    InputError
        No such network, or its table has other columns (a transformer), or the file is inconsistent.
    """
    if name not in network_names():
        raise unknown("network", name, network_names())
    data = read_table(ROOT / "networks" / f"{name}.yaml", _COLUMNS)
    if set(data["columns"]) != set(Row.model_fields):
        text = f"expected a convolutional network, found {name!r} ({data['model']})"
        raise InputError(Finding(text, ("network",)))
    totals = data["totals"]
    content = {
        "name": name,
        "title": data["model"],
        "input_chw": data["input_chw"],
        "rows": data["rows"],
        **{column: totals[column] for column in ("params", "macs", "out")},
    }
    try:
        return Network.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise InputError(f"networks/{name}.yaml: {error}") from error


@cache
def load_devices(name: str) -> Devices:
    """A table of device facts, ``devices/<name>.yaml``.

    Raises
    ------
    InputError
        No such table, or it is malformed.
    """
    path = ROOT / "devices" / f"{name}.yaml"
    if not path.is_file():
        raise unknown("devices", name, sorted(p.stem for p in path.parent.glob("*.yaml")))
    data = read_table(path)
    try:
        return Devices.model_validate_json(json.dumps({"facts": data["rows"], "clusters": data.get("clusters", {})}))
    except ValidationError as error:
        raise InputError(f"devices/{name}.yaml: {error}") from error
