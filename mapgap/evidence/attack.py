"""Adversary: the instance of a random family on which a method is worst against the certified optimum.

Three phases share the time. *Sample*: seeds of the family. *Climb*: the worst instance so far with a few of its
integers changed, each within the range that its field was seen to have in the family: without that, every heuristic
is arbitrarily bad on instances that nobody has. *Shrink*: parts left out (the problem's ``shrink``) and integers
rounded or made the smallest seen, as long as the ratio stays.
The ratio of an instance is certain: with an exact method's plan ``p`` and proven bound ``b`` and the method's objective
``v``, minimising, the loss factor lies in ``[v / p, v / b]``; the search raises the lower end. An instance on which the
method finds nothing although a plan exists, or, maximising, only a plan worth 0, is counted apart, for no finite number
describes it. Zeros stay zeros and nothing becomes one: most say that something is absent (the FPGA's ticks of an option
that only uses the GPU), and with them in the ranges an operation would take no time.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mapgap.catalogue import registry
from mapgap.catalogue.files import retarget, save_expanded
from mapgap.core import Budget, InputError, InstanceBase, Method, PlanError, Problem, suggest
from mapgap.evidence.contradictions import contradictions
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.run import run_method
from mapgap.records.record import RunRecord

SAMPLE, CLIMB = 0.4, 0.8  #: ends of the first two phases, as shares of the time
KEEP = 0.999  #: share of the ratio that a smaller instance must keep
EXACT_S = 5.0  #: seconds of the exact method on one instance
#: Fields that are no data: changing them changes nothing, or another problem is posed.
FIXED = {"schema", "form", "problem", "name", "source", "tags", "objective", "tick_ns", "memory_unit_bytes"}


Ranges = dict[str, tuple[int, int]]
"""Least and largest value of every field seen in a family, zeros aside."""


@dataclass(frozen=True)
class Hit:
    """An instance and how much the method loses on it.

    Attributes
    ----------
    ratio : float
        Certain: the loss factor is at least this.
    limit : float
        And at most this; equal to ``ratio`` if the optimum is proven.
    """

    instance: InstanceBase
    ratio: float
    limit: float
    value: int
    plan: int
    bound: int
    method: str
    exact: str

    @property
    def proven(self) -> bool:
        return self.plan == self.bound

    def to_json(self) -> dict[str, Any]:
        keys = ("ratio", "limit", "value", "plan", "bound", "method", "exact", "proven")
        where = {"instance": self.instance.name, "instance_hash": self.instance.content_hash}
        return {"problem": self.instance.problem, **where, **{key: getattr(self, key) for key in keys}}


@dataclass(frozen=True)
class Tried(Event):
    """The search has measured another instance: in which phase, how many by now, and the worst hit so far."""

    method: str
    phase: str
    tried: int
    worst: Hit | None


@dataclass
class Attack:
    """A search in progress; :meth:`run` does all of it.

    Parameters
    ----------
    family : str
        Generator of the problem's library that the instances come from.
    objective : str, optional
        Replaces that of the family's instances.
    tell : callable, optional
        Receives :class:`Tried` after every instance.
    """

    problem: Problem
    method: Method
    family: str
    time_s: float
    seed: int = 0
    exact: Method | None = None
    options: dict[str, Any] = field(default_factory=dict)
    objective: str | None = None
    tell: Tell = silence
    worst: Hit | None = None
    tried: int = 0
    failures: int = 0  # instances on which the method found no plan although there is one
    worthless: int = 0  # maximising: on which its plan is worth 0, and a better one exists
    ranges: Ranges = field(default_factory=dict)

    def __post_init__(self) -> None:
        families = registry.library(self.problem.name).families
        if self.family not in families:
            known = ", ".join(sorted(families))
            raise InputError(
                f"--family: expected one of {known}; found {self.family!r}{suggest(self.family, families)}"
            )
        if self.method.kind not in ("published", "baseline"):
            raise InputError(f"--method: expected a published method or a baseline, found {self.method.name}")
        self.exact = self.exact or registry.strongest_exact(self.problem.name)
        self._begin = time.perf_counter()

    def run(self) -> Hit | None:
        """The worst instance found, shrunk; ``None`` if the method was optimal everywhere or found nothing."""
        self._begin = time.perf_counter()
        rng = random.Random(self.seed)
        seed = self.seed
        while self.spent < CLIMB:
            if self.spent < SAMPLE or self.worst is None or self.worst.ratio <= 1.0:
                instance = self.sample(seed)
                widen(self.ranges, instance)
                self._try("sample", instance)
                seed += 1
                continue
            changed = mutate(self.worst.instance, self.ranges, rng)
            if changed is not None:
                self._try("climb", changed)
        self._shrink()
        return self.worst

    def sample(self, seed: int) -> InstanceBase:
        """The family's instance of a seed, under the objective of the search."""
        instance = registry.library(self.problem.name).generate(self.family, seed)
        return instance if self.objective is None else retarget(instance, self.objective)

    @property
    def spent(self) -> float:
        """Share of the time that is over; the phases end by it."""
        return (time.perf_counter() - self._begin) / self.time_s

    def _try(self, phase: str, instance: InstanceBase, keep: float | None = None) -> bool:
        """Evaluate; whether the instance became the worst (or, ``keep``, at least kept that ratio)."""
        hit = self.measure(instance)
        taken = hit is not None and (
            hit.ratio >= keep if keep is not None else self.worst is None or hit.ratio > self.worst.ratio
        )
        if taken:
            self.worst = hit
        self.tell(Tried(self.method.name, phase, self.tried, self.worst))
        return taken

    def measure(self, instance: InstanceBase) -> Hit | None:
        """Both methods on one instance; ``None`` where no ratio is defined.

        Raises
        ------
        PlanError
            The exact method is wrong about the instance: no ratio to its bound would mean anything.
        """
        assert self.exact is not None
        self.tried += 1
        heuristic = self.solve(self.method, instance, EXACT_S, self.options)
        if heuristic.refuted or heuristic.error:
            return None
        certified = self.solve(self.exact, instance, EXACT_S, {})
        wrong = [certified.error or ""] if certified.refuted else list(map(str, contradictions([heuristic, certified])))
        if wrong:
            raise PlanError(f"{instance.name}: {self.exact.name} is refuted: {'; '.join(wrong)}")
        if certified.objective is None or not certified.sure_bound or not certified.objective:
            return None
        if heuristic.objective is None:
            self.failures += 1
            return None
        if heuristic.objective == 0:
            self.worthless += 1
            return None
        value, plan, bound = heuristic.objective, certified.objective, certified.sure_bound
        low, high = (value / plan, value / bound) if self.problem.sense == "min" else (plan / value, bound / value)
        return Hit(instance, low, high, value, plan, bound, self.method.name, self.exact.name)

    def solve(self, method: Method, instance: InstanceBase, time_s: float, options: dict[str, Any]) -> RunRecord:
        """One run of either method."""
        # In this process: thousands of small runs, each too short for a process of its own.
        return run_method(instance, method, Budget(time_s, seed=self.seed), options=options, isolate=False)

    def _shrink(self) -> None:
        """Leave parts out and round integers until nothing can go or the time is over."""
        progress = True
        while progress and self.worst is not None and self.worst.ratio > 1.0:
            progress = False
            target = KEEP * self.worst.ratio
            parts = registry.library(self.problem.name).shrink(self.worst.instance)
            for candidate in (*parts, *rounded(self.worst.instance, self.ranges)):
                if self.spent >= 1.0:
                    return
                if self._try("shrink", candidate, keep=target):
                    progress = True
                    break


def integers(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all integers of plain data that are instance data."""
    if isinstance(data, dict):
        for key, value in data.items():
            if path or key not in FIXED:
                yield from integers(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from integers(value, (*path, index))
    elif isinstance(data, int) and not isinstance(data, bool):
        yield path


def changeable(data: Any) -> list[tuple[Any, ...]]:
    """Paths of the integers that may change."""
    return [path for path in integers(data) if _holder(data, path)[path[-1]]]


def _holder(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        data = data[step]
    return data


def _field(path: tuple[Any, ...]) -> str:
    """Field of an integer: the named steps of its path."""
    return ".".join(step for step in path if isinstance(step, str))


def widen(ranges: Ranges, instance: InstanceBase) -> None:
    """Take an instance's integers, but for zeros, into the ranges of their fields."""
    data = instance.to_json()
    for path in integers(data):
        value = _holder(data, path)[path[-1]]
        low, high = ranges.get(_field(path), (value, value))
        if value:
            ranges[_field(path)] = (min(low, value), max(high, value))


def _parsed(instance: InstanceBase, data: Any) -> InstanceBase | None:
    """The changed data as an instance; ``None`` if they are none, or the same."""
    try:
        found = type(instance).model_validate_json(json.dumps(data))
    except ValidationError:
        return None
    return None if found.content_hash == instance.content_hash else found


def _within(ranges: Ranges, path: tuple[Any, ...], value: int) -> int:
    low, high = ranges.get(_field(path), (value, value))
    return min(max(value, low), high)


def mutate(instance: InstanceBase, ranges: Ranges, rng: random.Random, attempts: int = 50) -> InstanceBase | None:
    """The instance with one to four integers scaled or set to a neighbour's value; ``None`` if no attempt is valid."""
    data = instance.to_json()
    paths = changeable(data)
    for _ in range(attempts if paths else 0):
        changed = copy.deepcopy(data)
        for _ in range(rng.randint(1, 4)):
            path = rng.choice(paths)
            others = [other for other in paths if _field(other) == _field(path)]
            value = _holder(changed, path)[path[-1]]
            if rng.random() < 0.7:
                value = round(value * rng.choice((0.0, 0.3, 0.7, 0.9, 1.1, 1.5, 3.0)))
            else:
                other = rng.choice(others)
                value = _holder(changed, other)[other[-1]]
            _holder(changed, path)[path[-1]] = _within(ranges, path, value)
        found = _parsed(instance, changed)
        if found is not None:
            return found
    return None


def rounded(instance: InstanceBase, ranges: Ranges) -> Iterator[InstanceBase]:
    """Simpler data: all integers of one field rounded to one or two digits, or one integer made its field's least."""
    data = instance.to_json()
    paths = changeable(data)
    for digits in (1, 2):
        for name in dict.fromkeys(_field(path) for path in paths):
            changed = copy.deepcopy(data)
            for path in paths:
                if _field(path) == name:
                    holder = _holder(changed, path)
                    holder[path[-1]] = _within(ranges, path, _leading(holder[path[-1]], digits))
            found = _parsed(instance, changed)
            if found is not None:
                yield found
    for path in paths:
        least = ranges.get(_field(path), (None, None))[0]
        if least is not None and _holder(data, path)[path[-1]] > least:
            changed = copy.deepcopy(data)
            _holder(changed, path)[path[-1]] = least
            found = _parsed(instance, changed)
            if found is not None:
                yield found


def _leading(value: int, digits: int) -> int:
    """The value with its first digits only."""
    unit: int = 10 ** max(0, len(str(abs(value))) - digits)
    return round(value / unit) * unit


def attack(
    problem: str,
    method: str,
    *,
    time_s: float,
    family: str = "small",
    seed: int = 0,
    objective: str | None = None,
    folder: Path = Path(),
    tell: Tell = silence,
) -> tuple[Attack, Path | None]:
    """Attack a method; writes the worst instance as YAML and returns the search and the file.

    Raises
    ------
    InputError
        Unknown problem, method, family or objective.
    """
    search = Attack(
        registry.find_problem(problem),
        registry.find_method(problem, method),
        family,
        time_s,
        seed,
        objective=objective,
        tell=tell,
    )
    hit = search.run()
    if hit is None:
        return search, None
    folder.mkdir(parents=True, exist_ok=True)
    suffix = f"_{objective}" if objective else ""
    name = f"{problem}_{method}{suffix}_worst"
    loss = f"{hit.ratio:.4f}" if hit.proven else f"between {hit.ratio:.4f} and {hit.limit:.4f}"
    source = (
        f"mapgap attack {problem} --method {method} --family {family} --seed {seed}: {method} has {hit.value}, "
        f"{hit.exact} has {hit.plan} with the bound {hit.bound}; loss factor {loss}."
    )
    named = hit.instance.model_copy(update={"name": name, "source": source, "tags": ("worst_case",)})
    search.worst = replace(hit, instance=named)
    return search, save_expanded(search.worst.instance, folder / f"{name}.yaml")
