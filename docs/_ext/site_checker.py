"""The page that checks certificates in the reader's browser (directive ``checker``), without a server.

The checker and the writers are packed as they are, and run in Pyodide: Python in WebAssembly. Its files are those of
the npm package of a pinned version, fetched once per checkout into ``build/pyodide-VERSION`` and held to their hash;
they are too large to be committed. Where they cannot be had the page says so, and the rest of the site is as ever.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

log = logging.getLogger(__name__)


class Pinned(NamedTuple):
    """A version of a package of the npm registry, the SHA-512 of its archive, and the files that pages need of it."""

    name: str
    integrity: str
    files: tuple[str, ...]


PYODIDE = Pinned(
    "pyodide@314.0.7",
    "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
    ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"),
)
CHECKER, KNOWN = "mapgap/evidence/check.py", "instances/best_known.sha256"
CERTIFICATES = "instances/best_known"
SUFFIX = ".cert.json.gz"


def vendored(root: Path, package: Pinned = PYODIDE) -> Path | None:
    """The folder with a package's files; ``None``, with a word in the log, where it cannot be had.

    Parameters
    ----------
    root : Path
        The checkout.
    """
    folder = root / "build" / package.name.replace("@", "-")
    if all((folder / Path(name).name).is_file() for name in package.files):
        return folder
    log.info("fetching %s from the npm registry, for pages that run in the browser", package.name)
    with tempfile.TemporaryDirectory() as scratch:
        command = ["npm", "pack", package.name, "--silent", "--pack-destination", scratch]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=scratch)
            unpack(next(Path(scratch).glob("*.tgz")), folder, package)
        except (OSError, StopIteration, subprocess.SubprocessError) as error:
            log.info("pages that run in the browser stay without %s: %s", package.name, error)
            return None
    return folder


def unpack(archive: Path, folder: Path, package: Pinned = PYODIDE) -> None:
    """Take a package's files out of its npm archive.

    Raises
    ------
    ValueError
        It is not the archive whose hash is pinned. Nothing is written.
    """
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != package.integrity:
        raise ValueError(f"{package.name}: expected an archive of SHA-512 {package.integrity}, found {found}")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        for name in package.files:
            member = tar.extractfile(f"package/{name}")
            assert member is not None
            (folder / Path(name).name).write_bytes(member.read())


def trusted(root: Path) -> Iterator[Path]:
    """What has to be believed: the checker, and the writers of all problems. And the list that names instances."""
    yield root / CHECKER
    yield from sorted(root.glob("problems/*/certificate/*.py"))
    yield root / KNOWN


def packed(root: Path, target: Path) -> None:
    """Pack what the browser runs; paths are those of a checkout, by which the checker finds the writers."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in trusted(root):
            archive.write(path, path.relative_to(root))


def form(names: list[str]) -> str:
    """The page's controls; ``checker.js`` brings them to life."""
    options = "".join(f"<option>{escape(name)}</option>" for name in names)
    return f"""<div id="checker" class="checker">
<form><label for="checker-name">A certificate of the ledger ({len(names)})</label>
<span class="tools"><input id="checker-name" list="checker-names" autocomplete="off" spellcheck="false" size="34"
value="{escape(names[0])}">
<datalist id="checker-names">{options}</datalist>
<button type="submit">Check it</button>
<button type="button" id="checker-more">Claim one more than it proves</button></span>
<label for="checker-files">Or files of your own: choose them, or drop them on this box. They stay on your
machine.</label>
<input id="checker-files" type="file" multiple accept=".json,.gz"></form>
<p id="checker-state" role="status">This page needs JavaScript: it runs Python in your browser.</p>
<ol id="checker-verdicts" aria-live="polite"></ol>
</div>
<script src="_static/checker.js" defer></script>"""


class Checker(SphinxDirective):
    """``{checker}``: the form, and below it what was found. The content is for pages that show no form."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir).parent
        names = sorted(path.name.removesuffix(SUFFIX) for path in (root / CERTIFICATES).glob(f"*{SUFFIX}"))
        return [nodes.raw("", form(names), format="html")]


def _bring_along(app: Sphinx, failed: Exception | None) -> None:
    """Put beside the pages what the browser fetches: Python, the checker, the certificates."""
    if failed is not None or app.builder.name != "html":
        return
    root, out = Path(app.srcdir).parent, Path(app.outdir, "_static", "checker")
    out.mkdir(parents=True, exist_ok=True)
    packed(root, out / "checkout.zip")
    for path in (root / CERTIFICATES).glob(f"*{SUFFIX}"):
        shutil.copy(path, out)
    if (python := vendored(root)) is not None:
        for name in PYODIDE.files:
            shutil.copy(python / name, out)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("checker", Checker)
    app.connect("build-finished", _bring_along)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
