"""The ledger as a table (directive ``ledger``) and a page for every entry: values, proof, history, plan and chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from timetable import drawn

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.catalogue.sizes import known_sizes
from mapgap.cli.output import cell, percent
from mapgap.cli.words import worded
from mapgap.core import Problem
from mapgap.evidence.entry import Entry
from mapgap.evidence.ledger import Ledger, glance

log = logging.getLogger(__name__)
COLUMNS = ("instance", "status", "gap", "best plan", "bound", "unit", "found by", "problem")
NUMBERS = (2, 3, 4)  #: columns to the right
GRADES = {
    "checked": "a certificate proves the bound to a checker that needs no solver",
    "enumerated": "all plans were looked at; no certificate",
    "agreed": "two methods on different engines agree; no certificate",
    "claimed": "the word of one exact method; no certificate",
}

_navigation: dict[Any, str] = {}


def page_of(name: str) -> str:
    """The page of an entry."""
    return f"ledger/{name.replace('@', '__')}"


def status(entry: Entry) -> str:
    """``certified``, ``solver-proven`` or ``open``."""
    return entry.word


def row(entry: Entry) -> list[tuple[str, str]]:
    """The cells of an entry: what is shown, and what it is sorted by."""
    plan = entry.plan.value if entry.plan else None
    bound = entry.bound.value if entry.bound else None
    gap = entry.gap
    method = entry.plan.method if entry.plan else ""
    return [
        (entry.instance, entry.instance),
        (status(entry), status(entry)),
        (percent(gap) or "", "" if gap is None else str(gap)),
        (cell(plan), "" if plan is None else str(plan)),
        (cell(bound), "" if bound is None else str(bound)),
        (entry.unit, entry.unit),
        (method, method),
        (entry.problem, entry.problem),
    ]


def number(is_one: bool) -> str:
    """The attribute of a cell with a number."""
    return ' class="num"' if is_one else ""


def table(entries: Sequence[Entry]) -> str:
    """All entries; ``table.js`` adds the filters and sorts."""
    head = "".join(f'<th scope="col"{number(i in NUMBERS)}>{c}</th>' for i, c in enumerate(COLUMNS))
    lines = []
    for entry in entries:
        cells = row(entry)
        shown = escape(cells[0][0]).replace("_", "_<wbr>").replace("@", "<wbr>@")
        name = f'<th scope="row"><a href="{page_of(entry.instance)}.html">{shown}</a></th>'
        rest = "".join(
            f'<td{number(place in NUMBERS)} data-value="{escape(value)}">'
            + (f'<span class="status {value}">{value}</span>' if place == 1 else escape(text))
            + "</td>"
            for place, (text, value) in enumerate(cells[1:], 1)
        )
        lines.append(f"<tr>{name}{rest}</tr>")
    return (
        '<div class="table-wrapper ledger" data-filters="problem,status"><table class="docutils sortable">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


class LedgerTable(SphinxDirective):
    """``{ledger}``: the whole ledger as a table."""

    has_content = True  # a word for pages that show the block as it is written

    def run(self) -> list[nodes.Node]:
        book = Ledger.load()
        self.env.note_dependency(str(book.path))
        entries = [book.entries[name] for name in sorted(book.entries)]
        return [nodes.raw("", table(entries), format="html")]


def facts(rows: Mapping[str, str | None]) -> str:
    """Two columns; values are HTML."""
    lines = "".join(f'<tr><th scope="row">{key}</th><td>{value}</td></tr>' for key, value in rows.items() if value)
    return f'<div class="table-wrapper"><table class="docutils facts"><tbody>{lines}</tbody></table></div>'


def grid(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table of data; numbers stand to the right."""
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    lines = "".join(
        "<tr>"
        + "".join(f"<td{number(isinstance(value, (int, float)))}>{escape(cell(value))}</td>" for value in line)
        + "</tr>"
        for line in rows
    )
    return (
        '<div class="table-wrapper"><table class="docutils">'
        f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def body(book: Ledger, entry: Entry) -> str:
    """The page of an entry."""
    problem = registry.problems()[entry.problem]
    name = escape(entry.instance)
    base = entry.instance.partition("@")[0]
    found = {
        "problem": f'<a href="../problems/{entry.problem}.html">{escape(problem.title)}</a>',
        "size": escape(known_sizes().get(base, "")),
        "goal": {"min": "as little as possible", "max": "as much as possible"}[entry.sense],
        "best plan": _said(entry, "plan"),
        "bound": _said(entry, "bound"),
        "gap": percent(entry.gap),
        "status": f'<span class="status {status(entry)}">{status(entry)}</span> {_grade(entry)}',
        "content hash": f"<code>{escape(entry.instance_hash)}</code>",
    }
    story = [(s.date[:10], s.what, s.value, s.by, s.source or "", s.revision or s.version) for s in entry.story()]
    plan = "".join(_plan(problem, book, entry)) if entry.plan is not None else "<p>No plan is known.</p>"
    commands = [f"mapgap ledger show {name}", f"mapgap expand {name}"]
    if entry.certified is not None:
        commands.append(f"mapgap verify {name}")
    commands.append(f"mapgap solve {name} --exact --time-limit 60")
    check = ""
    if entry.certified is not None:
        file = book.certificate_path(entry.instance).name.removesuffix(".cert.json.gz")
        here, there = f"../check_here.html?certificate={file}", f"../_static/checker/{file}.cert.json.gz"
        check = (
            f'<p>Its certificate: <a href="{here}">check it in this browser</a>, or <a href="{there}">the file</a>.</p>'
        )
    return (
        f'<p class="trail"><a href="../ledger.html">Ledger</a></p><h1>{name}</h1>{facts(found)}'
        f"<h2>The best plan known</h2>{plan}"
        f"<h2>Who found what</h2>{grid(('date', 'what', 'value', 'by', 'file', 'version'), story)}"
        f'<h2>See for yourself</h2><div class="highlight"><pre>{escape(chr(10).join(commands))}</pre></div>{check}'
    )


def _said(entry: Entry, what: str) -> str | None:
    found = entry.plan if what == "plan" else entry.bound
    if found is None:
        return None
    return f"{escape(worded(found.value, entry.unit) or '')}, by <code>{escape(found.method)}</code>"


def _grade(entry: Entry) -> str:
    if entry.proven:
        return GRADES.get(str(entry.certificate), "optimal")
    if entry.checked_bound is not None:
        return f"the bound {cell(entry.checked_bound)} has a certificate"
    return "plan and bound differ"


def _plan(problem: Problem, book: Ledger, entry: Entry) -> Iterator[str]:
    """Its table and its chart, where the problem has them."""
    instance, plan = load_instance(entry.instance), load_plan(book.plan_path(entry.instance), entry.problem)
    if problem.gantt is not None and (lanes := problem.gantt(instance, plan)):
        yield f'<figure class="chart">{drawn(lanes, f"Timetable of the best plan of {entry.instance}")}</figure>'
    else:
        yield "<p>A plan of this instance has no timetable.</p>"
    if problem.describe is not None:
        told = problem.describe(instance, plan)
        yield grid(told.columns, told.rows)


def _pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    book = Ledger.load()
    log.info("ledger: %d pages", len(book.entries))
    for name in sorted(book.entries):
        yield page_of(name), {"title": name, "body": body(book, book.entries[name]), "parents": []}, "page.html"


def _link_instances(app: Sphinx, tree: nodes.document, page: str) -> None:
    """A cell of a table that is the name of an entry leads to its page: who found it, its plan, its certificate."""
    known = glance()
    for cell_ in tree.findall(nodes.entry):
        name = cell_.astext().strip()
        if name in known and next(iter(cell_.findall(nodes.reference)), None) is None:
            for text in list(cell_.findall(nodes.Text)):
                target = app.builder.get_relative_uri(page, page_of(name))
                text.parent.replace(text, nodes.reference("", "", text.copy(), refuri=target, internal=True))


def _same_navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Pages of one folder that stand in no table of contents have one navigation; to make it anew takes a third of a
    second, for each of hundreds of pages."""
    if page in app.env.all_docs or "toctree" not in context:
        return
    make, depth = context["toctree"], page.count("/")

    def kept(**kwargs: Any) -> str:
        key = (depth, *sorted(kwargs.items()))
        if key not in _navigation:
            _navigation[key] = make(**kwargs)
        return _navigation[key]

    context["toctree"] = kept


def setup(app: Sphinx) -> dict[str, Any]:
    _navigation.clear()
    app.connect("html-page-context", _same_navigation, priority=400)  # before the theme asks for it
    app.add_directive("ledger", LedgerTable)
    app.connect("doctree-resolved", _link_instances)
    app.connect("html-collect-pages", _pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
