"""Configurations of a module: every choice of options that can be part of an optimal plan, found layer by layer.

A *configuration* is one option per layer of a module together with the sides on which the tensors of earlier modules
lie. Modules run one after the other (rule 1 of the problem), so all that the rest of the network sees of it are

- its latency and energy (standby energy included), multipliers and M20K blocks, and
- the *homes*: the sides of the tensors that it reads from earlier modules and of those that later modules read.

Only configurations that no other one with the same homes dominates in those four numbers are kept, and of those only
what fits beside the least demands of all other modules; dominated choices for the first layers (``labels.py``) are
dropped on the way, and equal modules are enumerated once. *Complete* tables leave out nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from mapgap.core import Budget, OutOfTime, PlanBase
from mapgap.formulations.fpga_gpu_partition.dominance import Array, nondominated
from mapgap.formulations.fpga_gpu_partition.labels import (
    ENERGY,
    INPUT,
    LINK,
    M20K,
    MULTIPLIERS,
    Homes,
    Labels,
    Shape,
    Source,
)
from mapgap.problems.fpga_gpu_partition import NETWORK_INPUT, Instance, Plan, Side
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate

L, E, D, U = range(4)
"""Columns of ``Table.values``: latency, energy, multipliers, M20K, by their symbols in the models."""


@dataclass(frozen=True)
class Table:
    """Configurations of one module.

    Attributes
    ----------
    inputs, outputs : tuple of int
        Layers of earlier modules that the module reads; its layers that later modules read (global indices).
    input_on_fpga, output_on_fpga : (n, inputs) and (n, outputs) int64
        1 where the tensors of that layer lie on the FPGA.
    values : (n, 4) int64
        Latency, energy, multipliers, M20K.
    choices : (n, layers) int64
        Index of the option of each layer.
    labels : int
        Labels made during the enumeration.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_on_fpga: Array
    output_on_fpga: Array
    values: Array
    choices: Array
    labels: int

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def least(self) -> Array:
        """(4,): the least latency, energy, multipliers and M20K of a configuration; 0 where there is none."""
        found: Array = self.values.min(axis=0) if len(self) else np.zeros(4, np.int64)
        return found

    @property
    def above(self) -> Array:
        """(n, 4): what every configuration takes above the least of the module."""
        return self.values - self.least

    def homes(self) -> Iterator[tuple[int, Array]]:
        """Every layer whose output another module makes or reads, and (n,) 1 where it lies on the FPGA."""
        for layers, on_fpga in ((self.inputs, self.input_on_fpga), (self.outputs, self.output_on_fpga)):
            for position, layer in enumerate(layers):
                yield layer, on_fpga[:, position]


@dataclass(frozen=True)
class Tables:
    """Configurations of all modules of an instance."""

    instance: Instance
    modules: tuple[Table, ...]

    @cached_property
    def size(self) -> int:
        """Configurations of all modules together."""
        return sum(len(table) for table in self.modules)

    @property
    def empty(self) -> bool:
        """Some module has no configuration that fits."""
        return any(len(table) == 0 for table in self.modules)

    @property
    def shared(self) -> list[int]:
        """Layers whose outputs cross a border between modules, in the order in which modules come upon them."""
        return list(dict.fromkeys(layer for table in self.modules for layer, _ in table.homes()))

    @property
    def least(self) -> tuple[int, int]:
        """Sums over the modules of their least energies and latencies."""
        return sum(int(table.least[E]) for table in self.modules), sum(int(table.least[L]) for table in self.modules)

    def totals(self, choice: list[int]) -> tuple[int, int]:
        """Energy and latency of one configuration per module."""
        rows = [table.values[c] for table, c in zip(self.modules, choice, strict=True)]
        return int(sum(row[E] for row in rows)), int(sum(row[L] for row in rows))

    def plan(self, choice: list[int]) -> Plan:
        """The plan of one configuration per module."""
        numbers = [int(o) for table, c in zip(self.modules, choice, strict=True) for o in table.choices[c]]
        layers = self.instance.layers
        return Plan(options=tuple(layer.options[o].name for layer, o in zip(layers, numbers, strict=True)))

    def worth(self, plan: PlanBase) -> tuple[int, int]:
        """Energy and latency of a plan of these configurations.

        Raises
        ------
        ValueError
            One of its configurations was pruned.
        """
        choice = self.choice(plan)
        if choice is None:
            raise ValueError("expected a plan of kept configurations")
        return self.totals(choice)

    def choice(self, plan: PlanBase) -> list[int] | None:
        """The configurations that a plan takes; ``None`` if one of them was pruned or an option is unknown."""
        assert isinstance(plan, Plan)
        if any(layer.option(n) is None for layer, n in zip(self.instance.layers, plan.options, strict=True)):
            return None
        taken, first = [], 0
        for table in self.modules:
            layers = self.instance.layers[first : first + table.choices.shape[1]]
            names = plan.options[first : first + len(layers)]
            numbers = [[o.name for o in layer.options].index(name) for layer, name in zip(layers, names, strict=True)]
            homes = [self._on_fpga(source, plan) for source in table.inputs]
            same = (table.choices == numbers).all(axis=1) & (table.input_on_fpga == homes).all(axis=1)
            if not same.any():
                return None
            taken.append(int(same.argmax()))
            first += len(layers)
        return taken

    def no_worse(self, plan: PlanBase) -> list[int] | None:
        """Configurations that take no more of anything than a plan within the limits, module by module.

        Every configuration of such a plan was kept, or one that dominates it; ``None`` if an option is unknown.
        """
        assert isinstance(plan, Plan)
        if any(layer.option(n) is None for layer, n in zip(self.instance.layers, plan.options, strict=True)):
            return None
        found = evaluate(self.instance, plan).terms
        taken, first = [], 0
        for m, table in enumerate(self.modules):
            last = first + table.choices.shape[1]
            options = [self.instance.layers[i].option(plan.options[i]) for i in range(first, last)]
            four = [found["module_latency"][m], found["module_energy"][m]]
            four += [sum(getattr(o, name) for o in options if o is not None) for name in ("multipliers", "m20k")]
            fits = (table.values <= four).all(axis=1)
            for layer, on_fpga in table.homes():
                fits &= on_fpga == self._on_fpga(layer, plan)
            if not fits.any():
                return None
            taken.append(int(fits.argmax()))
            first = last
        return taken

    def _on_fpga(self, source: int, plan: Plan) -> int:
        option = self.instance.layers[source].option(plan.options[source])
        return int(option is not None and option.home == "fpga")


def tabulate(instance: Instance, budget: Budget, complete: bool = False) -> Tables:
    """Enumerate the configurations of every module; with ``complete`` dominated ones and those that do not fit, too.

    Raises
    ------
    OutOfTime
    """
    with budget.timed("build"):
        return Tables(instance, tuple(tables_of(instance, budget, complete)))


def tables_of(instance: Instance, budget: Budget, complete: bool = False) -> Iterator[Table]:
    """The tables of :func:`tabulate`, module by module."""
    known: dict[tuple[Shape, int, int], tuple[Array, Array, Array, Array, int]] = {}
    needs = [
        [sum(min(getattr(o, name) for o in layer.options) for layer in module.layers) for module in instance.modules]
        for name in ("multipliers", "m20k")
    ]
    first = 0
    for number, module in enumerate(instance.modules):
        shape, inputs = _shape(instance, first, len(module.layers))
        room = (
            instance.fabric.multipliers - sum(needs[0]) + needs[0][number],  # what the least of all others leaves
            instance.fabric.m20k - sum(needs[1]) + needs[1][number],
        )
        key = (shape, *room)
        if key not in known:
            known[key] = _enumerate(instance, shape, None if complete else room, budget)
        outputs = tuple(first + i for i in shape.exported)
        yield Table(inputs, outputs, *known[key])
        first += len(module.layers)


def _shape(instance: Instance, first: int, count: int) -> tuple[Shape, tuple[int, ...]]:
    """The module of ``count`` layers from ``first`` on, and the earlier layers that it reads."""
    layers = instance.layers[first : first + count]
    inputs = tuple(sorted({r.source for layer in layers for r in layer.reads if NETWORK_INPUT < r.source < first}))
    name: dict[int, Source] = {source: -1 - i for i, source in enumerate(inputs)}
    name |= {first + i: i for i in range(count)} | {NETWORK_INPUT: INPUT}
    later = {r.source for layer in instance.layers[first + count :] for r in layer.reads}
    return Shape(
        options=tuple(layer.options for layer in layers),
        reads=tuple(tuple((name[r.source], r.part, instance.read_bytes(r)) for r in layer.reads) for layer in layers),
        parts=tuple(layer.outputs for layer in layers),
        inputs=tuple(-1 - i for i in range(len(inputs))),
        delivered=tuple(i for i in range(count) if first + i in instance.outputs),
        exported=tuple(i for i in range(count) if first + i in later),
    ), inputs


def _enumerate(
    instance: Instance, shape: Shape, room: tuple[int, int] | None, budget: Budget
) -> tuple[Array, Array, Array, Array, int]:
    """``(input homes, output homes, values, choices, labels made)`` of the configurations of one module.

    With no ``room`` given nothing is left out.
    """
    width, made = M20K + 1 + len(shape.column), 0
    sides: tuple[Side, ...] = ("gpu", "fpga")
    groups = [
        Labels(
            instance,
            shape,
            dict(zip(shape.inputs, homes, strict=True)),
            np.zeros((1, width), np.int64),
            np.zeros((1, 0), np.int64),
        )
        for homes in product(sides, repeat=len(shape.inputs))
    ]
    for position, options in enumerate(shape.options):
        merged: dict[Homes, list[Labels]] = {}
        for group in groups:
            for number in range(len(options)):
                if budget.exhausted:
                    raise OutOfTime
                new = group.extended(position, number)
                made += len(new.values)
                if room is not None:
                    fits = (new.values[:, MULTIPLIERS] <= room[0]) & (new.values[:, M20K] <= room[1])
                    new.values, new.choices = new.values[fits], new.choices[fits]
                merged.setdefault(tuple(sorted(new.homes.items(), key=str)), []).append(new)
        groups = [_merge(parts, budget, keep_all=room is None) for parts in merged.values()]
    return *_finish(instance, shape, groups, budget, keep_all=room is None), made


def _merge(parts: list[Labels], budget: Budget, keep_all: bool) -> Labels:
    """Labels with the same homes as one, unless ``keep_all`` without those that are dominated."""
    first = parts[0]
    values = np.vstack([part.values for part in parts])
    choices = np.vstack([part.choices for part in parts])
    kept = np.arange(len(values)) if keep_all else nondominated(values, budget)
    return Labels(first.instance, first.shape, first.homes, values[kept], choices[kept])


def _finish(
    instance: Instance, shape: Shape, groups: list[Labels], budget: Budget, keep_all: bool
) -> tuple[Array, Array, Array, Array]:
    """Deliver outputs, add standby energy to the makespan (rule 12); unless ``keep_all`` drop what is dominated."""
    inputs, outputs, values, choices = [], [], [], []
    for group in groups:
        group.deliver()
        latency = group.values[:, : LINK + 1].max(axis=1)
        power, unit = instance.standby_mw * instance.tick_ns, 1000 * instance.energy_unit_nj
        energy = group.values[:, ENERGY] - (-latency * power // unit)
        four = np.column_stack([latency, energy, group.values[:, MULTIPLIERS], group.values[:, M20K]])
        kept = np.arange(len(four)) if keep_all else nondominated(four, budget)
        values.append(four[kept])
        choices.append(group.choices[kept])
        homes = group.homes
        inputs.append(np.tile([int(homes[s] == "fpga") for s in shape.inputs], (len(kept), 1)))
        outputs.append(np.tile([int(homes[s] == "fpga") for s in shape.exported], (len(kept), 1)))
    return (
        np.vstack(inputs).astype(np.int64),
        np.vstack(outputs).astype(np.int64),
        np.vstack(values),
        np.vstack(choices),
    )
