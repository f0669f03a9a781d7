"""Score programs that plan, and check scores: every plan is evaluated anew, and no score beats its certified ceiling.

A program is Python text with ``solve(instance) -> plan``, JSON data both ways (:mod:`mapgap.execution.program`). On
every instance it is worth a *ratio*: how many times better its plan is than that of the published heuristic; 1 is as
good. A plan that breaks a rule, comes late or does not come is worth 0, and the score is the mean over **all**
instances. The *quality* is the share of the ceiling that a plan reaches, 0 without a plan; 1 is optimal. The ceiling of
an instance is a bound with a certificate where the problem has such, so a program above it shows a mistake: of the
evaluator, or of a file.

Left out are seeds on which the published heuristic finds no plan worth more than 0: nothing could be compared there.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mapgap.catalogue import registry
from mapgap.core import Budget, InputError, InstanceBase, Method, PlanError, short
from mapgap.core.storage import read_bytes
from mapgap.evidence import check
from mapgap.execution.program import run_program
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.run import run_uninterrupted, verify
from mapgap.records.record import plain

SCHEMA = 1
#: Seconds for the published heuristic and for the quick planner.
REFERENCE_S = 30.0
#: Bytes of a plan as JSON; those of the families are far smaller.
PLAN_LIMIT = 2**20
#: A score in a file may differ by so much from the recomputed one: it is a rounded decimal.
ROUNDING = Fraction(1, 10**6)


@dataclass(frozen=True)
class Reference(Event):
    """What is known of an instance before any program runs.

    Attributes
    ----------
    published, quick : int or None
        Objectives of the published heuristic and of the quick planner.
    ceiling : int or None
        No plan is better.
    grade : str
        ``certified`` (:mod:`mapgap.evidence.check` follows the proof), ``solver-proven``, or ``none``.
    proof : JSON data
        Of a certified ceiling.
    witness : dict or None
        The best plan that was found.
    value : int or None
        Its objective; the optimum if it equals the ceiling.
    """

    seed: int
    instance: str
    instance_hash: str
    published: int
    quick: int | None = None
    ceiling: int | None = None
    grade: str = "none"
    proof: Any = None
    witness: dict[str, Any] | None = None
    value: int | None = None


@dataclass(frozen=True)
class Scored(Event):
    """A program on one instance; without a plan, ``reason`` says why, and it is worth 0."""

    reference: Reference
    value: int | None
    plan: dict[str, Any] | None
    reason: str
    elapsed_s: float
    output: str = ""


@dataclass(frozen=True)
class Score:
    """What a program is worth.

    Attributes
    ----------
    program : str
        SHA-256 of its text.
    drawn : bool
        The seeds were drawn when it ran; it cannot have known them.
    left_out : tuple of int
        Seeds on which the published heuristic finds nothing to compare with.
    """

    problem: str
    family: str
    published: str
    program: str
    time_s: float
    memory_mb: int
    drawn: bool
    results: tuple[Scored, ...]
    left_out: tuple[int, ...] = ()

    @property
    def sense(self) -> str:
        return registry.problems()[self.problem].sense

    def _mean(self, values: Iterable[Fraction | None]) -> Fraction | None:
        found = list(values)
        if not found or None in found:
            return None
        return sum((each for each in found if each is not None), Fraction(0)) / len(found)

    def ratio(self, values: Iterable[int | None]) -> Fraction:
        """Mean ratio to the published heuristic of one objective per instance; ``None`` counts 0."""
        pairs = zip(values, self.results, strict=True)
        return self._mean(_better(value, each.reference.published, self.sense) for value, each in pairs) or Fraction(0)

    def quality(self, values: Iterable[int | None]) -> Fraction | None:
        """Mean share of the ceiling; ``None`` where an instance has no ceiling."""
        pairs = zip(values, self.results, strict=True)
        return self._mean(
            None if each.reference.ceiling is None else _better(value, each.reference.ceiling, self.sense)
            for value, each in pairs
        )

    @property
    def score(self) -> Fraction:
        return self.ratio(each.value for each in self.results)

    @property
    def ceiling(self) -> Fraction | None:
        """The largest score that any program can have; ``None`` if an instance has no ceiling."""
        ceilings = [each.reference.ceiling for each in self.results]
        return None if None in ceilings else self.ratio(ceilings)

    @property
    def quick(self) -> Fraction | None:
        """The score of the quick planner; ``None`` where the problem has none."""
        values = [each.reference.quick for each in self.results]
        return None if all(value is None for value in values) else self.ratio(values)

    @property
    def gaps(self) -> dict[str, float | None]:
        """How far below the ceiling the program, the published heuristic and the quick planner are, from 0 to 1."""
        lists: dict[str, list[int | None]] = {
            "program": [each.value for each in self.results],
            "published": [each.reference.published for each in self.results],
            "quick": [each.reference.quick for each in self.results],
        }
        found = {name: self.quality(values) for name, values in lists.items()}
        if self.quick is None:
            found["quick"] = None
        return {name: None if each is None else round(1 - float(each), 9) for name, each in found.items()}

    @property
    def failed(self) -> int:
        return sum(each.value is None for each in self.results)

    def to_json(self) -> dict[str, Any]:
        """As it is written to a file, and read by :func:`recheck`."""
        return {
            "schema": SCHEMA,
            "problem": self.problem,
            "family": self.family,
            "published": self.published,
            "program": self.program,
            "limits": {"time_s": self.time_s, "memory_mb": self.memory_mb},
            "drawn": self.drawn,
            "score": round(float(self.score), 9),
            "ceiling": None if self.ceiling is None else round(float(self.ceiling), 9),
            "quick": None if self.quick is None else round(float(self.quick), 9),
            "gaps": self.gaps,
            "failed": self.failed,
            "left_out": list(self.left_out),
            "instances": [
                {
                    **vars(each.reference),
                    **{name: value for name, value in vars(each).items() if name not in ("reference", "value", "plan")},
                    "objective": each.value,
                    "plan": each.plan,
                }
                for each in self.results
            ],
        }


@dataclass(frozen=True)
class Recheck:
    """A file of scores, looked at again.

    Attributes
    ----------
    score, ceiling : float or None
        Recomputed; the ceiling from the certificates that hold.
    certified : int
        How many instances have one.
    refused : tuple of str
        What is wrong; empty if the file holds.
    """

    instances: int
    score: float | None
    ceiling: float | None
    certified: int
    refused: tuple[str, ...] = field(default=())

    @property
    def holds(self) -> bool:
        return not self.refused

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "refused": list(self.refused), "holds": self.holds}


def _better(value: int | None, than: int, sense: str) -> Fraction:
    """How many times better a value is; 0 for none."""
    if value is None:
        return Fraction(0)
    if value == than:
        return Fraction(1)
    low, high = (value, than) if sense == "min" else (than, value)
    if low <= 0:
        raise PlanError(f"expected objectives above 0 to compare, found {low} and {high}")
    return Fraction(high, low)


def published_method(problem: str, name: str | None = None) -> Method:
    """The published heuristic that scores refer to: by default the first of the problem, by name.

    Raises
    ------
    InputError
        There is none, or none of that name.
    """
    if name is not None:
        return registry.find_method(problem, name)
    found = [method for method in registry.methods(problem).values() if method.kind == "published"]
    if not found:
        raise InputError(f"{problem}: expected a problem with a published heuristic, found none")
    return found[0]


def generated(problem: str, family: str, seed: int) -> InstanceBase:
    """The instance of a seed."""
    return registry.library(problem).generate(family, seed)


def reference(
    problem: str, family: str, seed: int, published: Method, *, ceiling_s: float | None = None
) -> Reference | None:
    """Run the planners of the house on an instance; ``None`` where it is left out.

    Parameters
    ----------
    ceiling_s : float, optional
        Seconds for the exact method, and as many for the certificate; without, the ceiling stays open, and the quick
        planner is not asked.
    """
    instance = generated(problem, family, seed)
    first = run_uninterrupted(instance, published, Budget(REFERENCE_S))
    if first.objective is None or first.objective <= 0:
        return None
    found = Reference(seed, instance.name, instance.content_hash, first.objective)
    if ceiling_s is None:
        return found
    runs = [first]
    if any(method.fast for method in registry.methods(problem).values()):
        runs.append(run_uninterrupted(instance, registry.fast_planner(problem, instance), Budget(REFERENCE_S)))
        found = replace(found, quick=runs[-1].objective)
    exact = run_uninterrupted(instance, registry.strongest_exact(problem), Budget(ceiling_s))
    runs.append(exact)
    sign = 1 if registry.problems()[problem].sense == "min" else -1
    best = min((run for run in runs if run.objective is not None), key=lambda run: sign * (run.objective or 0))
    found = replace(found, witness=plain(best.plan), value=best.objective)
    for bound in dict.fromkeys(each for each in (exact.bound, best.objective) if each is not None):
        proof = _proof(instance, bound, ceiling_s)
        if proof is not None:
            return replace(found, ceiling=bound, grade="certified", proof=proof)
    if exact.bound is None:
        return found
    return replace(found, ceiling=exact.bound, grade="solver-proven")


def _proof(instance: InstanceBase, bound: int, seconds: float) -> Any:
    """A proof that the checker follows, as plain JSON data."""
    library = registry.library(instance.problem)
    if library.proving is None:
        return None
    proof = json.loads(json.dumps(library.prove(instance.to_json(), bound, Budget(seconds).start())))
    return proof if proof is not None and _refusal(instance, bound, proof) is None else None


def _refusal(instance: InstanceBase, bound: Any, proof: Any) -> str | None:
    """Why a certificate proves nothing about an instance."""
    own = json.loads(json.dumps(instance.to_json()))
    try:
        check.check({"schema": check.SCHEMA, "instance": own, "bound": bound, "proof": proof}, own)
    except check.Refused as reason:
        return str(reason)
    return None


def priced(instance: InstanceBase, data: Any) -> tuple[int | None, str]:
    """The objective of a plan that is JSON data, or what is wrong with it."""
    problem = registry.problems()[instance.problem]
    try:
        text = json.dumps(data, allow_nan=False)
        if len(text) > PLAN_LIMIT:
            return None, f"a plan of more than {PLAN_LIMIT:,} bytes"
        plan = problem.plan_type.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return None, short(f"no plan of {problem.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}", 400)
    except (ValueError, TypeError, RecursionError) as error:
        return None, short(f"no plan of {problem.name}: {error}", 400)
    found = verify(problem, instance, plan)
    if not found.feasible or type(found.objective) is not int:
        broken = [f"{each.rule}: {each.where}: {each.message}" for each in found.violations[:3]]
        return None, short("the plan breaks a rule: " + "; ".join(broken or ["it has no objective"]), 400)
    return found.objective, ""


def judged(source: str, known: Reference, problem: str, family: str, *, time_s: float, memory_mb: int) -> Scored:
    """Run a program on the instance of a reference and price what it returns.

    Raises
    ------
    PlanError
        The plan is better than the certified ceiling: something is wrong, and it is not the plan.
    """
    instance = generated(problem, family, known.seed)
    anonymous = {**instance.to_json(), "name": "instance", "source": "", "tags": []}  # the name has the seed
    answer = run_program(source, anonymous, time_s=time_s, memory_mb=memory_mb)
    told = short(" ".join(answer.reason.split()), 400)
    value, reason = (None, told) if answer.plan is None else priced(instance, answer.plan)
    if value is not None and known.ceiling is not None and _beyond(value, known.ceiling, problem):
        raise PlanError(
            f"{known.instance}: a plan of {value} is better than the {known.grade} ceiling {known.ceiling}; "
            "evaluator and bound cannot both be right"
        )
    plan = answer.plan if value is not None else None
    return Scored(known, value, plan, reason, round(answer.elapsed_s, 6), answer.output)


def _beyond(value: int, ceiling: int, problem: str) -> bool:
    return value < ceiling if registry.problems()[problem].sense == "min" else value > ceiling


def drawn_seeds() -> Iterator[int]:
    """Seeds that nobody can know before."""
    while True:
        yield secrets.randbelow(2**31)


def references(
    problem: str,
    family: str,
    published: Method,
    *,
    seeds: Sequence[int] | None,
    count: int,
    ceiling_s: float | None,
    tell: Tell = silence,
) -> tuple[list[Reference], list[int]]:
    """References of some seeds, or of ``count`` drawn ones, and the seeds that were left out.

    Raises
    ------
    InputError
        Nothing is left.
    """
    found: list[Reference] = []
    left_out: list[int] = []
    for seed in drawn_seeds() if seeds is None else dict.fromkeys(seeds):
        known = reference(problem, family, seed, published, ceiling_s=ceiling_s)
        if known is None:
            left_out.append(seed)
        else:
            found.append(known)
            tell(known)
        if seeds is None and (len(found) == count or len(left_out) > 20 * count):
            break
    if not found:
        others = [each.name for each in registry.methods(problem).values() if each.kind in ("published", "baseline")]
        hint = ", ".join(name for name in others if name != published.name) or "none"
        text = f"{problem}, family {family}: {published.name} finds a plan worth comparing on none of the instances"
        raise InputError(f"{text}; others to name with --published: {hint}")
    return found, left_out


def score(
    source: str,
    problem: str,
    family: str = "small",
    *,
    seeds: Sequence[int] | None = None,
    count: int = 30,
    published: str | None = None,
    time_s: float = 10.0,
    memory_mb: int = 2048,
    ceiling_s: float | None = 10.0,
    tell: Tell = silence,
) -> Score:
    """Score a program.

    Parameters
    ----------
    source : str
        Its text.
    seeds : sequence of int, optional
        Of the instances; by default ``count`` of them are drawn.
    ceiling_s : float, optional
        Seconds per instance for the ceiling, and as many for its certificate; ``None`` for no ceiling.

    Raises
    ------
    InputError
        No such problem or family.
    PlanError
        A plan is better than a ceiling, or the run has changed the evaluator's files.
    """
    method = published_method(registry.find_problem(problem).name, published)
    known, left_out = references(problem, family, method, seeds=seeds, count=count, ceiling_s=ceiling_s, tell=tell)
    before = sources(problem)
    results = []
    for each in known:
        results.append(judged(source, each, problem, family, time_s=time_s, memory_mb=memory_mb))
        tell(results[-1])
    if sources(problem) != before:
        raise PlanError(f"{problem}: the files of the evaluator were changed while the program ran; no score")
    digest = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()
    kept = tuple(results)
    return Score(problem, family, method.name, digest, time_s, memory_mb, seeds is None, kept, left_out=tuple(left_out))


def sources(problem: str) -> str:
    """A digest of the files that an evaluation rests on: those of the problem, and those of this package."""
    kind = registry.problems()[problem].plan_type
    places = {Path(__file__).parent, Path(sys.modules[kind.__module__].__file__ or "").parent}
    found = hashlib.sha256()
    for path in sorted(path for place in places for path in place.glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def recheck(path: Path) -> Recheck:
    """Recompute a file of scores from its plans, with the published heuristic run anew and every certificate checked.

    Raises
    ------
    InputError
        The file is no file of scores.
    """
    try:
        data = json.loads(read_bytes(path))
        problem, family = data["problem"], data["family"]
        listed, claimed = data["instances"], Fraction(str(data["score"]))
        if data["schema"] != SCHEMA or not isinstance(listed, list) or not listed:
            raise ValueError("expected schema 1 and at least one instance")
        wanted = [(int(each["seed"]), each) for each in listed]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: expected a file of mapgap arena score: {type(error).__name__}: {error}") from None
    method = published_method(registry.find_problem(problem).name, data.get("published"))
    refused: list[str] = []
    if len({seed for seed, _ in wanted}) < len(wanted):
        refused.append("an instance stands there twice")
    results = []
    for seed, told in wanted:
        known = reference(problem, family, seed, method)
        if known is None:
            refused.append(f"seed {seed}: {method.name} finds no plan there, so it cannot count")
            continue
        wrong, result = _again(known, told, problem, family)
        refused += [f"{known.instance}: {text}" for text in wrong]
        results.append(result)
    again = Score(problem, family, method.name, str(data.get("program")), 0.0, 0, False, tuple(results))
    value = again.score if results else None
    if value is not None and abs(value - claimed) > ROUNDING:
        refused.append(f"the file claims a score of {float(claimed):.6f}, its plans are worth {float(value):.6f}")
    top = again.ceiling if results else None
    if top is not None and claimed > top + ROUNDING:
        text = f"a score of {float(claimed):.6f} is above the ceiling {float(top):.6f}: no program can have it"
        refused.insert(0, text)
    certified = sum(each.reference.grade == "certified" for each in results)
    shown = [None if each is None else round(float(each), 9) for each in (value, top)]
    return Recheck(len(wanted), shown[0], shown[1], certified, tuple(refused))


def _again(known: Reference, told: Mapping[str, Any], problem: str, family: str) -> tuple[list[str], Scored]:
    """One instance of a file: what is wrong, and what its plan and its certificate are worth."""
    wrong = []
    instance = generated(problem, family, known.seed)
    if told.get("instance_hash") != known.instance_hash:
        wrong.append(f"expected instance {known.instance_hash}, found {told.get('instance_hash')}")
    if told.get("published") != known.published:
        wrong.append(f"the published heuristic is worth {known.published}, the file says {told.get('published')}")
    if told.get("grade") == "certified":
        reason = _refusal(instance, told.get("ceiling"), told.get("proof"))
        if reason is None:
            known = replace(known, ceiling=told["ceiling"], grade="certified")
        else:
            wrong.append(f"its certificate is refused: {reason}")
    value, reason = (None, "") if told.get("plan") is None else priced(instance, told["plan"])
    if reason:
        wrong.append(reason)
    if value != told.get("objective"):
        wrong.append(f"the file claims {told.get('objective')}, its plan is worth {value}")
    if value is not None and known.ceiling is not None and _beyond(value, known.ceiling, problem):
        wrong.append(f"a plan of {value} beside a certificate of {known.ceiling}: one of the two is wrong")
    return wrong, Scored(known, value, None, reason or "", 0.0)
