"""Pages of tables and figures: one self-contained HTML file, a short Markdown file, and small tables as CSV.

The page reads without a server and without its script, on a phone, in the dark and on paper. What is long is folded;
what a page shows as figures and tables can be had as files of their own (``parts`` of :meth:`Page.write`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from pathlib import Path

from jinja2 import Environment, PackageLoader, select_autoescape
from matplotlib.figure import Figure

from mapgap.core.storage import make_folder, replace_file
from mapgap.reporting import figures
from mapgap.reporting.heat import Panel
from mapgap.reporting.run_tables import RUNS
from mapgap.reporting.shown import file_name, markdown
from mapgap.reporting.strips import StripChart
from mapgap.reporting.tables import Table
from mapgap.reporting.theme import rules, standalone


@dataclass(frozen=True)
class Picture:
    """A named figure with its caption."""

    name: str
    drawn: Figure | StripChart
    caption: str

    @cached_property
    def svg(self) -> str:
        """Its text, for a page."""
        return self.drawn.page if isinstance(self.drawn, StripChart) else figures.svg(self.drawn)

    @property
    def alone(self) -> str:
        """Its text, for a file of its own."""
        return standalone(self.drawn.alone if isinstance(self.drawn, StripChart) else self.svg)

    @property
    def family(self) -> str:
        """Pictures of one family are small multiples: its name up to the first underscore."""
        return self.name.partition("_")[0]

    @property
    def is_small(self) -> bool:
        """Can it be one of several?"""
        drawn = self.drawn
        return isinstance(drawn, Figure) and len(drawn.axes) == 1 and drawn.get_figwidth() <= WIDEST_PANEL

    @property
    def is_wide(self) -> bool:
        """It needs the whole width of a page."""
        return isinstance(self.drawn, Figure) and self.drawn.get_figwidth() > NARROW


def picture(name: str, figure: Figure, caption: str) -> Picture:
    return Picture(name, figure, caption)


@dataclass(frozen=True)
class Block:
    """What a page shows as one figure: a picture, or several small ones with their legend."""

    svgs: Sequence[str]
    caption: str
    is_wide: bool


def families(pictures: Sequence[Picture]) -> list[list[Picture]]:
    """What is one figure of a page, in the place of its first picture: most are alone, several small ones of a family
    are together."""
    found: dict[str, list[Picture]] = {}
    for each in pictures:
        found.setdefault(each.family if each.is_small else each.name, []).append(each)
    split = (([family] if len(family) >= SEVERAL else [[each] for each in family]) for family in found.values())
    return [part for parts in split for part in parts]


def block(family: Sequence[Picture]) -> Block:
    """A family as a page shows it."""
    if len(family) == 1:
        return Block([family[0].svg], family[0].caption, family[0].is_wide)
    svgs = figures.small_multiples([deepcopy(each.drawn) for each in family if isinstance(each.drawn, Figure)])
    return Block(svgs, _common([each.caption for each in family]), is_wide=True)


def _common(captions: Sequence[str]) -> str:
    """What all captions say: the words that they begin and end with."""
    words = [caption.split() for caption in captions]
    if all(each == words[0] for each in words):
        return captions[0]
    head = _agreed(words)
    tail = _agreed([each[len(head) :][::-1] for each in words])[::-1]
    return " ".join([*head, "…", *tail])


def _agreed(words: Sequence[Sequence[str]]) -> list[str]:
    """The words that all begin with."""
    found: list[str] = []
    for each in zip(*words, strict=False):
        if len(set(each)) > 1:
            break
        found.append(each[0])
    return found


@dataclass
class Section:
    """One heading of a page with text, tables and figures."""

    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Picture] = field(default_factory=list)

    @cached_property
    def blocks(self) -> list[Block]:
        """Its pictures as the page shows them. Small multiples are made of copies: a picture alone stays as it is."""
        return [block(family) for family in families(self.figures)]

    @property
    def captions(self) -> list[str]:
        """What stands below them; nothing is drawn for it."""
        return [_common([each.caption for each in family]) for family in families(self.figures)]

    @property
    def is_folded(self) -> bool:
        """Nothing of it is open: a page on paper leaves it out."""
        return not self.text and not self.figures and all(table.is_folded for table in self.tables)


@dataclass(frozen=True)
class Answer:
    """What the runs say about one problem: a card of the first screen.

    Attributes
    ----------
    title, paper : str
        The problem's name, and whose it is.
    method : str
        The published heuristic; empty where none was run.
    losses : list of (str, str, str)
        By objective (empty if there is one): how far its plans are from optimal in the arithmetic mean, and at worst.
    words : list of str
        What else there is to say: over how many instances, the best baselines, what is proven.
    chart : StripChart, optional
        A dot per plan of the heuristic.
    """

    title: str
    paper: str
    method: str
    losses: Sequence[tuple[str, str, str]]
    words: Sequence[str]
    chart: StripChart | None = None

    @property
    def sentence(self) -> str:
        """The card without its chart."""
        lost = ", ".join(
            f"{mean}{f' in {what}' if what else ''} (at worst {worst})" for what, mean, worst in self.losses
        )
        first = [f"In the mean plans of {self.method} are worse than optimal by {lost}"] if lost else []
        return " ".join(f"{part}." for part in (*first, *self.words))


@dataclass
class Page:
    """A whole report.

    Attributes
    ----------
    title : str
    lead, about : list of str
        Paragraphs before everything else, and behind it: on what machine and when.
    sections : list of Section
    answers : list of Answer
        One per problem.
    heat : list of Panel
        The heat map of the first screen.
    """

    title: str
    lead: list[str]
    sections: list[Section]
    answers: list[Answer] = field(default_factory=list)
    heat: list[Panel] = field(default_factory=list)
    about: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What is wrong with what the page is made from; an audit says it."""
    missing: list[str] = field(default_factory=list)
    """Keys of runs that the design of a study has and the folder has not."""

    def write(self, folder: Path, parts: Path | None = None) -> Path:
        """Write ``report.html`` (self-contained), ``report.md`` and a CSV per table that is not huge.

        Parameters
        ----------
        parts : Path, optional
            Folder for every figure (SVG) and every table (CSV) as a file of its own.

        Raises
        ------
        InputError
            The folder cannot be made, or a file cannot be written; files that were there stay whole.
        """
        if parts is not None:
            _write(parts, self._parts())
        files = self.files()
        stale = _written_before(folder, [table.name for table in self.tables()])
        _write(folder, files)
        for name in stale - files.keys():
            with suppress(OSError):  # it may be a folder, or not ours to remove
                (folder / name).unlink()
        return folder / PAGE

    def files(self, *, drawn: bool = True) -> dict[str, str]:
        """Texts by name of all that :meth:`write` writes to its folder; if not ``drawn``, the page has no pictures."""
        files = {TEXT: self.markdown()}
        for table in self.tables():
            if not table.is_huge and table.name != RUNS:
                files[f"{file_name(table.name)}.csv"] = table.csv()
        return files | {PAGE: self.html(sorted(files), drawn=drawn)}

    def _parts(self) -> dict[str, str]:
        files = {f"{file_name(table.name)}.csv": table.csv() for table in self.tables()}
        for section in self.sections:
            files |= {f"{file_name(each.name)}.svg": each.alone for each in section.figures}
        return files

    def tables(self) -> list[Table]:
        """The tables of all sections."""
        return [table for section in self.sections for table in section.tables]

    def html(self, beside: Sequence[str] = (), *, drawn: bool = True) -> str:
        """The page, self-contained; it names the files that are written beside it."""
        environment = Environment(
            loader=PackageLoader("mapgap.reporting"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            trim_blocks=True,
        )
        return environment.get_template("report.html.j2").render(page=self, rules=rules(), beside=beside, drawn=drawn)

    def markdown(self) -> str:
        """The lead and the tables that are not folded; of the others, where they are."""
        parts = [f"# {markdown(self.title)}", "", *map(markdown, self.lead), ""]
        parts += [
            f"- **{markdown(each.paper or each.title)}**, {markdown(each.title)}: {markdown(each.sentence)}"
            for each in self.answers
        ]
        for section in self.sections:
            if section.is_folded and not section.tables:
                continue
            parts += ["", f"## {markdown(section.title)}", "", *map(markdown, section.text), ""]
            parts += [table.markdown() for table in section.tables if not table.is_folded]
            folded = [table for table in section.tables if table.is_folded]
            parts += [f"- {markdown(table.title)}: {len(table.rows)} rows{_where(table)}" for table in folded]
        parts += ["", *map(markdown, self.about), "", "Figures and everything else: report.html beside this file."]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def _where(table: Table) -> str:
    return " (report.html)" if table.is_huge else f" ([CSV]({file_name(table.name)}.csv))"


def _written_before(folder: Path, tables: Sequence[str]) -> set[str]:
    """The files that an earlier page of the folder has brought along: it names them.

    Older pages do not. They came with a picture per link of their text, with tables of the same names, and with all
    runs as two tables.
    """
    if not (folder / PAGE).is_file():
        return set()
    named = _BESIDE.search((folder / PAGE).read_text(encoding="utf-8", errors="replace"))
    if named is not None:
        found = unescape(named[1]).split("/")
    else:
        text = (folder / TEXT).read_text(encoding="utf-8", errors="replace") if (folder / TEXT).is_file() else ""
        found = [
            *_LINKED.findall(text),
            *(f"{file_name(table)}.csv" for table in tables),
            f"{RUNS}.csv",
            f"{RUNS}.parquet",
        ]
    return {name for name in found if name == file_name(name) and name.endswith(MADE)}


def _write(folder: Path, files: dict[str, str]) -> None:
    make_folder(folder)
    for name, text in files.items():
        replace_file(folder / name, text.encode("utf-8", "replace"))


MADE = (".csv", ".svg", ".parquet")
"""Endings of the files that a page brings along, and may take away."""
PAGE, TEXT = "report.html", "report.md"
"""Names of a page in its folder, and of its short form."""
_BESIDE = re.compile(r'<meta name="mapgap-files" content="([^"]*)">')
_LINKED = re.compile(r"^!\[.*\]\(([\w.@+-]+\.svg)\)$", re.MULTILINE)
SEVERAL, WIDEST_PANEL, NARROW = 3, 9.0, 6.6
"""Pictures of a family from which on they are small multiples; inches beyond which none is one of them; inches up to
which a picture fits beside another one."""
