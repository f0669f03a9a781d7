"""The compact files of the library, written from tables: ``python -m mapgap.instances.writing [PROBLEM ...]``.

``<problem>/library_files.yaml`` holds groups of files that differ in a few values:

let
    Values by name, of a group and of all groups; later ones may use earlier ones, and those of all groups the group's.
over
    Tables of values, by name. A group has a file for every combination of one row of each table. A row is a value, or
    several by name.
name, source, tags, fields
    Of a file; ``fields`` are YAML text by field of the compact form, on its line or below it.

All texts are Jinja templates of those values.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from mapgap.instances.facts import ROOT, read_yaml

SPECIFICATION = "library_files.yaml"
WIDTH = 118
_TEMPLATES = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def library_files(problem: str) -> dict[str, str]:
    """Text of every written file of a problem's library, by name."""
    specification = read_yaml(ROOT / problem / SPECIFICATION)
    found = {}
    for group in specification["groups"]:
        for values in _combinations(group.get("over", {})):
            for name, text in (group.get("let", {}) | specification.get("let", {})).items():
                values[name] = _filled(text, values)
            name = _filled(group["name"], values)
            source = _filled(group["source"], values)
            tags = [_filled(tag, values) for tag in group["tags"]]
            fields = {key: _filled(text, values) for key, text in group["fields"].items()}
            found[name] = _compact_text(problem, name, source, tags, fields)
    return found


def _combinations(tables: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """The values of every combination of rows."""
    for rows in product(*tables.values()):
        values: dict[str, Any] = {}
        for name, row in zip(tables, rows, strict=True):
            values |= row if isinstance(row, dict) else {name: row}
        yield values


def _filled(text: Any, values: Mapping[str, Any]) -> Any:
    """A template with its values; what is no text stays as it is."""
    return _TEMPLATES.from_string(text).render(values) if isinstance(text, str) else text


def _compact_text(problem: str, name: str, source: str, tags: Sequence[str], fields: Mapping[str, Any]) -> str:
    """One compact file; the source folded."""
    folded = textwrap.wrap(
        source, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    head = ["schema: 1", "form: compact", f"problem: {problem}", f"name: {name}", "source: >-", *folded]
    body = [f"{key}:{text}" if str(text).startswith("\n") else f"{key}: {text}" for key, text in fields.items()]
    return "\n".join([*head, f"tags: [{', '.join(tags)}]", *body]) + "\n"


def specified() -> list[str]:
    """The problems whose library files are written from tables, alphabetically."""
    return sorted(path.parent.name for path in ROOT.glob(f"*/{SPECIFICATION}"))


def main(problems: Sequence[str], root: Path = ROOT) -> None:
    """Write the files of these problems, or of all."""
    for problem in problems or specified():
        for name, text in library_files(problem).items():
            (root / problem / "library" / f"{name}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
