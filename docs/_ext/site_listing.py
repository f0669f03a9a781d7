"""The directive ``listing``: files of the repository, whole: an algorithm beside its paper's steps, an example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def files(root: Path, pattern: str) -> list[Path]:
    """The files of a checkout that a pattern names, the file that is named like the algorithm first.

    Raises
    ------
    ValueError
        There is none.
    """
    found = sorted(root.glob(pattern), key=lambda path: path.stem)
    if not found:
        raise ValueError(f"expected files {pattern}, found none")
    return found


LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml"}


class Listing(SphinxDirective):
    """``{listing} heuristics/PROBLEM/ALGORITHM*.py``: the files that the pattern names, with the numbers of lines."""

    required_arguments = 1
    has_content = True  # a word for pages that show the block as it is written

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir).parent
        try:
            found = files(root, self.arguments[0])
        except ValueError as error:
            raise self.error(f"listing: {error}") from error
        shown: list[nodes.Node] = []
        for path in found:
            self.env.note_dependency(str(path))
            text = path.read_text(encoding="utf-8")
            shown.append(nodes.rubric("", "", nodes.literal(text=path.relative_to(root).as_posix())))
            shown.append(nodes.literal_block(text, text, language=LANGUAGES[path.suffix], linenos=True))
        return shown


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("listing", Listing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
