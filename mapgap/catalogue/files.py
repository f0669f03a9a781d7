"""Files and names to instances and plans, and back.

A file carries ``schema: 1``, ``form: compact`` or ``form: expanded``, and ``problem``. Instances are addressed by path
or by the name of a library file (``instances/<problem>/<name>.yaml``), from a checkout as from an installed wheel.
"""

from __future__ import annotations

import glob
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from mapgap.catalogue import registry
from mapgap.catalogue.announced import BrokenEntryPoint
from mapgap.catalogue.document import Document, add_errors, read, shown, validate
from mapgap.core import CompactBase, Finding, InputError, InstanceBase, PlanBase, short, suggest
from mapgap.core.storage import is_file, kind_of, replace_file

Model = TypeVar("Model", bound=BaseModel)
Form = Literal["compact", "expanded", "plan"]
SUFFIXES = (".yaml", ".yml", ".json")
HEADER = ("schema", "form", "problem", "name", "source", "tags")
"""The fields that library files begin with."""
_WORD = re.compile(r"[\w.]+")
_RESOLVER: Any = yaml.SafeLoader("")
_TEXT = "tag:yaml.org,2002:str"
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def load_model(path: Path | str, model: type[Model]) -> Model:
    """Any YAML or JSON file as a pydantic model.

    Raises
    ------
    InputError
        Every finding at once, each with file, line, column and field.
    """
    return validate(read(Path(path)), model)


@dataclass(frozen=True)
class Header:
    """What the first lines of a library file say."""

    name: str
    problem: str
    form: str
    tags: tuple[str, ...]
    path: Path


def headers(problem: str) -> Iterator[Header]:
    """The headers of a problem's library, by file name; nothing is validated or expanded."""
    for path in sorted(registry.library(problem).folder.glob("*.yaml")):
        fields = first_fields(path)
        tags = fields.get("tags") or ()
        listed = tuple(map(str, tags)) if isinstance(tags, (list, tuple)) else ()
        yield Header(path.stem, problem, str(fields.get("form", "")), listed, path)


def first_fields(path: Path) -> dict[str, Any]:
    """The fields before the data of an instance file: ``form``, ``problem``, ``name`` and ``tags``.

    Lines as the library writes them (a plain word, or a list of plain words in brackets, behind the key; the source as
    a block) are read as they are. For any other file the whole of it is parsed.

    Raises
    ------
    InputError
        The file is no YAML.
    """
    found: dict[str, Any] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, text = line.rstrip().partition(": ")
            if key not in HEADER:
                if line.startswith((" ", "\n")) and "source" in found:
                    continue
                break
            if key == "source" and text[:1] == ">":
                found[key] = text
            elif text.startswith("[") and text.endswith("]") and all(map(_plain, text[1:-1].split(", "))):
                found[key] = text[1:-1].split(", ")
            elif _plain(text) or (key == "schema" and text == "1"):
                found[key] = text
            else:
                break
    if all(key in found for key in HEADER):
        return found
    data = read(path).data
    return data if isinstance(data, dict) else {}


@cache
def _plain(word: str) -> bool:
    """Does YAML read these characters as the text that they are?"""
    return _WORD.fullmatch(word) is not None and _RESOLVER.resolve(yaml.ScalarNode, word, (True, False)) == _TEXT


@cache
def library_files() -> dict[str, Path]:
    """Every instance of the library by name.

    Raises
    ------
    RuntimeError
        Two files of the house share a name. (A third party's file whose name is taken is left out with a warning.)
    """
    found: dict[str, Path] = {}
    own = registry.house()
    for problem in sorted(registry.problems(), key=lambda name: (name not in own, name)):
        for path in sorted(registry.library(problem).folder.glob("*.yaml")):
            if path.stem not in found:
                found[path.stem] = path
            elif problem in own:
                raise RuntimeError(f"two library instances are named {path.stem!r}")
            else:
                text = f"{path} is left out: there is a library instance named {path.stem!r} already"
                warnings.warn(text, BrokenEntryPoint, stacklevel=2)
    return found


def find_instances(pattern: str) -> list[str]:
    """Paths or library names that a path, a name or a glob of either stands for; empty if none.

    An objective after ``@`` is carried over to every match.
    """
    if is_file(pattern):
        return [pattern]
    pattern, at, objective = pattern.partition("@")
    if is_file(pattern):
        found = [pattern]
    elif "\0" in pattern or pattern.count("**") > 3:  # the time of a search grows exponentially with them
        found = []
    elif "/" in pattern or pattern.endswith(SUFFIXES):
        found = sorted(glob.glob(pattern, recursive=True))
    else:
        found = [name for name in library_files() if fnmatchcase(name, pattern)]
    return [f"{name}{at}{objective}" for name in found]


def resolve(name: Path | str) -> Path:
    """The file of a path or library name.

    Raises
    ------
    InputError
        Neither a file nor a library name; with a suggestion.
    """
    path, shown_name = Path(name), short(str(name))
    if is_file(path):
        return path
    known = library_files()
    if str(name) in known:
        return known[str(name)]
    kind = kind_of(path)
    if path.suffix in SUFFIXES or len(path.parts) > 1 or kind != "nothing there":
        raise InputError(f"{shown_name}: expected a file, found {kind}")
    hint = suggest(str(name), known)
    raise InputError(f"{shown_name}: expected a file or the name of a library instance (mapgap list instances){hint}")


def load_instance(name: Path | str) -> InstanceBase:
    """An instance by path or library name, expanded; ``NAME@OBJECTIVE`` for another objective of its problem,
    ``NAME@MEDIUM`` for another medium, or both.

    Raises
    ------
    InputError
        Every finding at once, each with file, line, column and field.
    """
    base, at, word = str(name).rpartition("@")
    if at and not is_file(name):
        loaded = load_instance(base)
        return on_medium(loaded, word) if word in registry.problems()[loaded.problem].media else retarget(loaded, word)
    path = resolve(name)
    if library_files().get(path.stem) != path:
        return _instance_in(path)
    state = path.stat()
    return _of_library(path, state.st_mtime_ns, state.st_size)


def _instance_in(path: Path) -> InstanceBase:
    """The instance of a file, expanded."""
    document = read(path)
    found = _load(document)
    return found if isinstance(found, InstanceBase) else _expand(document, found)


@lru_cache(maxsize=512)
def _of_library(path: Path, _changed_ns: int, _size: int) -> InstanceBase:
    """The instance of a library file, expanded once per process."""
    return _instance_in(path)


def on_medium(instance: InstanceBase, medium: str) -> InstanceBase:
    """The instance on another medium, named ``NAME@MEDIUM``.

    Raises
    ------
    InputError
        The problem does not offer the medium, or not for this instance.
    """
    problem = registry.problems()[instance.problem]
    if medium not in problem.media:
        known = f"one of {', '.join(problem.media)}" if problem.media else f"none, as {problem.name} offers no choice"
        raise InputError(f"medium: expected {known}; found {medium}{suggest(medium, problem.media)}")
    try:
        return problem.on_medium(instance, medium)
    except ValidationError as error:
        said = "; ".join(each["msg"] for each in error.errors(include_url=False))
        raise InputError(f"medium {medium}: {said}") from error


def retarget(instance: InstanceBase, objective: str) -> InstanceBase:
    """The instance under another objective of its problem, named ``NAME@OBJECTIVE``.

    Raises
    ------
    InputError
        The problem does not offer the objective.
    """
    problem = registry.problems()[instance.problem]
    if not problem.objectives:
        media = f", or name a medium ({', '.join(problem.media)})" if problem.media else ""
        raise InputError(f"objective {objective}: {problem.name} has one objective only; leave it out{media}")
    if objective not in problem.objectives:
        known = problem.objectives
        expected = f"expected one of {', '.join(known)}; found {objective!r}{suggest(objective, known)}"
        raise InputError(f"objective: {expected}")
    return problem.retarget(instance, objective)


def expand(instance: CompactBase | InstanceBase) -> InstanceBase:
    """The expanded form; an expanded instance is returned as it is.

    Raises
    ------
    InputError
    """
    if isinstance(instance, InstanceBase):
        return instance
    return _expand(Document(instance.name), instance)


def _load(document: Document) -> InstanceBase | CompactBase:
    """Header first: it decides which model the rest must fit. Findings of both come together."""
    data = document.data
    if not isinstance(data, dict):
        document.add((), f"expected a mapping with schema, form, problem, name, …; found {shown(data)}")
        document.raise_findings()
    known = registry.problems()
    problem = data.get("problem")
    if not isinstance(problem, str) or problem not in known:
        hint = suggest(problem, known) if isinstance(problem, str) else ""
        document.add(("problem",), f"expected one of {', '.join(known)}; found {shown(problem)}{hint}")
        problem = None
    for name in ("schema", "form"):
        if name not in data:
            document.add((name,), "expected this field, found nothing")
    form = data.get("form")
    if isinstance(data.get("schema"), bool):  # which is 1 to a comparison
        document.add(("schema",), f"expected 1, found {shown(data['schema'])}")
    if "form" in data and form not in ("compact", "expanded"):
        document.add(("form",), f"expected 'compact' or 'expanded', found {shown(form)}")
        form = None
    if problem is None:
        if data.get("schema", 1) != 1:
            document.add(("schema",), f"expected 1, found {shown(data['schema'])}")
        document.raise_findings()
    models: dict[str, type[InstanceBase] | type[CompactBase]] = {"expanded": known[problem].instance_type}
    if form != "expanded":
        models["compact"] = registry.library(problem).compact_type
    if form not in models:  # missing or wrong: take the form whose fields the file resembles more
        form = max(models, key=lambda name: len(set(data) & set(models[name].model_fields)))
        document.data = {**data, "form": form}
    loaded: InstanceBase | CompactBase = validate(document, models[form])
    return loaded


def _expand(document: Document, compact: CompactBase) -> InstanceBase:
    try:
        return registry.library(compact.problem).expand(compact)
    except InputError as error:
        for finding in error.findings:
            document.place(finding)
    except ValidationError as error:
        expanded = Document(document.name)
        add_errors(expanded, error, registry.problems()[compact.problem].instance_type)
        for _, _, finding in expanded.findings:
            document.place(finding)
    document.raise_findings()
    raise AssertionError("unreachable")  # an expansion that fails has findings


def diagnosed(instance: InstanceBase) -> list[str]:
    """Proofs that the instance has no plan, in words; an empty list proves nothing."""
    diagnose = registry.problems()[instance.problem].diagnose
    return diagnose(instance) if diagnose is not None else []


def check_file(name: Path | str) -> InstanceBase:
    """Load an instance and refuse one that provably has no plan (a layer that fits no device, …).

    Raises
    ------
    InputError
    """
    document = read(resolve(name))
    loaded = _load(document)
    instance = loaded if isinstance(loaded, InstanceBase) else _expand(document, loaded)
    for reason in diagnosed(instance):
        document.place(Finding(f"expected an instance with a feasible plan, found none: {reason}"))
    document.raise_findings()
    return instance


def save_expanded(instance: InstanceBase, path: Path | str) -> Path:
    """Write the expanded form: JSON for a name in ``.json``, else YAML with one line per row of a table."""
    path = Path(path)
    replace_file(path, dump(instance.to_json(), path.suffix).encode(), parents=False)
    return path


def dump(data: Any, suffix: str = ".yaml") -> str:
    """Data as text in the format of a file suffix."""
    if suffix == ".json":
        return json.dumps(data, indent=1) + "\n"
    text: str = yaml.dump(data, Dumper=_DUMPER, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True)
    return text


def load_plan(path: Path | str, problem: str) -> PlanBase:
    """A plan file: the plan itself, or a run's JSON object that holds it under ``plan``.

    Raises
    ------
    InputError
        Every finding at once, or a run without a plan, or one of another problem.
    """
    document = read(Path(path))
    data = document.data
    model = registry.problems()[problem].plan_type
    wrapped = isinstance(data, dict) and "plan" in data and "plan" not in model.model_fields
    if wrapped:  # what a run says beside its plan is not read
        document.findings = [found for found in document.findings if found[2].location[:1] == ("plan",)]
    if wrapped and data.get("problem", problem) != problem:
        document.add(("problem",), f"expected {problem!r}, found {shown(data['problem'])}")
    loaded: PlanBase = validate(document, model, below=("plan",) if wrapped else ())
    return loaded


def save_plan(plan: PlanBase, path: Path | str) -> Path:
    """Write a plan as JSON."""
    path = Path(path)
    replace_file(path, f"{json.dumps(plan.to_json(), indent=1)}\n".encode(), parents=False)
    return path


def json_schema(problem: str, form: Form = "expanded") -> dict[str, Any]:
    """JSON Schema of an instance or plan file, for editors.

    Raises
    ------
    InputError
        No such problem.
    """
    known = registry.problems()
    if problem not in known:
        raise InputError(f"problem: expected one of {', '.join(known)}; found {problem!r}")
    if form == "plan":
        model: type[BaseModel] = known[problem].plan_type
    else:
        model = known[problem].instance_type if form == "expanded" else registry.library(problem).compact_type
    schema = model.model_json_schema(by_alias=True)
    title = f"mapgap: {problem}, {form} form" if form != "plan" else f"mapgap: {problem}, plan"
    schema.update({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title})
    if form != "plan":  # files must carry what the models default
        schema["required"] = sorted({*schema.get("required", ()), "schema", "form", "problem"})
    return schema
