"""How large instances are, in words; of library instances known without expanding them.

``instances/sizes.tsv`` holds a line ``name<TAB>size`` for every library instance; ``python -m mapgap.catalogue.sizes``
writes it anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files, load_instance
from mapgap.core import InstanceBase


def size_of(instance: InstanceBase) -> str:
    """How many there are of everything that the instance lists by name: ``56 layers, 5 devices``."""
    found = []
    for field in type(instance).model_fields:
        value = getattr(instance, field)
        if isinstance(value, tuple) and value and hasattr(value[0], "name"):
            inner = [item.layers for item in value if hasattr(item, "layers") and isinstance(item.layers, tuple)]
            if inner:
                found.append(_counted(sum(map(len, inner)), "layers"))
            found.append(_counted(len(value), field))
    return ", ".join(found)


def _counted(count: int, what: str) -> str:
    return f"{count} {what[:-1] if count == 1 and what.endswith('s') else what}"


def path() -> Path:
    """The file of the library's sizes."""
    return registry.folder("instances") / "sizes.tsv"


@cache
def known_sizes() -> dict[str, str]:
    """Library instance to its size; instances that the file does not know are left out."""
    if not path().is_file():
        return {}
    lines = path().read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


def write() -> None:
    """Write the file anew from all library instances."""
    lines = [f"{name}\t{size_of(load_instance(name))}" for name in sorted(library_files())]
    path().write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
