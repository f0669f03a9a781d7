"""Write run records as one self-contained HTML page, Markdown, CSV and SVG files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, PackageLoader, select_autoescape
from matplotlib.figure import Figure
from rich.console import Console

from mapgap import figures
from mapgap.analysis import Record, duels, facts, per_method, per_run
from mapgap.bench import read_runs
from mapgap.tables import Column, Table


@dataclass(frozen=True)
class Picture:
    """A named figure with its caption; ``svg`` is its text."""

    name: str
    svg: str
    caption: str


def picture(name: str, figure: Figure, caption: str) -> Picture:
    return Picture(name, figures.svg(figure), caption)


@dataclass
class Section:
    """One heading of a page with text, tables and figures."""

    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Picture] = field(default_factory=list)


@dataclass
class Page:
    """A whole report."""

    title: str
    lead: list[str]
    sections: list[Section]

    def write(self, folder: Path) -> Path:
        """Write ``report.html`` (self-contained), ``report.md``, one CSV per table and one SVG per figure."""
        folder.mkdir(parents=True, exist_ok=True)
        environment = Environment(
            loader=PackageLoader("mapgap"), autoescape=select_autoescape(default=True, default_for_string=True)
        )
        html = environment.get_template("report.html.j2").render(
            title=self.title, lead=self.lead, sections=self.sections
        )
        page = folder / "report.html"
        page.write_text(html)
        parts = [f"# {self.title}", "", *self.lead, ""]
        for section in self.sections:
            parts += [f"## {section.title}", "", *section.text, ""]
            for table in section.tables:
                parts += [table.markdown()]
                (folder / f"{table.name}.csv").write_text(table.csv())
            for item in section.figures:
                (folder / f"{item.name}.svg").write_text(item.svg)
                parts += [f"![{item.caption}]({item.name}.svg)", ""]
        (folder / "report.md").write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n")
        return page


PERCENT = ".2f"


def method_table(records: Sequence[Record]) -> Table:
    """Gap and time per method."""
    return Table(
        "methods",
        "Methods",
        [
            Column("problem", "problem"),
            Column("method", "method"),
            Column("kind", "kind"),
            Column("runs", "runs"),
            Column("plans", "plans"),
            Column("errors", "errors"),
            Column("proven_optimal", "proven optimal"),
            Column("gap_percent", "gap [%]", PERCENT),
            Column("gap_to_best_percent", "to best plan [%]", PERCENT),
            Column("wall_s", "time [s]", ".2f"),
            Column("worst_gap_percent", "worst gap [%]", PERCENT),
            Column("worst_instance", "worst instance"),
        ],
        per_method(records),
        "Gap: to the best proven bound by any method on the instance. Means are shifted geometric (shift 1 % and 1 s).",
    )


def instance_table(records: Sequence[Record]) -> Table:
    """What is known of every instance."""
    rows = [
        {
            "instance": fact.name,
            "best": fact.best,
            "best_by": fact.best_by,
            "bound": fact.bound,
            "bound_by": fact.bound_by,
            "gap": None if fact.gap is None else 100 * fact.gap,
            "proven": "proven optimal" if fact.proven else "",
        }
        for fact in sorted(facts(records).values(), key=lambda fact: fact.name)
    ]
    columns = [
        Column("instance", "instance"),
        Column("best", "best plan"),
        Column("best_by", "by"),
        Column("bound", "best bound"),
        Column("bound_by", "by"),
        Column("gap", "gap [%]", ".3f"),
        Column("proven", "proven"),
    ]
    return Table("instances", "Instances", columns, rows)


def run_table(records: Sequence[Record]) -> Table:
    """One row per run."""
    rows = per_run(records)
    for row in rows:
        for key in ("gap", "gap_to_best"):
            row[key] = None if row[key] is None else 100 * row[key]
    columns = [
        Column(k, k.replace("_", " "))
        for k in ("instance", "method", "status", "stop", "objective", "bound", "best_bound")
    ]
    columns += [
        Column("gap", "gap [%]", PERCENT),
        Column("gap_to_best", "to best plan [%]", PERCENT),
        Column("wall_s", "time [s]", ".3f"),
    ]
    return Table("runs", "Runs", [*columns, Column("peak_mb", "peak [MB]", ".0f"), Column("error", "error")], rows)


def duel_table(records: Sequence[Record]) -> Table:
    """Who beats whom."""
    counts = duels(records)
    names = sorted({a for a, _ in counts})
    rows = [{"method": a} | {b: "" if a == b else "/".join(map(str, counts[a, b])) for b in names} for a in names]
    columns = [Column("method", "row against column"), *(Column(b, b) for b in names)]
    return Table(
        "duels", "Who beats whom", columns, rows, "better / equal / worse, on instances where both found a plan"
    )


def overview(records: Sequence[Record], title: str = "mapgap report") -> Page:
    """The standard page over any runs."""
    known = facts(records).values()
    proven = sum(fact.proven for fact in known)
    lead = [
        f"{len(records)} runs of {len({r['method'] for r in records})} methods on {len(known)} instances; "
        f"{proven} instances proven optimal, {sum(f.bound is not None for f in known)} with a proven bound."
    ]
    machines = sorted({f"{r.get('cpu', 'unknown processor')}" for r in records})
    lead.append(f"Measured on: {', '.join(machines)}. Times are of one run each on that machine.")
    slowest = sorted(
        {r["instance"] for r in records if len([p for p in r.get("trace") or [] if p.get("bound") is not None]) > 1}
    )[:6]
    curves = [
        picture(f"trace_{name}", figures.gap_over_time(records, name), f"Plans and bounds over time on {name}.")
        for name in slowest
    ]
    quality = [
        picture("gaps", figures.gap_per_method(records), "Gap of every plan to the best proven bound."),
        picture(
            "profile",
            figures.performance_profile(records),
            "Performance profile: share of instances within a factor of the best plan.",
        ),
    ]
    sections = [
        Section("Methods", tables=[method_table(records)], figures=quality),
        Section("Who beats whom", tables=[duel_table(records)]),
        Section("Instances", tables=[instance_table(records)]),
    ]
    if curves:
        sections.append(Section("Over time", figures=curves))
    sections.append(Section("Runs", tables=[run_table(records)]))
    return Page(title, lead, sections)


def main_report(runs: Path, out: Path) -> Path:
    """Write the standard report of a run file or folder; returns the HTML page."""
    page = overview(read_runs(runs)).write(out)
    Console(stderr=True).print(f"wrote {page}")
    return page
