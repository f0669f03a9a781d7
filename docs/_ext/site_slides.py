"""Of every lesson, from the same cells: slides, a sheet of its exercises, and the solutions apart.

Plain pages beside the lesson. A heading, a cell and an exercise begin a slide of their own; the browser prints a slide
a page. What the lesson hides (an answer in words, a cell with the tag ``hide-cell``) is in the solutions alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER = "lessons/"
KINDS = {"slides": "Slides", "sheet": "Exercises", "solutions": "Solutions"}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: {kind}</title><link rel="icon" href="../_static/favicon.svg">
<link rel="stylesheet" href="../_static/pygments.css"><link rel="stylesheet" href="../_static/slides.css"></head>
<body class="{name}"><main>{body}</main>{script}</body></html>
"""
SCRIPT = '<script src="../_static/slides.js" defer></script>'


def is_answer(node: nodes.Node) -> bool:
    """Does the lesson hide this?"""
    if not isinstance(node, nodes.Element):
        return False
    return type(node).__name__.startswith("dropdown") or any(
        mark in ("sd-dropdown", "tag_hide-cell") for each in node.findall(nodes.Element) for mark in each["classes"]
    )


def is_cell(node: nodes.Node) -> bool:
    """Code that is run, with what it has shown."""
    return isinstance(node, nodes.Element) and "cell" in node["classes"]


def is_exercise(node: nodes.Node) -> bool:
    """The question, without its answer."""
    return isinstance(node, nodes.admonition) and node[0].astext().startswith("Exercise")


def parts(tree: nodes.Element) -> Iterator[nodes.Node]:
    """Everything in a lesson in its order; sections are opened, their titles stay."""
    for node in tree.children:
        if isinstance(node, nodes.section):
            yield from parts(node)
        elif not isinstance(node, (nodes.comment, nodes.target)):
            yield node


def slides(tree: nodes.Element) -> list[list[nodes.Node]]:
    """What each slide shows."""
    found: list[list[nodes.Node]] = []
    full = True
    for node in parts(tree):
        if is_answer(node):
            full = True
            continue
        if full or isinstance(node, nodes.title) or is_exercise(node):
            found.append([])
        found[-1].append(node)
        full = is_cell(node) or is_exercise(node)
    return found


def exercises(tree: nodes.Element) -> list[tuple[nodes.Node, list[nodes.Node]]]:
    """Each question, and all that is hidden between it and the next one."""
    found: list[tuple[nodes.Node, list[nodes.Node]]] = []
    for node in parts(tree):
        if is_exercise(node):
            found.append((node, []))
        elif found and is_answer(node):
            found[-1][1].append(node)
    return found


def written(app: Sphinx, tree: nodes.document, page: str) -> Iterator[tuple[str, str]]:
    """``(kind, body)`` of every page that is made of a lesson."""

    def html(*several: nodes.Node) -> str:
        return "".join(
            f"<h2>{escape(each.astext())}</h2>"
            if isinstance(each, nodes.title)
            else str(app.builder.render_partial(each.deepcopy())["fragment"])
            for each in several
        )

    title = escape(app.env.titles[page].astext())
    yield "slides", "".join(f'<section class="slide" tabindex="-1">{html(*each)}</section>' for each in slides(tree))
    asked = exercises(tree)
    if asked:
        line = '<p class="name">Name: <span></span> Date: <span></span></p>'
        yield "sheet", f"<h1>{title}</h1>{line}" + "".join(f'{html(q)}<div class="room"></div>' for q, _ in asked)
        yield "solutions", f"<h1>{title}: solutions</h1>" + "".join(html(q, *answers) for q, answers in asked)


def _write(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    if tree is None or not page.startswith(FOLDER) or page == f"{FOLDER}index" or app.builder.name != "html":
        return
    name, links = page.removeprefix(FOLDER), []
    for kind, body in written(app, tree, page):
        text = PAGE.format(
            title=escape(app.env.titles[page].astext()),
            kind=KINDS[kind].lower(),
            name=kind,
            body=body.replace("<details", "<details open"),
            script=SCRIPT if kind == "slides" else "",
        )
        place = Path(app.outdir, FOLDER, f"{name}.{kind}.html")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        links.append(f'<a href="{place.name}">{KINDS[kind]}</a>')
    context["body"] = context["body"].replace("</h1>", f'</h1><p class="trail">{" · ".join(links)}</p>', 1)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
