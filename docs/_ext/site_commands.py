"""The directive ``commands``: usage, arguments and options of every command, read from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from mapgap.cli.app import app as commands


def walk(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Commands that do something, with their contexts, in the order of ``mapgap --help``."""
    for name, each in getattr(command, "commands", {}).items():
        inner = command.context_class(each, info_name=name, parent=context)
        if getattr(each, "commands", None):
            yield from walk(each, inner)
        else:
            yield each, inner


def all_commands() -> list[tuple[Any, Any]]:
    """Every command of mapgap and its context."""
    top = get_command(commands)
    return list(walk(top, top.context_class(top, info_name="mapgap")))


def usage(command: Any, context: Any) -> str:
    """The line that ``--help`` begins with."""
    return str(command.get_usage(context)).removeprefix("Usage: ")


def parameters(command: Any, context: Any) -> list[tuple[str, str]]:
    """Names and help of all arguments and options."""
    records = (each.get_help_record(context) for each in command.get_params(context))
    return [(names, text) for names, text in filter(None, records) if names != "--help"]


class Commands(SphinxDirective):
    """``{commands}``: a section per command."""

    has_content = True  # a word for pages that show the block as it is written

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for command, context in all_commands():
            name = context.command_path
            section = nodes.section(ids=[nodes.make_id(name)], names=[name])
            section += nodes.title("", "", nodes.literal(text=name))
            section += nodes.paragraph(text=command.help or "")
            line = usage(command, context)
            section += nodes.literal_block(line, line, language="text")
            items = [self.item(names, text) for names, text in parameters(command, context)]
            if items:
                section += nodes.definition_list("", *items)
            self.state.document.note_explicit_target(section, section)
            found.append(section)
        return found

    @staticmethod
    def item(names: str, text: str) -> nodes.definition_list_item:
        term = nodes.term("", "", nodes.literal(text=names))
        return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph(text=text)))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
