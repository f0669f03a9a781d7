"""Is all of a model in its layers: weights, multiply-accumulates, time, inputs and outputs?

A reader counts what its file holds apart from the layers that it makes of it (:class:`~mapgap.importing.graph.Total`);
here both are compared, for every format in the same way. What is lost beyond 1 % is an error, since a plan of a part of
a model is not a plan of the model. The whole run beside the sum of its operators is compared too; what lies between
them beyond 10 % is a warning.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mapgap.core import Finding, InputError

if TYPE_CHECKING:  # start-up: graphs need NetworkX
    from mapgap.importing.graph import LayerGraph, Total

WITHIN = 0.01
RUN_WITHIN = 0.10
UNITS = {"weights": "bytes", "products": "multiply-accumulates", "inputs": "", "outputs": "", "kernels": "ns"}
WORDS = {"products": "multiply-accumulates", "kernels": "time of operators", "run": "whole run"}


@dataclass(frozen=True)
class Share:
    """How much of a total the layers hold.

    Attributes
    ----------
    total : Total
    held : float
        In the unit of the total.
    """

    total: Total
    held: float

    @property
    def ratio(self) -> float:
        """Held over total; 1 where there is nothing to hold."""
        if self.total.amount:
            return self.held / self.total.amount
        return 1.0 if not self.held else float("inf")

    @property
    def broken(self) -> bool:
        return self.total.quantity != "run" and abs(self.ratio - 1) > WITHIN

    @property
    def apart(self) -> bool:
        """Do the whole run and the sum of its operators differ by more than 10 %?"""
        return self.total.quantity == "run" and abs(self.ratio - 1) > RUN_WITHIN

    def data(self) -> dict[str, object]:
        """As data of a JSON output."""
        total = self.total
        where = {"kind": total.kind, "batch": total.batch} if total.kind else {}
        load = {} if total.load is None else {"load": total.load}
        return {"quantity": total.quantity, **where, "held": self.held, "total": total.amount, **load}

    def warning(self) -> str:
        """What is to be thought of a whole run that is far from the sum of its operators."""
        total = self.total
        load = "" if total.load is None else f" at a load of {total.load:.2f} per core"
        return (
            f"{total.kind}, batch {total.batch}: the operators add up to {100 * self.ratio:.0f} % of the whole run"
            f"{load}; expected 90 to 110 %: times of this profile are worth less than they say"
        )

    def __str__(self) -> str:
        total = self.total
        where = f" ({total.kind} at {total.batch})" if total.kind else ""
        if total.quantity in ("inputs", "outputs"):
            return f"{total.quantity} {self.held:.0f} of {total.amount:.0f}"
        word = WORDS.get(total.quantity, total.quantity)
        beside = "operators over " if total.quantity == "run" else ""
        return f"{beside}{word}{where} {100 * self.ratio:.4g} %"


def named_after(name: str, known: Container[str]) -> str | None:
    """The longest known name from which a name goes on: ``conv1/Fusion`` and ``conv1_nchwc`` from ``conv1``."""
    for stop in range(len(name), 0, -1):
        if name[:stop] in known and not name[stop : stop + 1].isalnum():
            return name[:stop]
    return None


def shares(graph: LayerGraph) -> list[Share]:
    """What the layers of a graph hold of every total of its file."""
    held = [(total, _held(graph, total)) for total in graph.totals]
    return [Share(total, value) for total, value in held if value is not None]


def line(found: Sequence[Share]) -> str:
    """One line: every quantity with its share; of several times of one kind the one that is furthest off."""
    worst: dict[str, Share] = {}
    for share in found:
        known = worst.get(share.total.quantity)
        if known is None or abs(share.ratio - 1) > abs(known.ratio - 1):
            worst[share.total.quantity] = share
    return ", ".join(map(str, worst.values())) or "not told by the file"


def check(graph: LayerGraph) -> list[Share]:
    """The shares of a graph.

    Raises
    ------
    InputError
        Something is not conserved within 1 %; the parts that no layer holds are named, the largest first.
    """
    found = shares(graph)
    wrong = []
    for share in found:
        if share.broken:
            total = share.total
            lost = sorted(total.lost, key=lambda name: -total.lost[name])
            named = f"; no layer holds {', '.join(lost[:5])}" + (f" ({len(lost)} in all)" if len(lost) > 5 else "")
            amounts = f"{share.held:,.0f} of {total.amount:,.0f} {UNITS[total.quantity]}".rstrip()
            text = (
                f"expected all {WORDS.get(total.quantity, total.quantity)} of the model in its layers, found {amounts}"
            )
            wrong.append(Finding(text + (named if lost else ""), place=graph.name))
    if wrong:
        raise InputError(wrong)
    return found


def _held(graph: LayerGraph, total: Total) -> float | None:
    """The sum over layers; ``None`` where a layer does not say it."""
    layers = [graph.layer(name) for name in graph.graph]
    if total.quantity == "weights":
        return sum(layer.weight_bytes for layer in layers)
    if total.quantity == "products":
        known = [layer.macs for layer in layers if layer.macs is not None]
        return sum(known) if len(known) == len(layers) else None
    if total.quantity in ("inputs", "outputs"):
        return total.amount - sum(total.lost.values())
    times = graph.times.get(total.kind, {})
    points = [times.get(name, {}).get(total.batch) for name in graph.graph]
    return sum(point.forward for point in points if point is not None)
