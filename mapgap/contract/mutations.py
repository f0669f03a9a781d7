"""Certificates that somebody altered: the checker may accept one only if what it claims is true all the same.

A certificate of the optimum of a random instance is changed in one way of :data:`KINDS`. Half of the changes of a proof
come with a better bound, which is false. The checker may accept what is harmless (a multiplier that nothing depends
on); then the truth about the instance *in the changed file* is found by brute force and compared.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import Budget, Status
from mapgap.evidence import check
from mapgap.execution.run import run_method

Certificate = dict[str, Any]
Path = tuple[Any, ...]
TIME_S, TRUTH_S = 1.0, 10.0
"""Of the proof of an instance, and of the brute force."""
PER_INSTANCE = 10
FAMILIES = ("realistic", "tiny")


def accepted(certificate: Certificate, cases: Any = None) -> bool:
    """Does the checker believe it?"""
    try:
        check.check(certificate, cases=cases)
    except check.Refused:
        return False
    return True


def parts(value: Any, kind: Callable[[Any], bool], path: Path = ()) -> Iterator[Path]:
    """Paths of everything of a kind in nested lists and dictionaries."""
    if kind(value):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from parts(part, kind, (*path, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def damaged(rng: random.Random, value: Any) -> Any:
    """A copy with one integer changed, or one entry of a list gone, doubled or exchanged for another one."""
    value = json.loads(json.dumps(value))
    places = list(parts(value, lambda part: type(part) is int))
    rows = list(parts(value, lambda part: isinstance(part, list) and bool(part)))
    if places and (not rows or rng.random() < 0.7):
        *front, last = rng.choice(places)
        at(value, tuple(front))[last] = other_number(rng, at(value, tuple(front))[last])
    elif rows:
        row = at(value, rng.choice(rows))
        k, other = rng.randrange(len(row)), rng.randrange(len(row))
        change = rng.choice(["drop", "double", "swap"])
        if change == "drop":
            del row[k]
        elif change == "double":
            row.insert(other, copy.deepcopy(row[k]))
        else:
            row[k], row[other] = row[other], row[k]
    return value


def other_number(rng: random.Random, number: int) -> int:
    return rng.choice([number + 1, number - 1, 2 * number, number // 2, 0, -number, number + rng.randint(-9, 9)])


# --- the kinds: each changes a copy in place and says whether there was something to change ---


def _steps(certificate: Certificate, kinds: str) -> list[list[Any]]:
    """The steps of some kinds, wherever the proof has them."""

    def step(part: Any) -> bool:
        return isinstance(part, list) and len(part) > 1 and isinstance(part[0], str) and part[0] in kinds

    return [at(certificate["proof"], path) for path in parts(certificate["proof"], step)]


def _entry(rng: random.Random, certificate: Certificate, kinds: str, first: int, every: int = 1) -> bool:
    """Another number at one of the places ``first, first + every, …`` of a step."""
    steps = [step for step in _steps(certificate, kinds) if len(step) > first]
    if not steps:
        return False
    step = rng.choice(steps)
    k = rng.randrange(first, len(step), every)
    step[k] = other_number(rng, step[k])
    return True


def multiplier(rng: random.Random, certificate: Certificate) -> bool:
    return _entry(rng, certificate, "p", 2, 2) if _steps(certificate, "p") else _entry(rng, certificate, "me", 1)


def row(rng: random.Random, certificate: Certificate) -> bool:
    return _entry(rng, certificate, "p", 1, 2) if rng.random() < 0.5 else _entry(rng, certificate, "qh", 1)


def branch(rng: random.Random, certificate: Certificate) -> bool:
    return _entry(rng, certificate, "s", 1)


def order(rng: random.Random, certificate: Certificate) -> bool:
    """Rows of a step, steps of a proof, or entries of the instance in another order."""
    place = "proof" if rng.random() < 0.7 else "instance"
    found = list(parts(certificate[place], lambda part: isinstance(part, list) and len(part) > 2))
    if not found:
        return False
    rows = at(certificate[place], rng.choice(found))
    first = isinstance(rows[0], str)  # the name of a step stays
    rows[first:] = rng.sample(rows[first:], len(rows) - first)
    return True


def bound(rng: random.Random, certificate: Certificate) -> bool:
    _claim_more(rng, certificate, certificate["instance"]["problem"])
    return True


def instance(rng: random.Random, certificate: Certificate) -> bool:
    certificate["instance"] = damaged(rng, certificate["instance"])
    return True


def objective(rng: random.Random, certificate: Certificate) -> bool:
    facts = certificate["instance"]
    others = [name for name in registry.problems()[facts["problem"]].objectives if name != facts.get("objective")]
    if not others:
        return False
    facts["objective"] = rng.choice(others)
    return True


def missing(rng: random.Random, certificate: Certificate) -> bool:
    """A key or an entry is gone, anywhere in the file."""
    place = certificate if rng.random() < 0.1 else certificate[rng.choice(["proof", "instance"])]
    found = list(parts(place, lambda part: isinstance(part, (list, dict)) and bool(part)))
    if not found:
        return False
    part = at(place, rng.choice(found))
    del part[rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))]
    return True


def types(rng: random.Random, certificate: Certificate) -> bool:
    """Something else than the integer that it looks like."""
    places = [path for path in parts(certificate, lambda part: type(part) is int) if path != ("schema",)]
    own = [path for path in places if path[0] != "instance"]
    *front, last = rng.choice(own if rng.random() < 0.7 else places)
    number = at(certificate, tuple(front))[last]
    at(certificate, tuple(front))[last] = rng.choice(
        [float(number), number + 0.5, str(number), bool(number), None, [number], {"number": number}]
    )
    return True


KINDS: dict[str, Callable[[random.Random, Certificate], bool]] = {
    change.__name__: change for change in (multiplier, row, branch, order, bound, instance, objective, missing, types)
}
PROOFS = ("multiplier", "row", "branch", "order", "missing", "types")
"""Changes that may come with a better bound."""


def _claim_more(rng: random.Random, certificate: Certificate, problem: str) -> None:
    sense = registry.problems()[problem].sense
    more = rng.choice([1, 1, rng.randint(2, 100), rng.randint(2, 10**6), 10**9])
    if type(certificate.get("bound")) is int:
        certificate["bound"] += more if sense == "min" else -more


def optimum(facts: Certificate) -> tuple[bool, int | None]:
    """Is the optimum of an expanded instance known, and what is it; ``(True, None)`` without a plan.

    Raises
    ------
    ValueError
        It is no instance.
    """
    problem = registry.problems()[facts["problem"]]
    found = problem.instance_type.model_validate_json(json.dumps(facts))
    truth = run_method(found, "enumerate", Budget(TRUTH_S), isolate=False)
    return truth.status in (Status.OPTIMAL, Status.INFEASIBLE), truth.objective


def proven(problem: str, seed: int) -> Certificate | None:
    """A certificate of the optimum of a random instance; ``None`` without plan or proof."""
    library = registry.library(problem)
    families = [name for name in FAMILIES if name in library.families]
    drawn = library.generate(families[seed % len(families)], seed)
    facts = drawn.to_json()
    known, best = optimum(facts)
    if not known or best is None or library.proving is None:
        return None
    proof = library.prove(facts, best, Budget(TIME_S).start())
    return None if proof is None else {"schema": 1, "instance": facts, "bound": best, "proof": proof}


def mutated(problem: str, seed: int) -> tuple[Counter[str], list[str]]:
    """Several mutations of one certificate: counts by kind, findings."""
    counts: Counter[str] = Counter({"cases": 1})
    certificate, found = proven(problem, seed), []
    if certificate is None:
        return counts, []
    certificate = json.loads(json.dumps(certificate))
    if not accepted(certificate):
        return counts, [f"{problem} {seed}: the checker refuses what was proven"]
    rng, compiled = random.Random(f"mutations-{problem}-{seed}"), registry.library(problem).compiled_cases()
    tried = 0
    while tried < PER_INSTANCE:
        kind = rng.choice(list(KINDS))
        changed = copy.deepcopy(certificate)
        if not KINDS[kind](rng, changed):
            continue
        if kind in PROOFS and rng.random() < 0.5:
            _claim_more(rng, changed, problem)
        if changed == certificate:
            continue
        tried += 1
        verdict = judged(changed)
        counts[f"{kind}/tried"] += 1
        counts[f"{kind}/{verdict}"] += 1
        if compiled is not None and accepted(changed, compiled) != (verdict != "refused"):
            found.append(f"{problem} {seed}: {kind}: compiled loops differ: {json.dumps(changed)[:2000]}")
        if verdict == "wrong":
            found.append(f"{problem} {seed}: {kind}: {json.dumps(changed)[:2000]}")
    return counts, found


def judged(certificate: Certificate) -> str:
    """``refused``, ``true`` (accepted, and so it is), ``wrong``, ``vacuous`` (of no instance) or ``unknown``."""
    if not accepted(certificate):
        return "refused"
    try:
        known, best = optimum(certificate["instance"])
    except (ValueError, KeyError):
        return "vacuous"
    if not known:
        return "unknown"
    sign = -1 if registry.problems()[certificate["instance"]["problem"]].sense == "max" else 1
    return "true" if best is None or sign * certificate["bound"] <= sign * best else "wrong"
