"""Folders for those who evolve heuristics, and the scores of programs.

A folder runs as it is under OpenEvolve (``openevolve-run initial_program.py evaluator.py``) and SkyDiscover
(``skydiscover-run initial_program.py evaluator.py``): both load ``evaluator.py`` and call ``evaluate(path)``, and both
take a dict of numbers, or an ``EvaluationResult`` of their own with texts beside them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import InputError, PlanError, resolve
from mapgap.core.storage import is_file, kind_of, read_bytes
from mapgap.evidence import arena
from mapgap.execution.progress import Tell, silence
from mapgap.interface.display import write_text

PROGRAM = '''"""A heuristic for {title} ({problem}): better plans are worth more, a broken or a missing one is worth 0.

README.md has the rules. The instance is a dict of integers, names and lists; so is the plan.
"""


# EVOLVE-BLOCK-START
def solve(instance):
    """A plan of the instance: here that of the published heuristic, which the score compares with."""
    return published(instance)


# EVOLVE-BLOCK-END


def published(instance):
    """The plan of {method} ({reference})."""
    import json

    from mapgap.catalogue import registry
    from mapgap.core import Budget

    problem = registry.problems()["{problem}"]
    method = registry.methods("{problem}")["{method}"]
    result = method.solve(problem.instance_type.model_validate_json(json.dumps(instance)), Budget({time_s}))
    return result.plan.to_json()


def objective(instance, plan):
    """What a plan is worth ({sense}), and the rules that it breaks; a feasible plan breaks none."""
    import json

    from mapgap.catalogue import registry

    problem = registry.problems()["{problem}"]
    found = problem.evaluate(
        problem.instance_type.model_validate_json(json.dumps(instance)),
        problem.plan_type.model_validate_json(json.dumps(plan)),
    )
    return found.objective, [violation.message for violation in found.violations]
'''

EVALUATOR = '''"""Evaluator of OpenEvolve and SkyDiscover: every instance in a fresh process, every plan evaluated anew.

``combined_score`` is the mean ratio to the published heuristic on instances that are drawn now; 1.0 is as good.
"""

import sys
from pathlib import Path

from mapgap.interface.arena import evaluated

FOLDER = Path(__file__).resolve().parent
RESULTS = ("openevolve.evaluation_result", "skydiscover.evaluation.evaluation_result")


def evaluate(program_path):
    metrics, artifacts = evaluated(program_path, FOLDER)
    for name in RESULTS:
        if name in sys.modules:
            return sys.modules[name].EvaluationResult(metrics=metrics, artifacts=artifacts)
    return metrics


if __name__ == "__main__":
    for text in evaluated(sys.argv[1], FOLDER):
        print(text)
'''

CONFIG = """# Works for OpenEvolve and for SkyDiscover; add the section llm: of your model.
max_iterations: 100
evaluator:
  timeout: {timeout}
  cascade_evaluation: false
prompt:
  system_message: |-
    You improve a heuristic. Rewrite solve(instance) so that its plans are better; {sense}.
    Every instance runs in a fresh process: at most {time_s:g} seconds and {memory_mb} MB, one processor. A plan that
    breaks a rule, comes late or does not come is worth 0. Only what is installed can be imported.
{text}
"""

README = """# {title}

`initial_program.py` is the program to improve: `solve(instance)` gets a dict and returns a plan as a dict. It begins as
`{method}` ({reference}).

- Instances: random family `{family}`; the public ones are the seeds in `ceiling.json`. The score is taken on {held_out}
  others, drawn at every evaluation.
- `combined_score`: how many times better than `{method}`, on average over **all** drawn instances; 1.0 is as good. A
  plan that breaks a rule, is late or missing is worth 0.
- Limits per instance: {time_s:g} s, {memory_mb} MB, counted from the start of the interpreter.
- `ceiling.json`: what is known of the public instances; of a certified ceiling no plan is better.

```console
openevolve-run initial_program.py evaluator.py --config config.yaml
skydiscover-run initial_program.py evaluator.py -c config.yaml -s evox
mapgap arena score initial_program.py --problem {problem} --family {family} -o score.json
mapgap arena verify score.json
```

## The problem

```text
{text}
```

## A plan

```json
{schema}
```
"""


def export_arena(
    problem: str,
    folder: str | os.PathLike[str],
    family: str = "small",
    *,
    seeds: Sequence[int] = tuple(range(20)),
    held_out: int = 10,
    time_limit: float = 10.0,
    memory_limit: int = 2048,
    ceiling_time: float = 10.0,
    published: str | None = None,
    tell: Tell = silence,
) -> dict[str, Any]:
    """Write a folder that OpenEvolve and SkyDiscover run as it is.

    Parameters
    ----------
    seeds : sequence of int
        The public instances, whose ceilings are written.
    held_out : int
        How many instances every evaluation draws.
    ceiling_time : float
        Seconds per public instance for its ceiling, and as many for the certificate.

    Returns
    -------
    dict
        How many public instances there are, how many were left out, and how many ceilings are certified.

    Raises
    ------
    InputError
        No such problem, family or method, no seeds, or a folder that cannot be written.
    """
    found = registry.find_problem(problem)
    method = arena.published_method(found.name, published)
    known, left_out = arena.references(
        found.name, family, method, seeds=seeds, count=0, ceiling_s=ceiling_time, tell=tell
    )
    sense = "a smaller objective is better" if found.sense == "min" else "a larger objective is better"
    module = resolve(f"{found.plan_type.__module__.partition('.instance')[0]}:__doc__") or found.title
    told = {
        "title": found.title,
        "problem": found.name,
        "method": method.name,
        "reference": method.reference,
        "family": family,
        "held_out": held_out,
        "time_s": time_limit,
        "memory_mb": memory_limit,
        "sense": sense,
        "timeout": int(60 + (len(known) + held_out) * (time_limit + arena.REFERENCE_S)),
    }
    schema = json.dumps(found.plan_type.model_json_schema(), indent=1)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    indented = "\n".join(f"    {line}".rstrip() for line in module.strip().splitlines())
    write_text(place / "initial_program.py", PROGRAM.format(**told))
    write_text(place / "evaluator.py", EVALUATOR)
    write_text(place / "config.yaml", CONFIG.format(**told, text=indented))
    write_text(place / "README.md", README.format(**told, text=module.strip(), schema=schema))
    settings = {
        "schema": arena.SCHEMA,
        "problem": found.name,
        "family": family,
        "published": method.name,
        "held_out": held_out,
        "limits": {"time_s": time_limit, "memory_mb": memory_limit},
        "left_out": left_out,
        "instances": [vars(each) for each in known],
    }
    write_text(place / "ceiling.json", json.dumps(settings) + "\n")
    certified = sum(each.grade == "certified" for each in known)
    optima = sum(each.grade == "certified" and each.ceiling == each.value for each in known)
    return {"public": len(known), "left_out": len(left_out), "certified": certified, "optima": optima}


def evaluated(
    program: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> tuple[dict[str, float], dict[str, str]]:
    """What ``evaluator.py`` of an exported folder returns: numbers, and texts about what went wrong.

    Raises
    ------
    InputError
        The folder has no ``ceiling.json`` as it was written.
    PlanError
        A plan is better than a certified ceiling, or the files of the evaluator were changed.
    """
    path = Path(folder) / "ceiling.json"
    try:
        told = json.loads(read_bytes(path))
        problem, family, limits = told["problem"], told["family"], dict(told["limits"])
        known = [arena.Reference(**each) for each in told["instances"]]
        held_out, method = told["held_out"], arena.published_method(problem, told["published"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: expected the file of mapgap arena export: {type(error).__name__}: {error}") from None
    source = text_of(program)
    before = arena.sources(problem)
    fresh, _ = arena.references(problem, family, method, seeds=None, count=held_out, ceiling_s=None)
    public, drawn = (
        [arena.judged(source, each, problem, family, **limits) for each in several] for several in (known, fresh)
    )
    if arena.sources(problem) != before:
        raise PlanError(f"{problem}: the files of the evaluator were changed while the program ran; no score")

    def gathered(results: Sequence[arena.Scored]) -> arena.Score:
        return arena.Score(problem, family, method.name, "", **limits, drawn=True, results=tuple(results))

    seen, hidden = gathered(public), gathered(drawn)
    quality = seen.quality(each.value for each in public)
    metrics = {
        "combined_score": float(hidden.score),
        "public_score": float(seen.score),
        "public_quality": 0.0 if quality is None else float(quality),
        "valid": 1.0 - (seen.failed + hidden.failed) / (len(public) + len(drawn)),
    }
    reasons = sorted({each.reason for each in (*public, *drawn) if each.value is None})
    worst = sorted((each for each in public if each.value is not None), key=lambda each: -_loss(each))[:3]
    lines = [f"{each.reference.instance}: {each.value}, ceiling {each.reference.ceiling}" for each in worst]
    artifacts = {"failures": "\n".join(reasons[:10]), "worst_public_instances": "\n".join(lines)}
    return metrics, {name: text for name, text in artifacts.items() if text}


def _loss(each: arena.Scored) -> float:
    """How far apart value and ceiling are, as a factor."""
    value, top = each.value or 1, each.reference.ceiling or each.value or 1
    return max(value, top) / max(1, min(value, top))


def text_of(program: str | os.PathLike[str]) -> str:
    """The text of a program.

    Raises
    ------
    InputError
    """
    path = Path(program)
    if not is_file(path):
        raise InputError(f"{path}: expected a Python file, found {kind_of(path)}")
    return read_bytes(path).decode("utf-8", "surrogateescape")


def score(
    program: str | os.PathLike[str],
    problem: str,
    family: str = "small",
    *,
    seeds: Sequence[int] | None = None,
    count: int = 30,
    time_limit: float = 10.0,
    memory_limit: int = 2048,
    ceiling_time: float | None = 10.0,
    published: str | None = None,
    output: Path | None = None,
    tell: Tell = silence,
) -> arena.Score:
    """Score a program, see :func:`mapgap.evidence.arena.score`; ``output`` gets all that is needed to check it."""
    found = arena.score(
        text_of(program),
        problem,
        family,
        seeds=seeds,
        count=count,
        published=published,
        time_s=time_limit,
        memory_mb=memory_limit,
        ceiling_s=ceiling_time,
        tell=tell,
    )
    if output is not None:
        write_text(output, json.dumps(found.to_json()) + "\n")
    return found
