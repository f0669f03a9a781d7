"""The imports of Python source: all of them, also those inside functions, as absolute names."""

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One imported name: ``from a.b import c`` is ``a.b.c``.

    Attributes
    ----------
    name : str
    line : int
    local : bool
        Inside a function.
    alias : str
        What the file calls it.
    """

    name: str
    line: int
    local: bool
    alias: str


def imports(source: str, package: str) -> list[Import]:
    """All imports of a file of that package."""
    found: list[Import] = []
    stack = [(node, False) for node in ast.parse(source).body]
    while stack:
        node, local = stack.pop()
        if isinstance(node, ast.Import):
            found += [Import(each.name, node.lineno, local, each.asname or each.name) for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            for each in node.names:
                found.append(Import(f"{base}.{each.name}", node.lineno, local, each.asname or each.name))
        local = local or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        stack += [(child, local) for child in ast.iter_child_nodes(node)]
    return sorted(found, key=lambda each: (each.line, each.name))


def attributes(source: str) -> list[tuple[str, str, int]]:
    """``(name, attribute, line)`` of every ``name.attribute``."""
    return [
        (node.value.id, node.attr, node.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]


def modules(root: Path, name: str) -> dict[str, Path]:
    """Every module below a package folder (through links), by its dotted name."""
    found = {}
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and entry.name != "__pycache__" and entry.name.isidentifier():
            found |= modules(entry, f"{name}.{entry.name}")
        elif entry.suffix == ".py":
            found[name if entry.stem == "__init__" else f"{name}.{entry.stem}"] = entry
    return found
