"""Open dimensions of an ONNX model: which of them is the batch, and what the user says of the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

import onnx

from mapgap.core.workload import Settings

ANONYMOUS = ("", "?", "-1", "*", "None", "none")
MOST = 2**31


@dataclass
class _Open:
    """An open dimension: its place, and what the model calls it."""

    value: str
    place: int
    rank: int
    name: str
    dimension: onnx.TensorShapeProto.Dimension

    @property
    def own(self) -> str:
        """The name of this dimension alone."""
        return f"{self.value}_dim{self.place}"

    @property
    def batch(self) -> bool:
        """Is it called the batch? Not ``batch * heads``."""
        return re.fullmatch(r"\w*batch\w*", self.name.replace("-", "_"), re.IGNORECASE) is not None


@dataclass(frozen=True)
class Batch:
    """The batch of a model whose dimensions are fixed.

    Attributes
    ----------
    samples : int
    fixed : bool
        The model fixes it.
    said : str
        Where it stands.
    """

    samples: int
    fixed: bool
    said: str


def inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """What a model reads: inputs that are no weights."""
    constants = {each.name for each in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def fix(model: onnx.ModelProto, settings: Settings, batch: int = 1) -> Batch:
    """Give every input whole dimensions.

    The batch is every open dimension with "batch" in its name; without any the first dimension of every input of two or
    more dimensions, wherever its name stands again, unless a setting tells it. Other open dimensions are settings: by
    their name, or each by itself as ``<input>_dim<place>``, as those without a name are.
    """
    opened = _opened(model)
    named = {each.name for each in opened if each.batch}
    if named:
        said = f"the dimension {', '.join(map(repr, sorted(named)))} is the batch"
    else:
        first = [each for each in opened if each.place == 0 and each.rank > 1 and each.name not in settings.given]
        named = {each.name for each in first}
        said = "the first dimension of every input is the batch"
    asked: dict[str, list[_Open]] = {}
    found = False
    for each in opened:
        anonymous = each.name in ANONYMOUS
        if each.own in settings.given:
            asked[each.own] = [each]
        elif named and each.place == 0 if anonymous else each.name in named:
            each.dimension.dim_value, found = batch, True
        else:
            asked.setdefault(each.own if anonymous else each.name, []).append(each)
    for name, group in asked.items():
        size = settings.whole(name, _meaning(group), least=1, most=MOST)
        for each in group:
            each.dimension.dim_value = size
    if found:
        return Batch(batch, False, said)
    return _fixed(model)


def _fixed(model: onnx.ModelProto) -> Batch:
    """The batch of a model that leaves none open."""
    for value in inputs(model):
        dims = value.type.tensor_type.shape.dim
        if len(dims) > 1:
            said = f"the first dimension of {value.name} is a batch of {dims[0].dim_value}"
            return Batch(min(dims[0].dim_value, MOST) or 1, True, said)
    return Batch(1, True, "a run is one sample")


def _opened(model: onnx.ModelProto) -> list[_Open]:
    found = []
    for value in inputs(model):
        dims = value.type.tensor_type.shape.dim
        for k, dimension in enumerate(dims):
            if not (dimension.HasField("dim_value") and dimension.dim_value > 0):
                found.append(_Open(value.name, k, len(dims), dimension.dim_param.strip(), dimension))
    return found


def _meaning(group: list[_Open]) -> str:
    """What a setting stands for, in words."""
    places: dict[int, list[str]] = {}
    for each in group:
        places.setdefault(each.place, []).append(repr(each.value))
    said = [
        f"dimension {place} of the input{'s' if len(names) > 1 else ''} {', '.join(names)}"
        for place, names in places.items()
    ]
    alone = [each.own for each in group] if len({each.value for each in group}) < len(group) else []
    return " and ".join(said) + (f"; each by itself as {', '.join(alone)}" if alone else "")
