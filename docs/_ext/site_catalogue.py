"""Directives that show what the registry declares: ``methods`` and ``facts`` of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files
from mapgap.core import Method
from mapgap.evidence.ledger import Known, glance

KINDS = {
    "exact": "Exact methods, which prove a bound",
    "published": "Of the paper",
    "baseline": "Baselines and planners",
    "bound": "Bounds, which look for no plan",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, widths: Sequence[int], code: int = 0) -> nodes.table:
    """A table of texts; the first ``code`` columns are literals."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=width) for width in widths]
    top = nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in head))
    body = nodes.tbody()
    for row in rows:
        cells = [
            nodes.entry("", nodes.paragraph("", "", nodes.literal(text=text) if place < code else nodes.Text(text)))
            for place, text in enumerate(row)
        ]
        body += nodes.row("", *cells)
    group += [nodes.thead("", top), body]
    return nodes.table("", group, classes=["wide"])


def note(method: Method) -> str:
    """What a list of methods adds to the summary."""
    marks = []
    if method.fast:
        marks.append("the choice of --fast")
    if method.kind == "exact" and method == registry.strongest_exact(method.problem):
        marks.append("the choice of --exact")
    if method.engines:
        marks.append(f"proof: {', '.join(method.engines)}")
    summary = method.summary.rstrip(".")
    return f"{summary} ({'; '.join(marks)})" if marks else summary


class Methods(SphinxDirective):
    """``{methods} PROBLEM``: every method by kind, with its source."""

    required_arguments = 1
    has_content = True  # a word for pages that show the block as it is written

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        methods = registry.methods(self.arguments[0]).values()
        for kind, words in KINDS.items():
            rows = [(each.name, note(each), each.reference) for each in methods if each.kind == kind]
            if rows:
                found.append(nodes.rubric(text=words))
                found.append(table(("method", "what it does", "source"), rows, widths=(24, 44, 32), code=1))
        return found


def counted(entries: Sequence[Known]) -> str:
    """How much of some entries of the ledger is proven."""
    proven = sum(each.plan is not None and each.plan == each.bound for each in entries)
    checked = sum(each.certificate == "checked" for each in entries)
    count, rest = len(entries), len(entries) - proven
    certified = "all" if checked == proven else str(checked)
    return (
        f"{count} instances, counted again under another objective; {proven} are proven optimal, {certified} of them "
        f"to a checker that needs no solver; {f'{rest} are open' if rest else 'none is open'}"
    )


class Facts(SphinxDirective):
    """``{facts} PROBLEM``: paper, sense, objectives and what the ledger knows."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        problem = registry.find_problem(name)
        entries = [entry for entry in glance().values() if problem_of(entry.name) == name]
        rows = [
            ("name", name),
            ("paper", problem.paper),
            ("goal", {"min": "minimise", "max": "maximise"}[problem.sense]),
            *([("objectives", ", ".join(problem.objectives))] if problem.objectives else []),
            ("random families", ", ".join(sorted(registry.library(name).families))),
            ("in the ledger", counted(entries)),
        ]
        return [table(("fact", "value"), rows, widths=(20, 80))]


def problem_of(instance: str) -> str:
    """The problem of a library instance, also under another objective."""
    return library_files()[instance.partition("@")[0]].parent.parent.name


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("methods", Methods)
    app.add_directive("facts", Facts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
