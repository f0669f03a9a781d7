"""The documentation site: ``poe docs`` builds it with every warning as an error.

The pages are the Markdown files of this folder, which read on their own too. What would drift if it were written down
is made at build time by the extensions in ``_ext``: tables of methods from the registry, options from the command
line, docstrings, and the ledger with a page and a chart per instance. Lessons are run.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import mapgap  # noqa: E402

project = "mapgap"
author = copyright = "The mapgap developers"
version = release = mapgap.__version__
language = "en"
smartquotes = False  # an option is --exact

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "site_math",
    "site_prose",
    "site_files",
    "site_drawings",
    "site_catalogue",
    "site_results",
    "site_docstrings",
    "site_listing",
    "site_commands",
    "site_ledger",
    "site_lessons",
    "site_checker",
    "site_runner",
    "site_slides",
    "site_player",
    "site_links",
]
exclude_patterns = ["_ext", "_static", "**/__pycache__"]
nitpicky = True
# Docstrings also speak to readers of the code: types in words, and names of the rooms that the reference leaves out.
nitpick_ignore_regex = [
    ("py:(class|obj)", r".*"),
    ("py:data", r"Reference"),
    ("py:exc", r"EngineError|GuardError"),
    (
        "py:(func|mod|attr|meth|data)",
        r"mapgap\.(core|catalogue|records|execution|evidence|reporting|interface|solvers)\..*",
    ),
]
linkcheck_ignore = [r"^(?!https?://)"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # a block of YAML in a page may be a fragment

nb_execution_mode = "force"  # a lesson is run whenever its page is made
if os.environ.get("MAPGAP_LESSONS") == "in_turn":  # by .ci/run: a third of them, others with other commits
    from mapgap.contract.seeds import rotation

    lessons = sorted(page.name for page in (Path(__file__).parent / "lessons").glob("*.md"))
    nb_execution_excludepatterns = [f"lessons/{name}" for k, name in enumerate(lessons) if (k + rotation()) % 3]
nb_execution_timeout = 600  # seconds of a cell, on the clock of a busy machine; site_lessons.py has the limit
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"
nb_code_prompt_show = "Show the answer"  # cells with the tag hide-cell
nb_code_prompt_hide = "Hide the answer"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # types are words, not references

html_theme = "furo"
html_title = "mapgap"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = ["table.js", "player.js"]
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5c8a", "color-brand-content": "#0b5c8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4ee", "color-brand-content": "#7cc4ee"},
}
