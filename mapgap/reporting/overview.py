"""The standard page of any runs: which heuristic loses how much, where, and whether that is proven."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import InputError, plainly
from mapgap.core.storage import make_folder, replace_file
from mapgap.evidence.contradictions import Contradiction, contradictions
from mapgap.evidence.ledger import Ledger
from mapgap.execution.watch import verify
from mapgap.records.files import InUse, pack, read_runs, run_files
from mapgap.records.record import RunRecord, relative
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.analysis import per_run
from mapgap.reporting.classes import Class, classify
from mapgap.reporting.gantt import charts
from mapgap.reporting.heat import heat_map
from mapgap.reporting.losses import HEURISTIC, Loss, figure, interval, losses, row_of
from mapgap.reporting.report import Answer, Page, Picture, Section, picture
from mapgap.reporting.run_tables import PERCENT, duel_table, instance_table, method_table, proven_table, run_table, tip
from mapgap.reporting.shown import EDITED, broken_lines, presentable
from mapgap.reporting.strips import Dot, Strip, StripChart
from mapgap.reporting.tables import Table, header

LEAST_PERCENT, LEAST_SECONDS = 1.0, 0.001
"""From here on the axes of losses and times are logarithmic."""
LOSS = "loss against the bound [%], logarithmic from 1 %"
GANTT_INCH = 9.0


def overview(records: Runs, title: str = "What the heuristics lose, and what is proven") -> Page:
    """The standard page over any runs (and references): all problems at a glance, then each of them."""
    methods = len({record.method for record in records.measured})
    records = records.labelled
    known = records.facts.values()
    runs = records.measured
    classes = classify(records)
    whole = losses(records, {digest: Class(each.objective, "") for digest, each in classes.items()})
    problems = sorted({r.problem for r in records})
    lead = [f"Contradiction: {each}." for each in contradictions(records)]
    sections = [_problem_section(problem, records.where(problem=problem), whole) for problem in problems]
    sections.append(Section("What is proven", tables=[proven_table(records)]))
    sections.append(Section("All tables", tables=[glance_table(whole), instance_table(records), run_table(records)]))
    proven = sum(fact.proven for fact in known)
    about = [
        f"{len(runs)} runs of {methods} methods on {len(known)} instances "
        f"({', '.join(problems)}); {proven} instances proven optimal, {sum(f.bound is not None for f in known)} with a "
        f"proven bound. Measured on: {', '.join(sorted({r.cpu for r in runs}))}. Times are of one run each there."
    ]
    if len(runs) < len(records):
        about.append("Best plans and bounds include those of the ledger of best-known results (marked *).")
    answers = [_answer(problem, records.where(problem=problem), whole) for problem in problems]
    return Page(title, lead, sections, answers, heat_map(records), about)


def _answer(problem: str, records: Runs, whole: Sequence[Loss]) -> Answer:
    """How far the plans of the problem's published heuristic are from optimal, and what is proven of its instances."""
    own = [each for each in whole if each.problem == problem and each.state == "loss"]
    name = headline_method(problem, {each.method for each in own if each.kind == "published"})
    parts = [each for each in own if each.method == name]
    several = len({each.group for each in own}) > 1
    lost = []
    for each in parts:
        mean = interval(each.mean_least, each.mean_most)
        lost.append((each.group.title if several else "", mean, f"{figure(each.worst or 0.0)} %"))
    words = []
    if parts:
        over, every = sum(each.plans for each in parts), sum(each.instances for each in parts)
        words.append(f"Arithmetic mean over {over} of {every} instances, in the default reading")
    best = _best_baselines(own)
    if best:
        they = "baselines" if ", and " in best else "baseline"
        words.append(f"Best {they}, in the mean where all compared methods have a plan: {best}")
    known = list(records.facts.values())
    proof = f"The optimum is proven for {sum(fact.proven for fact in known)} of {len(known)} instances"
    gaps = sorted(100 * fact.gap for fact in known if fact.gap is not None and not fact.proven)
    if gaps:
        proof += f"; the best plans of {len(gaps)} others are within {gaps[-1]:.1f} % of a bound"
    paper = registry.problems()[problem].paper if problem in registry.problems() else ""
    return Answer(
        problem, paper, name or "", lost, [*words, proof], None if name is None else _card_chart(records, name)
    )


def _card_chart(records: Runs, method: str) -> StripChart | None:
    """The losses of one method; a strip per objective, and that is its name."""
    chart = strip_chart(records, _loss_dot, "loss [%], logarithmic from 1 %", LEAST_PERCENT, method)
    if chart is None:
        return None
    return replace(
        chart, strips=[replace(each, name=each.name.partition(", ")[2], bold=False) for each in chart.strips]
    )


def headline_method(problem: str, methods: Collection[str]) -> str | None:
    """The first of these methods in the order in which the problem declares them."""
    order = list(registry.methods(problem)) if problem in registry.problems() else []
    return min(methods, key=lambda name: (order.index(name) if name in order else len(order), name), default=None)


def _best_baselines(own: Sequence[Loss]) -> str:
    """The baseline that loses least, objective by objective."""
    best: dict[str, list[Loss]] = {}
    for group in dict.fromkeys(each.group for each in own):
        those = [each for each in own if each.group == group and each.kind != "published"]
        if those:
            least = min(those, key=lambda each: (each.at_least or 0.0, each.method))
            best.setdefault(least.method, []).append(least)
    several = len({each.group for each in own}) > 1
    return ", and ".join(f"{name} with {_spoken(parts, several)}" for name, parts in best.items())


def _spoken(parts: Sequence[Loss], several: bool) -> str:
    """Intervals, by objective."""
    return ", ".join(
        f"{each.group.title + ' ' if several else ''}{interval(each.at_least, each.at_most)}" for each in parts
    )


def glance_table(whole: Sequence[Loss], name: str = "glance") -> Table:
    """Which heuristic loses how much; what is proven of it."""
    rows = [row_of(each) for each in whole]
    columns = header(
        "method | problem | class: objective | kind | instances: solvable | applies: applies to | nothing: no plan "
        f"| optimal | over: mean over | at_least: at least [%]; {PERCENT} | at_most: at most [%]; {PERCENT} "
        f"| own: over all its plans [%]; {PERCENT} | worst: worst [%]; {PERCENT} | worst_instance: on"
    )
    several = {key: len({row[key] for row in rows}) > 1 for key in ("problem", "class")}
    note = (
        "Solvable: instances with a plan by any method; no plan: of those that the method applies to; optimal: its "
        "plan is proven to be. Loss: at least to the best plan known, at most to the best proven bound; "
        "arithmetic means over the instances on which all compared methods have a plan (a method without one on more "
        "than a tenth is not compared). Over all its plans: arithmetic mean, against bounds where each has one. Worst "
        "and where: of all its plans, against the bound."
    )
    shown = [column for column in columns if several.get(column.key, True)]
    return Table(name, "What the heuristics lose", shown, rows, note)


def _problem_section(problem: str, records: Runs, whole: Sequence[Loss]) -> Section:
    """Losses, times, profile and worst case of one problem; what is beyond its methods is said apart."""
    own = [each for each in whole if each.problem == problem]
    idle = sorted({each.method for each in own} - {each.method for each in own if each.state != "none"})
    meant = [each for each in own if each.state != "none"]
    few = sorted({each.method for each in meant if each.applies < each.instances})
    text = []
    if idle:
        text.append(f"To none of these instances applies: {', '.join(idle)}.")
    if few:
        counts = {each.method: f"{each.method} ({each.applies} of {each.instances})" for each in meant}
        text.append(f"Methods that apply to some instances only: {', '.join(counts[name] for name in few)}.")
    pictures: list[Picture | None] = [
        strips(f"losses_{problem}", records, _loss_dot, LOSS, LEAST_PERCENT),
        strips(f"times_{problem}", records, _time_dot, "time [s], logarithmic from 1 ms", LEAST_SECONDS),
        picture(
            f"profile_{problem}",
            figures.performance_profile(records),
            "Performance profile: share of instances within a factor of the best plan.",
        ),
    ]
    bounds = {id(r): [p for p in r.trace if p.bound is not None] for r in records}
    traced = sorted({r.instance for r in records if len(bounds[id(r)]) > 1})
    pictures += [
        picture(f"trace_{name}", figures.gap_over_time(records, name), f"Plans and bounds over time on {name}.")
        for name in traced[:1]
    ]
    pictures.append(worst_case(problem, records))
    tables = [
        glance_table(meant, f"losses_{problem}"),
        replace(method_table(records), name=f"methods_{problem}", fold=True),
        replace(duel_table(records), name=f"duels_{problem}"),
    ]
    shown = [each for each in pictures if each is not None]
    return Section(problem, text, [table for table in tables if table.rows], shown)


Dotted = Callable[[RunRecord, Runs], Dot | None]


def strips(name: str, records: Runs, dot: Dotted, label: str, linear: float) -> Picture | None:
    """A strip per objective and method with a dot per run, the least median first; ``None`` without a dot."""
    chart = strip_chart(records, dot, label, linear)
    if chart is None:
        return None
    caption = f"{label[0].upper()}{label[1:]}: a dot per run, a bar at the median; bold: published."
    if any(found.limit for strip in chart.strips for found in strip.dots):
        caption += " Rings: no bound is known, so against the best plan."
    return Picture(name, chart, caption)


def strip_chart(records: Runs, dot: Dotted, label: str, linear: float, only: str = "") -> StripChart | None:
    """The chart alone; ``only``: of this method."""
    objectives = {digest: each.objective.replace("_", " ") for digest, each in classify(records).items()}
    kinds = {record.method: record.kind for record in records}
    groups: dict[tuple[str, str], list[Dot]] = {}
    for record in records.measured:
        found = None if only not in ("", record.method) else dot(record, records)
        if found is not None:
            groups.setdefault((objectives[record.instance_hash], record.method), []).append(found)
    if not groups:
        return None
    order = sorted(groups, key=lambda each: (each[0], median(found.value for found in groups[each]), each))
    rows = [
        Strip(f"{method}, {what}" if what else method, groups[what, method], kinds[method] == "published")
        for what, method in order
    ]
    return StripChart(rows, label, linear)


def _loss_dot(record: RunRecord, records: Runs) -> Dot | None:
    fact = records.facts[record.instance_hash]
    if record.error or record.objective is None:
        return None
    gap = relative(record.objective, fact.best if fact.bound is None else fact.bound, record.sign)
    return None if gap is None else Dot(100 * gap, f"{100 * gap:.2f} %, {_words(record, records)}", fact.bound is None)


def _time_dot(record: RunRecord, records: Runs) -> Dot | None:
    if record.wall_s is None or record.error:
        return None
    return Dot(record.wall_s, f"{record.wall_s:.3f} s, {record.instance}")


def _words(record: RunRecord, records: Runs) -> str:
    """Instance, plan, bound and seed."""
    fact = records.facts[record.instance_hash]
    row = {"objective": record.objective, "best_bound": fact.bound, "seed": record.seed}
    return f"{record.instance}: {tip(row | {'status': record.status, 'stop': record.stop})}"


def worst_case(problem: str, records: Runs) -> Picture | None:
    """The heuristic plan that loses most and the best plan of the same instance, on one time axis.

    Only where the instance is one of the library; of others a run file holds no data.
    """
    spec = registry.problems().get(problem)
    known = records.facts
    plans_of = [r for r in records if r.kind in HEURISTIC and r.plan and not r.error]
    published = headline_method(problem, {r.method for r in plans_of if r.kind == "published"})
    losing = [
        (relative(r.objective, known[r.instance_hash].best, r.sign) or 0.0, r.method, r)
        for r in plans_of
        if published in (r.method, None)
    ]
    if spec is None or spec.gantt is None or not losing:
        return None
    worst = max(losing, key=lambda item: item[:2])[2]
    try:
        instance = load_instance(worst.instance.partition(EDITED)[0])
    except InputError:
        return None
    if instance.content_hash != worst.instance_hash:
        return None
    value = known[worst.instance_hash].best
    of_it = [r for r in records if r.instance_hash == worst.instance_hash and r.plan]
    best = next((r for r in of_it if r.objective == value), worst)
    plans = []
    for run in (worst, best) if best is not worst else (worst,):
        try:
            plan = spec.plan_type.model_validate_json(json.dumps(run.plan))
        except ValueError:
            return None
        if verify(spec, instance, plan).objective != run.objective:  # a file may say anything
            return None
        lanes = spec.gantt(instance, plan)
        if not lanes:
            return None
        plans.append((f"{run.method}: {plainly(run.objective, run.unit) or f'{run.objective:,} {run.unit}'}", lanes))
    loss = relative(worst.objective, value, worst.sign) or 0.0
    caption = f"Worst case, {worst.instance}: {worst.method} loses {100 * loss:.1f} % against the best plan known."
    return picture(f"plan_{problem}", charts(plans, GANTT_INCH), caption)


def write_parquet(records: Runs, path: Path) -> bool:
    """The run table as Parquet; ``False`` without the extra ``mapgap[parquet]``."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        return False
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(per_run(records)), stream)
    make_folder(path.parent)
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
    return _page(_shown_runs(runs, ledger, broken), broken)


def _shown_runs(runs: Path, ledger: Ledger | None, broken: list[str]) -> Runs:
    """The runs of a file and what a ledger knows of their instances, with names that can be shown."""
    records = read_runs(runs, broken)
    if not records:
        found = f"none, and broken lines: {'; '.join(broken[:3])}" if broken else "none"
        raise InputError(f"{runs}: expected at least one finished run, found {found}")
    return presentable(records if ledger is None else records + ledger.references(records))


def _page(records: Runs, broken: Sequence[str]) -> Page:
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


def write_report(runs: Path, out: Path, ledger: Ledger | None = None, parts: Path | None = None) -> Report:
    """Write the standard report of a run file or folder, against what a ledger knows.

    Run files that lie in the report's folder are packed, unless a sweep writes to them.

    Parameters
    ----------
    parts : Path, optional
        Folder for every figure and table as a file of its own.

    Raises
    ------
    InputError
        No finished run, or a file that cannot be written.
    """
    broken: list[str] = []
    records = _shown_runs(runs, ledger, broken)
    page = _page(records, broken)
    written = page.write(out, parts)
    if parts is not None:
        write_parquet(records, parts / "runs.parquet")
    for file in run_files(runs) if runs.is_dir() else [runs]:
        if file.parent.resolve() == out.resolve():
            with suppress(InUse):
                pack(file)
    return Report(written, contradictions(records), broken)
