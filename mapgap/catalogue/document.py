"""YAML (and JSON) files as plain data in which every value knows its line and column.

:func:`read` parses a file through PyYAML's node tree; :func:`validate` turns it into a pydantic model. Both list every
finding at once, each as ``file:line:column: field: expected …, found …``.
"""

from __future__ import annotations

import copy
import json
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from mapgap.core import Finding, InputError, Location, suggest

Model = TypeVar("Model", bound=BaseModel)
Key = str | int

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX = "tag:yaml.org,2002:"


@dataclass
class Document:
    """A parsed file.

    Attributes
    ----------
    name : str
        As the user wrote it, for messages.
    data : Any
        Plain data; keys are strings.
    marks : mapping
        Location of a value to its ``(line, column)``, from 1.
    keys : mapping
        Location of a value in a mapping to the ``(line, column)`` of its key.
    findings : list of (line, column, Finding)
        What is wrong with the YAML itself.
    """

    name: str
    data: Any = None
    marks: dict[Location, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Location, tuple[int, int]] = field(default_factory=dict)
    findings: list[tuple[int, int, Finding]] = field(default_factory=list)

    def add(self, location: Location, text: str, *, key: bool = False, name: str = "") -> None:
        """Note a finding at a location; its place is that of the nearest parent that the file has."""
        known = location
        while known and known not in self.marks:
            known = known[:-1]
        line, column = (self.keys if key and known in self.keys else self.marks).get(known, (1, 1))
        self.findings.append((line, column, Finding(text, location, name)))

    def place(self, found: Finding, base: Location = ()) -> None:
        """Note a finding of a model's validator or of an expansion, which knows its field but not the file."""
        self.add((*base, *found.location), found.text, name=found.name)

    def raise_findings(self) -> None:
        """Raise all findings, by place in the file.

        Raises
        ------
        InputError
        """
        if self.findings:
            ordered = sorted(dict.fromkeys(self.findings), key=lambda each: (*each[:2], str(each[2])))
            raise InputError(
                replace(finding, place=f"{self.name}:{line}:{column}") for line, column, finding in ordered
            )


def read(path: Path) -> Document:
    """Parse a file; what is wrong inside lands in ``findings``.

    Raises
    ------
    InputError
        The file is missing, unreadable, no UTF-8, no YAML, or empty.
    """
    document = Document(str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, found byte {error.object[error.start]:#04x}") from error
    except OSError as error:
        raise InputError(f"{path}: expected a readable file, found: {error.strerror or error}") from error
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        since = error.context_mark
        began = f" that began in line {since.line + 1}, column {since.column + 1}" if since else ""
        context = f" ({error.context}{began})" if error.context else ""
        raise InputError(f"{path}:{line}:{column}: expected valid YAML, found: {error.problem}{context}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}:1:1: expected valid YAML, found: {error}") from error
    if node is None:
        raise InputError(f"{path}:1:1: expected a mapping, found an empty file")
    document.data = _plain(document, node, (), ())
    return document


def _plain(document: Document, node: Any, location: Location, parents: tuple[int, ...]) -> Any:
    mark = (node.start_mark.line + 1, node.start_mark.column + 1)
    document.marks[location] = mark
    if id(node) in parents:
        document.add(location, "expected plain data, found an alias to one of its own parents")
        return None
    if isinstance(node, yaml.ScalarNode):
        return _scalar(document, node, location)
    parents = (*parents, id(node))
    if isinstance(node, yaml.SequenceNode):
        return [_plain(document, item, (*location, i), parents) for i, item in enumerate(node.value)]
    data: dict[str, Any] = {}
    first: dict[str, int] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        line, column = key.start_mark.line + 1, key.start_mark.column + 1
        if name is None:
            document.findings.append((line, column, Finding("expected a word as key, found a list or mapping")))
            continue
        inner = (*location, name)
        if name == "<<":
            document.findings.append((line, column, Finding("expected plain keys, found a merge key (<<)")))
        elif name in first:
            text = f"expected each key once, found it again (first in line {first[name]})"
            document.findings.append((line, column, Finding(text, inner)))
        else:
            first[name] = line
            document.keys[inner] = (line, column)
            data[name] = _plain(document, value, inner, parents)
    return data


def _scalar(document: Document, node: Any, location: Location) -> Any:
    kind = node.tag.removeprefix(_PREFIX)
    if kind not in ("int", "float", "bool", "null"):
        if node.tag.startswith("!") or kind not in ("str", "timestamp", "value"):
            document.add(location, f"expected plain data, found tag {node.tag}")
        return node.value
    if kind in ("int", "float") and ":" in node.value:  # YAML 1.1 reads 1:30 as 90
        return node.value
    try:
        return yaml.SafeLoader("").construct_object(node)
    except ValueError:
        document.add(location, f"expected a value of type {kind}, found {node.value!r}")
        return None


def validate(document: Document, model: type[Model], *, below: Location = ()) -> Model:
    """The document (or the part ``below``) as a model; raises every finding of parsing and validation together.

    Raises
    ------
    InputError
    """
    data = document.data
    for part in below:
        data = data[part]
    if not isinstance(data, dict):
        document.add(below, f"expected a mapping, found {shown(data)}")
        document.raise_findings()
    result: Model | None = None
    try:
        # The JSON mode of strict models takes lists for tuples, and nothing else that is loose.
        result = model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        add_errors(document, error, model, below)
        _look_behind(document, error, model, below, data)
    document.raise_findings()
    assert result is not None
    return result


def _look_behind(
    document: Document, error: ValidationError, model: type[BaseModel], below: Location, data: dict[str, Any]
) -> None:
    """If unknown keys are all that is wrong, drop them and note what the checks of the whole find as well."""
    errors = error.errors(include_url=False)
    if any(each["type"] != "extra_forbidden" for each in errors):
        return
    pruned = copy.deepcopy(data)
    for each in errors:
        location, _ = _locate(document, (*below, *each["loc"]))
        parent: Any = pruned
        for part in location[len(below) : -1]:
            parent = parent[part]
        parent.pop(location[-1], None)
    try:
        model.model_validate_json(json.dumps(pruned))
    except ValidationError as second:
        add_errors(document, second, model, below)


def add_errors(document: Document, error: ValidationError, model: type[BaseModel], below: Location = ()) -> None:
    """Note every error of a validation."""
    others: dict[Location, tuple[Any, list[str]]] = {}  # what the branches of a union expect is one finding
    for each in error.errors(include_url=False):
        location, unmatched = _locate(document, (*below, *each["loc"]))
        kind, value = each["type"], each["input"]
        if kind == "missing":
            document.add((*location, *unmatched[-1:]), "expected this field, found nothing")
        elif kind == "extra_forbidden":
            known = field_names(model, location[len(below) : -1])
            near = suggest(str(location[-1]), known) if location else ""
            hint = near or (f" (known: {', '.join(known)})" if known else "")
            document.add(location, f"expected a known field, found an unknown one{hint}", key=True)
        elif kind == "value_error":
            raised = each.get("ctx", {}).get("error", each["msg"])
            texts = str(raised).splitlines()
            for finding in raised.findings if isinstance(raised, InputError) else map(Finding, texts):
                document.place(finding, location)
        elif kind != "too_short" or len(value) < each["ctx"]["min_length"]:
            # (In a list, items that are wrong do not count towards its length; they have findings of their own.)
            others.setdefault(location, (value, []))[1].append(_expectation(each))
    for location, (value, expected) in others.items():
        words = " or ".join(dict.fromkeys(expected))
        document.add(location, f"expected {words}, found {shown(value)}{_hint(value)}")


def _expectation(error: Mapping[str, Any]) -> str:
    context = error.get("ctx", {})
    words = {
        "greater_than_equal": f"at least {context.get('ge')}",
        "greater_than": f"more than {context.get('gt')}",
        "less_than_equal": f"at most {context.get('le')}",
        "less_than": f"less than {context.get('lt')}",
        "int_type": "an integer",
        "int_from_float": "an integer",
        "int_parsing": "an integer",
        "float_type": "a number",
        "finite_number": "a finite number",
        "string_type": "text",
        "bool_type": "true or false",
        "tuple_type": "a list",
        "list_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping",
        "literal_error": str(context.get("expected")),
        "too_short": f"at least {context.get('min_length')} item(s)",
        "too_long": f"at most {context.get('max_length')} item(s)",
    }
    message = str(error["msg"])
    return words.get(error["type"], message.removeprefix("Input should be ").removeprefix("Value error, "))


def _hint(value: Any) -> str:
    """YAML 1.1 reads 1e9 as text."""
    is_number = isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE]\+?\d+", value)
    return " (text in YAML; write the digits out)" if is_number else ""


def shown(value: Any) -> str:
    """A value in a message: short."""
    if isinstance(value, dict):
        return f"a mapping of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _locate(document: Document, loc: tuple[Key, ...]) -> tuple[Location, tuple[Key, ...]]:
    """The part of a pydantic location that the file has; union tags in between are skipped. Also what is left."""
    if not document.marks:  # no file: an expansion
        return loc, ()
    location: Location = ()
    left: list[Key] = []
    for part in loc:
        if (*location, part) in document.marks:
            location, left = (*location, part), []
        else:
            left.append(part)
    return location, tuple(left)


def field_names(model: type[BaseModel], location: Location) -> list[str]:
    """Names of the fields at a location below a model; empty where it is no model."""
    models = [model]
    for part in location:
        if isinstance(part, int):
            continue
        inner: list[type[BaseModel]] = []
        for each in models:
            for name, info in each.model_fields.items():
                if part in (name, info.alias):
                    inner += _models_in(info.annotation)
        models = inner
    return [info.alias or name for each in models for name, info in each.model_fields.items()]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (tuple, list, dict, Union, types.UnionType) or get_args(annotation):
        return [model for argument in get_args(annotation) for model in _models_in(argument)]
    return []
