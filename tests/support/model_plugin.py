"""Small integer programs for the tests of export: the whole batch of ``cli_support.tiny`` on one of its accelerators.

``t_mip`` and ``t_cpsat`` choose the accelerator; ``t_parts`` is one program per accelerator. By the timetables in
``cli_support.tiny`` the plan on A takes 58 ticks, the one on B 114.
"""

from typing import Any

import pulp
from rogue_plugin import alone, good

from mapgap.core import Method, PlanBase
from mapgap.problems.suboperation_mapping import Instance
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.mip import MipModel
from mapgap.solvers.model import Part, Value, row

TICKS = (58, 114)


class Choice(MipModel):
    """Binary ``use[a]``: the batch runs on accelerator a.

    minimise sum_a ticks_a use_a

    (1)  sum_a use_a = 1
    """

    def __init__(self, instance: Instance, allowed: tuple[int, ...] = (0, 1), without: Any = ()) -> None:
        super().__init__("one accelerator")
        self.instance = instance
        names = [instance.accelerators[a].name for a in allowed]
        self.use = {a: pulp.LpVariable(f"use[{name}]", cat="Binary") for a, name in zip(allowed, names, strict=True)}
        self.program += pulp.lpSum(TICKS[a] * use for a, use in self.use.items())
        self.add_rows(without)

    @row(1)
    def one(self) -> None:
        """One accelerator."""
        self.program += pulp.lpSum(self.use.values()) == 1, "(1) one accelerator"

    def assignment(self, plan: PlanBase) -> dict[Any, int]:
        return {use: int(plan == alone(self.instance, a)) for a, use in self.use.items()}

    def plan(self, value: Value) -> PlanBase:
        return alone(self.instance, next(a for a, use in self.use.items() if value(use)))


class Switch(CpSatModel):
    """Boolean ``on_b``: the batch runs on accelerator B; the objective is stated above that of A.

    minimise 56 on_b

    (1)  on_b <= 1
    """

    def __init__(self, instance: Instance, without: Any = ()) -> None:
        super().__init__()
        self.instance = instance
        self.constant = TICKS[0]
        self.on_b = self.program.new_bool_var("on[B]")
        self.program.minimize((TICKS[1] - TICKS[0]) * self.on_b)
        self.add_rows(without)

    @row(1, implied=True)
    def once(self) -> None:
        """At most once."""
        self.program.add(self.on_b <= 1).with_name("(1) at most once")

    def assignment(self, plan: PlanBase) -> dict[Any, int]:
        return {self.on_b: int(plan == alone(self.instance, 1))}

    def plan(self, value: Value) -> PlanBase:
        return alone(self.instance, value(self.on_b))


def whole(instance: Instance) -> list[Part]:
    return [Part("", lambda complete=False, without=(): Choice(instance, without=without))]


def switch(instance: Instance) -> list[Part]:
    return [Part("", lambda complete=False, without=(): Switch(instance, without))]


def one_each(instance: Instance) -> list[Part]:
    return [
        Part(f"only {accelerator.name}", lambda complete=False, without=(), a=a: Choice(instance, (a,), without))
        for a, accelerator in enumerate(instance.accelerators)
    ]


def _method(name: str, models: Any) -> Method:
    return Method(name, "suboperation_mapping", "baseline", "tests", good, models=models)


METHODS = [_method("t_mip", whole), _method("t_cpsat", switch), _method("t_parts", one_each)]
