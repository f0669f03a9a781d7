"""``mapgap.explain``: why a plan is not better, in a script or a notebook."""

from __future__ import annotations

from mapgap.catalogue import registry
from mapgap.core import PlanTable, resolve
from mapgap.evidence import explain as asked
from mapgap.interface.arguments import PlanLike, budget_of, plan_of
from mapgap.interface.display import Chart, table_html, table_text
from mapgap.interface.functions import InstanceLike, load


class Explained:
    """Why a plan is not better; a notebook shows it as three tables.

    Attributes
    ----------
    objective : int
        Of the plan that is explained.
    best : int
        Of the best plan known.
    bound : int or None
        Of the instance.
    plan, best_plan : PlanBase
    sentence : str
        What binds the plan.
    binding, decisions, relaxations : PlanTable or None
        What its value is made of; the way to the best plan, one decision after the other; what relaxations would bring.
    """

    def __init__(self, found: asked.Explanation) -> None:
        self._found = found
        self.objective, self.best, self.bound = found.value, found.optimum, found.bound
        self.plan, self.best_plan = found.plan, found.best
        self.sentence, self.binding = found.binding.sentence, found.binding.table
        self.decisions, self.relaxations = found.decisions, found.relaxations

    @property
    def steps(self) -> tuple[asked.Step, ...]:
        """The way to the best plan, as numbers."""
        return self._found.steps

    def chart(self) -> Chart:
        """Both plans on one time axis, and the way from one to the other."""
        return Chart(resolve("mapgap.reporting.explained:picture")(self._found))

    def _tables(self) -> list[tuple[str, PlanTable]]:
        named = (
            (self.sentence, self.binding),
            ("From this plan to the best one", self.decisions),
            ("What a relaxation would bring", self.relaxations),
        )
        return [(title, table) for title, table in named if table is not None]

    def __repr__(self) -> str:
        head = f"{self._found.instance.name}: {self._found.method} {self.objective:,}, best known {self.best:,}"
        parts = ["\n".join([title, *table_text(t.columns, t.rows)]) for title, t in self._tables()]
        return "\n\n".join([head, *parts])

    def _repr_html_(self) -> str:
        return "".join(table_html(t.columns, t.rows, title) for title, t in self._tables())


def explain(
    instance: InstanceLike,
    plan: PlanLike | None = None,
    *,
    method: str | None = None,
    objective: str | None = None,
    time_limit: float = 10.0,
    workers: int = 1,
    seed: int = 0,
    relax: bool = True,
) -> Explained:
    """Say what binds a plan, which of its decisions cost how much, and what more of something would bring.

    Parameters
    ----------
    plan : plan, result, mapping, or path, optional
        Default: that of ``method``.
    method : str, optional
        By name; default: the first published method that finds a plan.
    time_limit : float
        Seconds of every run: of the method, of the exact method where the ledger does not know the instance, and of the
        exact method on every relaxation.
    relax : bool
        Also solve the relaxations.

    Raises
    ------
    InputError
        Something is wrong with the instance, the plan or an argument; the plan breaks a rule; or none was found.
    """
    loaded = load(instance, objective)
    given = None if plan is None else plan_of(registry.problems()[loaded.problem], plan)
    budget = budget_of(time_limit, None, workers, seed)
    found = asked.explain(loaded, plan=given, source="plan", method=method, budget=budget, relax=relax)
    return Explained(found)
