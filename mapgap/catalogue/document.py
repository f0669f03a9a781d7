"""YAML (and JSON) files as plain data in which every value knows its line and column.

:func:`read` parses a file through PyYAML's node tree; :func:`validate` turns it into a pydantic model. Both list every
finding at once, each as ``file:line:column: field: expected …, found …``.
"""

from __future__ import annotations

import copy
import json
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from mapgap.catalogue.expansion import Expansion
from mapgap.core import Finding, InputError, Location, short, suggest
from mapgap.core.storage import read_text

Model = TypeVar("Model", bound=BaseModel)
Key = str | int

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX = "tag:yaml.org,2002:"
_PARTS = yaml.constructor.SafeConstructor()
_CONSTRUCTORS: dict[str, Callable[[Any], Any]] = {
    kind: getattr(_PARTS, f"construct_yaml_{kind}") for kind in ("int", "float", "bool", "null")
}
_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,17}")
_UNPRINTABLE = yaml.reader.Reader.NON_PRINTABLE

#: Of the longest integer that is read; what a field may hold is for its model to say.
INTEGER_BITS = 1024


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
    unread : set
        Locations of values that could not be read; there is a finding for each.
    """

    name: str
    data: Any = None
    marks: dict[Location, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Location, tuple[int, int]] = field(default_factory=dict)
    findings: list[tuple[int, int, Finding]] = field(default_factory=list)
    unread: set[Location] = field(default_factory=set)

    def add(self, location: Location, text: str, *, key: bool = False, name: str = "") -> None:
        """Note a finding at a location; its place is that of the nearest parent that the file has."""
        if location and location in self.unread:
            return  # its finding is there
        known = location
        while known and known not in self.marks:
            known = known[:-1]
        line, column = (self.keys if key and known in self.keys else self.marks).get(known, (1, 1))
        self.findings.append((line, column, Finding(text, location, name)))

    def refuse(self, location: Location, text: str) -> None:
        """Note that a value cannot be read, and nothing more about it."""
        self.add(location, text)
        self.unread.add(location)

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
        The file is missing, special, too large, unreadable, no UTF-8, no YAML, empty, nested too deeply, or holds too
        many values.
    """
    document = Document(short(str(path)))
    text = read_text(path)
    try:
        document.data = _build(document, Expansion(_LOADER(text), document.name))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        since = error.context_mark
        began = f" that began in line {since.line + 1}, column {since.column + 1}" if since else ""
        context = f" ({error.context}{began})" if error.context else ""
        where = f"{document.name}:{line}:{column}"
        raise InputError(f"{where}: expected valid YAML, found: {short(str(error.problem))}{context}") from error
    except yaml.YAMLError as error:
        bad = _UNPRINTABLE.search(text)
        before = text[: bad.start()] if bad else ""
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        found = f"character {ord(bad[0]):#06x}" if bad else short(str(error))
        raise InputError(f"{document.name}:{line}:{column}: expected valid YAML, found: {found}") from error
    return document


@dataclass
class _Open:
    """A list or mapping whose end has not come yet."""

    data: list[Any] | dict[str, Any]
    location: Location
    lines: dict[str, int]  # of the keys so far
    key: str | None = None  # the next value's


def _build(document: Document, events: Expansion) -> Any:
    """The document's data from its events, without recursion."""
    root: list[Any] = []
    parents = [_Open(root, (), {})]
    for event in events:
        inside = parents[-1]
        if isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            parents.pop()
            continue
        mark = (event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(inside.data, dict) and inside.key is None:
            _take_key(document, events, event, inside, mark)
            continue
        location = inside.location
        if len(parents) > 1:
            location = (*location, len(inside.data) if inside.key is None else inside.key)
        document.marks[location] = mark
        value: Any = None
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(document, events.loader, event, location)
        elif isinstance(event, yaml.AliasEvent):
            document.refuse(location, "expected plain data, found an alias to one of its own parents")
        else:
            value = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            if event.tag not in (None, "!", f"{_PREFIX}seq", f"{_PREFIX}map"):
                document.refuse(location, f"expected plain data, found tag {short(event.tag)}")
            parents.append(_Open(value, location, {}))
        if isinstance(inside.data, list):
            inside.data.append(value)
        elif inside.key is not None:
            inside.data[inside.key] = value
            inside.key = None
    return root[0]


def _take_key(document: Document, events: Expansion, event: Any, inside: _Open, mark: tuple[int, int]) -> None:
    """The key of the next value; one that is none, or comes twice, is left out together with its value."""
    if not isinstance(event, yaml.ScalarEvent):
        document.findings.append((*mark, Finding("expected a word as key, found a list or mapping")))
        events.skip(event)
    elif event.value == "<<":
        document.findings.append((*mark, Finding("expected plain keys, found a merge key (<<)")))
    elif event.value in inside.lines:
        text = f"expected each key once, found it again (first in line {inside.lines[event.value]})"
        document.findings.append((*mark, Finding(text, (*inside.location, event.value))))
    else:
        inside.lines[event.value] = mark[0]
        document.keys[(*inside.location, event.value)] = mark
        inside.key = event.value
        return
    events.skip(next(events))


def _scalar(document: Document, loader: Any, event: Any, location: Location) -> Any:
    """A scalar as YAML 1.1 reads it; text where it is no number, no truth value and not null."""
    plain, text = event.implicit[0], event.value
    if event.tag is None or event.tag == "!":
        if plain and _DIGITS.fullmatch(text):
            return int(text)
        tag = loader.resolve(yaml.ScalarNode, text, event.implicit)
    else:
        tag = event.tag
    kind = tag.removeprefix(_PREFIX)
    if kind not in _CONSTRUCTORS:
        if tag.startswith("!") or kind not in ("str", "timestamp", "value"):
            document.refuse(location, f"expected plain data, found tag {short(tag)}")
        return text
    if kind in ("int", "float") and ":" in text:  # YAML 1.1 reads 1:30 as 90
        return text
    try:
        value = _CONSTRUCTORS[kind](yaml.ScalarNode(tag, text))
    except (ValueError, LookupError, ArithmeticError):
        document.refuse(location, f"expected a value of type {kind}, found {shown(text)}")
        return None
    if isinstance(value, int) and value.bit_length() > INTEGER_BITS:
        document.refuse(location, f"expected a whole number of at most {INTEGER_BITS} bits, found {shown(text)}")
        return None
    return value


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
