"""What placement rules lose on every model and every cluster, beside the certified optimum, as one table.

::

    python -m mapgap.cli.placements
    python -m mapgap.cli.placements my/config.json --cluster home.yaml --set bits=4.5 --set phase=prefill

Without files the shipped models and clusters of :data:`MODELS` and :data:`CLUSTERS` are taken. Each pair is imported as
``mapgap import`` does, solved by an exact method, its optimum proven by a certificate that is checked, and each rule is
worth what the evaluator says of its plan. Percent are those by which a plan takes longer than the optimum.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import mapgap
from mapgap.catalogue import registry
from mapgap.cli.imports import typed
from mapgap.cli.output import complain, facts, table
from mapgap.core import Budget, InputError, InstanceBase, Status, plainly
from mapgap.core.workload import Settings
from mapgap.evidence.prove import prove
from mapgap.importing.assemble import assemble
from mapgap.importing.cluster import load
from mapgap.importing.recognise import read
from mapgap.importing.source import located

PROBLEM = "hybrid_pipeline"
RULES = ("exo", "exo_ring", "llama_cpp")
MODELS = tuple(f"hugging_face/{name}.json" for name in ("llama_3_2_3b", "llama_3_1_8b", "qwen2_5_32b", "llama_3_1_70b"))
CLUSTERS = tuple(
    f"clusters/{name}.yaml"
    for name in (
        *("mac_and_gpu", "three_macs", "four_minis", "large_macs"),
        *("three_gamers", "cheap_memory", "everything", "jetsons"),
    )
)
LIMIT_S = 60.0


@dataclass(frozen=True)
class Row:
    """One model on one cluster.

    Attributes
    ----------
    instance : InstanceBase
    cluster, model : str
    status : str
        Of the optimum: "certified", "solver-proven" or "open"; "certified, no plan" where there is none.
    best : int, optional
    found : mapping
        Rule to the objective of its plan; ``None`` where it has none.
    """

    instance: InstanceBase
    cluster: str
    model: str
    status: str
    best: int | None
    found: dict[str, int | None]

    def loss(self, rule: str) -> float | None:
        """Percent above the optimum."""
        value = self.found[rule]
        return None if value is None or not self.best else 100.0 * (value / self.best - 1)


def measured(model: str, cluster: str, given: dict[str, Any], rules: Sequence[str], objective: str | None) -> Row:
    """Import, solve and prove.

    Raises
    ------
    InputError
        What is wrong with a file or a setting.
    """
    boards = load(located(Path(cluster)))
    settings = Settings({**boards.settings, **given})
    workload = assemble(read([Path(model)], settings), boards, settings).workload
    instance = mapgap.load(registry.library(PROBLEM).imported(workload, settings), objective)
    methods = registry.methods(PROBLEM)
    exact = methods["portfolio"].solve(instance, Budget(LIMIT_S).start())
    best = _value(instance, exact.plan)
    proven = exact.status in (Status.OPTIMAL, Status.INFEASIBLE)
    status = "solver-proven" if proven else "open"
    if proven and prove(instance, best, Budget(LIMIT_S), None).size:
        status = "certified"
    found = {rule: _value(instance, methods[rule].solve(instance, Budget(LIMIT_S).start()).plan) for rule in rules}
    none = ", no plan" if exact.status is Status.INFEASIBLE else ""
    return Row(instance, Path(cluster).stem, Path(model).stem, f"{status}{none}", best, found)


def _value(instance: InstanceBase, plan: Any) -> int | None:
    judged = None if plan is None else registry.problems()[PROBLEM].evaluate(instance, plan)
    return judged.objective if judged is not None and judged.feasible else None


def summary(rows: Sequence[Row], rule: str) -> str:
    """How often a rule is optimal, and by how much its plans are worse."""
    solvable = [row for row in rows if row.best is not None]
    losses = [loss for row in solvable if (loss := row.loss(rule)) is not None]
    missing = len(solvable) - len(losses)
    if not losses:
        return f"no plan on any of {len(solvable)}"
    best = sum(loss == 0 for loss in losses)
    return (
        f"optimal on {best} of {len(solvable)}, median +{median(losses):.1f} %, worst +{max(losses):.1f} %, "
        f"no plan on {missing} that have one"
    )


def shown(rows: Sequence[Row], rules: Sequence[str], title: str) -> None:
    """The table, and a line per rule."""
    unit = registry.problems()[PROBLEM].unit
    columns = ("cluster", "model", "optimum", "proof", *rules)
    lines = []
    for row in rows:
        losses = [row.loss(rule) for rule in rules]
        told = ["no plan" if loss is None else f"+{loss:.1f} %" for loss in losses]
        best = plainly(row.best, unit(row.instance))
        lines.append((row.cluster, row.model, best, row.status, *(told if best is not None else [None] * len(rules))))
    table(title, columns, lines, right=("optimum", *rules))
    facts({rule: summary(rows, rule) for rule in rules})


def main(arguments: Sequence[str] | None = None) -> int:
    """The table of the named models and clusters."""
    parser = argparse.ArgumentParser(prog="python -m mapgap.cli.placements", description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", default=MODELS, help="files of one model each")
    parser.add_argument("--cluster", action="append", help="cluster files")
    parser.add_argument("--set", action="append", dest="settings", default=[], help="name=value")
    parser.add_argument("--objective", help="of the problem")
    parser.add_argument("-m", "--method", action="append", help="rules to measure")
    told = parser.parse_args(arguments)
    rules = tuple(told.method or RULES)
    try:
        given = typed(told.settings)
        unknown = [rule for rule in rules if rule not in registry.methods(PROBLEM)]
        if unknown:
            raise InputError(f"--method {unknown[0]}: expected a method of {PROBLEM}, found {unknown[0]!r}")
        pairs = [(model, cluster) for cluster in told.cluster or CLUSTERS for model in told.models]
        rows = [measured(model, cluster, given, rules, told.objective) for model, cluster in pairs]
    except InputError as error:
        complain(error.problems, label="error")
        return 2
    words = [*(f"{name}={value}" for name, value in given.items()), *([told.objective] if told.objective else [])]
    shown(rows, rules, ", ".join(words) or "as the files say")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
