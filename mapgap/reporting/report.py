"""Write run records as one self-contained HTML page, Markdown, CSV and SVG files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from jinja2 import Environment, PackageLoader, select_autoescape
from matplotlib.figure import Figure

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import InputError
from mapgap.core.storage import make_folder, replace_file
from mapgap.evidence.contradictions import Contradiction, contradictions
from mapgap.evidence.ledger import Ledger
from mapgap.execution.watch import verify
from mapgap.records.files import read_runs
from mapgap.records.record import relative
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.analysis import duels, glance, per_method, per_run
from mapgap.reporting.gantt import plan_chart
from mapgap.reporting.shown import EDITED, broken_lines, file_name, markdown, presentable
from mapgap.reporting.tables import Column, Table


@dataclass(frozen=True)
class Picture:
    """A named figure with its caption."""

    name: str
    figure: Figure
    caption: str

    @cached_property
    def svg(self) -> str:
        """Its text; drawing takes longer than all else of a page, and not everybody looks."""
        return figures.svg(self.figure)


def picture(name: str, figure: Figure, caption: str) -> Picture:
    return Picture(name, figure, caption)


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
    faults: list[str] = field(default_factory=list)
    """What is wrong with what the page is made from; an audit says it."""

    def files(self, *, drawn: bool = True) -> dict[str, str]:
        """Texts by name: ``report.html`` (self-contained), ``report.md``, one CSV per table and one SVG per figure;
        if it is not ``drawn``, no SVG, and none within the HTML."""
        environment = Environment(
            loader=PackageLoader("mapgap.reporting"),
            autoescape=select_autoescape(default=True, default_for_string=True),
        )
        html = environment.get_template("report.html.j2").render(
            title=self.title, lead=self.lead, sections=self.sections, drawn=drawn
        )
        files = {"report.html": html}
        parts = [f"# {markdown(self.title)}", "", *map(markdown, self.lead), ""]
        for section in self.sections:
            parts += [f"## {markdown(section.title)}", "", *map(markdown, section.text), ""]
            for table in section.tables:
                parts += [table.markdown()]
                files[f"{file_name(table.name)}.csv"] = table.csv()
            for item in section.figures:
                name = f"{file_name(item.name)}.svg"
                if drawn:
                    files[name] = item.svg
                parts += [f"![{markdown(item.caption)}]({name})", ""]
        files["report.md"] = re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"
        return files

    def write(self, folder: Path) -> Path:
        """Write all files of the page; ``report.html`` is returned.

        Raises
        ------
        InputError
            The folder cannot be made, or a file cannot be written; files that were there stay whole.
        """
        make_folder(folder)
        for name, text in self.files().items():
            replace_file(folder / name, text.encode("utf-8", "replace"))
        return folder / "report.html"


PERCENT = ".2f"


def method_table(records: Runs) -> Table:
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
            Column("proven_optimal", "own proofs"),
            Column("gap_percent", "gap [%]", PERCENT),
            Column("gap_to_best_percent", "to best plan [%]", PERCENT),
            Column("primal_integral", "primal integral", ".3f"),
            Column("wall_s", "time [s]", ".2f"),
            Column("worst_gap_percent", "worst gap [%]", PERCENT),
            Column("worst_instance", "worst instance"),
        ],
        per_method(records),
        "Own proofs: runs that proved their plan optimal themselves. "
        "Gap: to the best proven bound by any method on the instance. Means are shifted geometric (shift 1 % and 1 s). "
        "Primal integral: mean gap to the best plan over the time limit, 1 before the first plan.",
    )


def glance_table(records: Runs) -> Table:
    """Which heuristic loses how much where; what is proven of it."""
    columns = [
        Column("problem", "problem"),
        Column("method", "method"),
        Column("kind", "kind"),
        Column("instances", "solvable"),
        Column("nothing", "no plan"),
        Column("optimal", "optimal"),
        Column("at_least", "at least [%]", PERCENT),
        Column("at_most", "at most [%]", PERCENT),
        Column("worst", "worst [%]", PERCENT),
        Column("worst_instance", "on"),
    ]
    note = (
        "Solvable: instances with a plan; no plan: the method found none there; optimal: its plan is proven to be. "
        "Loss: at least to the best plan known, at most to the best proven bound; shifted geometric means over the "
        "instances on which the method found a plan; worst and where against the bound."
    )
    return Table("glance", "What the heuristics lose", columns, glance(records), note)


def proven_table(records: Runs) -> Table:
    """Per problem: how many instances are proven, and how wide open the others are."""
    rows = []
    for problem in sorted({r.problem for r in records}):
        known = list(records.where(problem=problem).facts.values())
        gaps = sorted(100 * f.gap for f in known if f.gap is not None)
        rows.append(
            {
                "problem": problem,
                "instances": len(known),
                "optimal": sum(f.proven for f in known),
                "percent": sum(gap <= 1.0 for gap in gaps),
                "bounded": len(gaps),
                "median": gaps[len(gaps) // 2] if gaps else None,
                "worst": gaps[-1] if gaps else None,
            }
        )
    columns = [
        Column("problem", "problem"),
        Column("instances", "instances"),
        Column("optimal", "proven optimal"),
        Column("percent", "within 1 %"),
        Column("bounded", "with plan and bound"),
        Column("median", "median gap [%]", ".3f"),
        Column("worst", "worst gap [%]", ".3f"),
    ]
    return Table("proven", "What is proven", columns, rows, "Gap of the best plan to the best bound, by any method.")


def instance_table(records: Runs) -> Table:
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
        for fact in sorted(records.facts.values(), key=lambda fact: fact.name)
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


def run_table(records: Runs) -> Table:
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


def duel_table(records: Runs) -> Table:
    """Who beats whom."""
    counts = duels(records)
    names = sorted({a for a, _ in counts})
    rows = [{"method": a} | {b: "" if a == b else "/".join(map(str, counts[a, b])) for b in names} for a in names]
    columns = [Column("method", "row against column"), *(Column(b, b) for b in names)]
    return Table(
        "duels", "Who beats whom", columns, rows, "better / equal / worse, on instances where both found a plan"
    )


def overview(records: Runs, title: str = "mapgap report") -> Page:
    """The standard page over any runs (and references): all problems at a glance, then each of them."""
    known = records.facts.values()
    runs = records.measured
    proven = sum(fact.proven for fact in known)
    problems = sorted({r.problem for r in records})
    lead = [
        f"{len(runs)} runs of {len({r.method for r in runs})} methods on {len(known)} instances "
        f"({', '.join(problems)}); {proven} instances proven optimal, {sum(f.bound is not None for f in known)} with a "
        "proven bound."
    ]
    machines = sorted({f"{r.cpu}" for r in runs})
    lead.append(f"Measured on: {', '.join(machines)}. Times are of one run each on that machine.")
    if len(runs) < len(records):
        lead.append("Best plans and bounds include those of the ledger of best-known results (marked *).")
    lead += [f"Contradiction: {each}." for each in contradictions(records)]
    sections = [
        Section(
            "At a glance",
            tables=[glance_table(records), proven_table(records)],
            figures=[picture("losses", figures.losses(glance(records)), "What each heuristic loses, for certain.")],
        )
    ]
    for problem in problems:
        sections.append(_problem_section(problem, records.where(problem=problem)))
    sections.append(Section("Instances", tables=[instance_table(records)]))
    sections.append(Section("Runs", tables=[run_table(records)]))
    return Page(title, lead, sections)


def _problem_section(problem: str, records: Runs) -> Section:
    """Methods of one problem: gaps, profile, duels, curves over time, and the plan of its worst case."""
    pictures = [
        picture(f"gaps_{problem}", figures.gap_per_method(records), "Gap of every plan to the best proven bound."),
        picture(
            f"profile_{problem}",
            figures.performance_profile(records),
            "Performance profile: share of instances within a factor of the best plan.",
        ),
    ]
    bounds = {id(r): [p for p in r.trace if p.bound is not None] for r in records}
    traced = {r.instance for r in records if len(bounds[id(r)]) > 1}
    pictures += [
        picture(f"trace_{name}", figures.gap_over_time(records, name), f"Plans and bounds over time on {name}.")
        for name in sorted(traced)[:2]
    ]
    pictures += plan_pictures(problem, records)
    methods, duels_of = method_table(records), duel_table(records)
    tables = [replace(methods, name=f"methods_{problem}"), replace(duels_of, name=f"duels_{problem}")]
    return Section(problem, tables=tables, figures=pictures)


def plan_pictures(problem: str, records: Runs) -> list[Picture]:
    """Gantt charts of the heuristic plan that loses most, and of the best plan for the same instance.

    Only where the instance is one of the library; of others a run file holds no data.
    """
    spec = registry.problems().get(problem)
    known = records.facts
    heuristic = [r for r in records if r.kind in ("published", "baseline") and r.plan]
    losing = [(relative(r.objective, known[r.instance_hash].best, r.sign) or 0.0, r.method, r) for r in heuristic]
    if spec is None or spec.gantt is None or not losing:
        return []
    worst = max(losing, key=lambda item: item[:2])[2]
    try:
        instance = load_instance(worst.instance.partition(EDITED)[0])
    except InputError:
        return []
    if instance.content_hash != worst.instance_hash:
        return []
    value = known[worst.instance_hash].best
    of_it = [r for r in records if r.instance_hash == worst.instance_hash and r.plan]
    best = next((r for r in of_it if r.objective == value), worst)
    found = []
    for label, record in (("worst", worst), ("best", best)):
        try:
            plan = spec.plan_type.model_validate_json(json.dumps(record.plan))
        except ValueError:
            return []
        if verify(spec, instance, plan).objective != record.objective:  # a file may say anything
            return []
        title = f"{record.instance}: {record.method}, {record.objective:,} {record.unit}"
        chart = plan_chart(spec, instance, plan, title)
        found.append(picture(f"plan_{problem}_{label}", chart, f"{title} ({label} plan of the instance)."))
    return found


def write_parquet(records: Runs, path: Path) -> bool:
    """The run table as Parquet; ``False`` without the extra ``mapgap[parquet]``."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        return False
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(per_run(records)), stream)
    replace_file(path, stream.getvalue())
    return True


def page_of_file(runs: Path, ledger: Ledger | None = None) -> Page:
    """The standard page of a run file or folder; nothing is written.

    Raises
    ------
    InputError
        No finished run.
    """
    broken: list[str] = []
    return _overview(_shown_runs(runs, ledger, broken), broken)


def _shown_runs(runs: Path, ledger: Ledger | None, broken: list[str]) -> Runs:
    """The runs of a file and what a ledger knows of their instances, with names that can be shown."""
    records = read_runs(runs, broken)
    if not records:
        found = f"none, and broken lines: {'; '.join(broken[:3])}" if broken else "none"
        raise InputError(f"{runs}: expected at least one finished run, found {found}")
    return presentable(records if ledger is None else records + ledger.references(records))


def _overview(records: Runs, broken: Sequence[str]) -> Page:
    page = overview(records)
    page.lead += broken_lines(broken)
    return page


@dataclass(frozen=True)
class Report:
    """A report that was written: its HTML page, runs (or entries of the ledger) that cannot all be right, and what is
    wrong with lines that are no runs."""

    page: Path
    contradictions: list[Contradiction]
    broken: list[str]


def write_report(runs: Path, out: Path, ledger: Ledger | None = None) -> Report:
    """Write the standard report of a run file or folder, against what a ledger knows.

    Raises
    ------
    InputError
        No finished run, or a file that cannot be written.
    """
    broken: list[str] = []
    records = _shown_runs(runs, ledger, broken)
    written = _overview(records, broken).write(out)
    write_parquet(records, out / "runs.parquet")
    return Report(written, contradictions(records), broken)
