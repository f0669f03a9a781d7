"""Write compact library files, alike for every problem."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

WIDTH = 118


def compact_text(problem: str, name: str, source: str, tags: Sequence[str], fields: Mapping[str, str]) -> str:
    """One compact file; the source folded, ``fields`` as YAML text by name, on the line or below it."""
    folded = textwrap.wrap(
        source, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    head = ["schema: 1", "form: compact", f"problem: {problem}", f"name: {name}", "source: >-", *folded]
    body = [f"tags: [{', '.join(tags)}]", *(_field(key, value) for key, value in fields.items())]
    return "\n".join([*head, *body]) + "\n"


def _field(key: str, value: str) -> str:
    return f"{key}:{value}" if value.startswith("\n") else f"{key}: {value}"


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """``<name>.yaml`` for every name."""
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(content, encoding="utf-8")
