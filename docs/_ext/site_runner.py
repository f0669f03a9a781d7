"""Lessons that run in the reader's browser, without a server: ``lesson.js`` gives their cells a button.

A session is Pyodide with the package as it is, without NumPy, Numba and engines, for which there are no wheels that a
site could bring along. So cells that need them have the tag ``needs-install``, and keep what the build has shown. What
is compiled is pinned by its hash: Pyodide and HiGHS for WebAssembly (npm), pydantic's core (PyPI); what is plain Python
comes from where the site is built. Where something cannot be had the pages say so, and are as ever.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import yaml
from site_checker import SUFFIX, Pinned, vendored
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)
LESSONS = ("a_bound_from_multipliers", "checking_a_certificate", "integer_program_by_hand", "two_goals")
HIGHS = Pinned(
    "highs@1.15.3",
    "5rzjBlAkqRxr7FOv+iZjxF8nNfKsEt8uOaP3S6gls6yRf4+Jv4BqBIE3iPFsgfOHutQBMNxRE9jWhxRAM7Oycw==",
    ("build/highs.mjs", "build/highs.wasm"),
)
CORE = ("2.50.4", "e6da138a1ecc1341c8b788a5ee822670b03788e1f5decf7af9d461de6e508b8e")
"""Version of pydantic's core, and the SHA-256 of its wheel for Pyodide, as PyPI states it."""
PLATFORM = (
    *("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "314"),
    *("--implementation", "cp", "--abi", "cp314"),
)
PLAIN = ("pydantic", "annotated-types", "typing-extensions", "typing-inspection", "PyYAML", "packaging", "networkx")
TOP = ("mapgap", "problems", "heuristics", "formulations", "instances", "solvers")
BOOK = Path("instances", "best_known.yaml")


def core(root: Path) -> Path | None:
    """The wheel of pydantic's core; ``None``, with a word in the log, where it cannot be had."""
    wanted, pinned = CORE
    folder = root / "build" / f"pydantic_core-{wanted}"
    if (found := next(folder.glob("*.whl"), None)) is not None:
        return found
    if version("pydantic_core") != wanted:  # pydantic takes its own version alone
        log.info("lessons do not run in the browser: pydantic's core is not the %s of constraints.txt", wanted)
        return None
    log.info("fetching pydantic_core %s for Pyodide from PyPI", wanted)
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *PLATFORM]
        try:
            subprocess.run(
                [*command, "--dest", scratch, f"pydantic_core=={wanted}"], check=True, capture_output=True, timeout=120
            )
            wheel = next(Path(scratch).glob("*.whl"))
        except (OSError, StopIteration, subprocess.SubprocessError) as error:
            log.info("lessons do not run in the browser: %s", error)
            return None
        if (digest := hashlib.sha256(wheel.read_bytes()).hexdigest()) != pinned:
            raise ValueError(f"{wheel.name}: expected SHA-256 {pinned}, found {digest}")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, folder))


def entries(root: Path) -> list[dict[str, Any]]:
    """What the ledger says of the instances that the lessons name: to read all of it takes a browser a minute."""
    texts = "".join((root / "docs" / "lessons" / f"{name}.md").read_text(encoding="utf-8") for name in LESSONS)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    book = yaml.load((root / BOOK).read_text(encoding="utf-8"), loader)
    return [entry for entry in book["entries"] if entry["instance"] in texts]


def sources(root: Path, names: set[str]) -> Iterator[tuple[Path, Path]]:
    """The package's files, and where an import finds them; of best-known results those with these names."""
    for top in TOP:
        for path in sorted((root / top).rglob("*")):
            place = path.relative_to(root)
            if not path.is_file() or place == BOOK or path.suffix == ".journal" or "__pycache__" in place.parts:
                continue
            if any((root / each).is_symlink() for each in (place, *place.parents) if len(each.parts) > 1):
                continue  # the layers, which come by their own names
            name = path.name.removesuffix(SUFFIX).removesuffix(".json")
            if place.parent != BOOK.with_suffix("") or name in names:
                yield path, place if top == "mapgap" else Path("mapgap", place)


def packed(root: Path, wheel: Path, target: Path) -> None:
    """Everything that a session imports, in one archive."""
    known = entries(root)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, place in sources(root, {entry["instance"] for entry in known}):
            archive.write(path, place)
        archive.writestr(str(Path("mapgap", BOOK)), yaml.safe_dump({"schema": 1, "entries": known}, sort_keys=False))
        for name in PLAIN:
            for file in distribution(name).files or ():
                if file.suffix == ".py" and not {"..", "tests"} & set(file.parts):
                    archive.write(str(file.locate()), str(file))
        for path in sorted(Path(__file__).with_name("browser").glob("*.py")):
            archive.write(path, path.name)
        with zipfile.ZipFile(wheel) as compiled:
            for name in compiled.namelist():
                archive.writestr(name, compiled.read(name))


def _bring_along(app: Sphinx, failed: Exception | None) -> None:
    if failed is not None or app.builder.name != "html":
        return
    root, out = Path(app.srcdir).parent, Path(app.outdir, "_static", "lessons")
    wheel, highs = core(root), vendored(root, HIGHS)
    if wheel is None or highs is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    for name in HIGHS.files:
        shutil.copy(highs / Path(name).name, out)
    packed(root, wheel, out / "session.zip")


def _script(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if page in {f"lessons/{name}" for name in LESSONS}:
        app.add_js_file("lesson.js")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", _script)
    app.connect("build-finished", _bring_along)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
