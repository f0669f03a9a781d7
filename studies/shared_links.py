"""What becomes of the best plans known where boards share links: one port per board, or one medium for all.

The problems give every pair of boards a link of its own. The plans of the ledger are replayed on other media
(:mod:`mapgap.clock.replay`), beside the best plan on a single board, which moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.media import media
from mapgap.reporting.prose import Tables
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Gathering
from mapgap.reporting.tables import Rows, Table, tabulated

MOST_TASKS = 20_000
"""Plans of more tasks are left out; they are of huge mini-batches."""


@tabulated(
    "plans",
    "The best plans known on shared links",
    "problem | instance | links: links of their own [s]; .4g | ports: times that on ports; .3f "
    "| shared: times that on one medium; .3f | single: times that on one board; .3f | turned: one board is faster on",
    "Seconds of a round (iteration, mini-batch or cycle). One board: where a medium costs more than a thousandth.",
)
def plans(book: Ledger) -> Rows:
    """Every plan of the ledger that can be replayed."""
    for name, entry in book.entries.items():
        if entry.plan is None or registry.problems()[entry.problem].clock is None or "@" in name:
            continue
        instance, plan = load_instance(name), load_plan(book.plan_path(name), entry.problem)
        found = media(instance, plan, MOST_TASKS)
        if found is not None:
            row: dict[str, Any] = {"problem": entry.problem, "instance": name, "links": found.links}
            row |= {"ports": found.ports / found.links, "shared": found.shared / found.links}
            row["single"] = None if found.single is None else found.single / found.links
            yield row | {"turned": ", ".join(found.turned)}


@tabulated(
    "counts",
    "By problem",
    "problem | plans | ports_median: ports, median; .3f | ports_most: most; .2f "
    "| shared_median: one medium, median; .3f | shared_most: most; .2f "
    "| ports_turned: one board faster on ports | shared_turned: on one medium",
    "Times as long as on links of their own. Synergy's problem has no method that takes one board for all models.",
)
def counts(table: Table) -> Rows:
    """How much longer plans take, and how many lose to one board."""
    for problem in dict.fromkeys(row["problem"] for row in table.rows):
        rows = [row for row in table.rows if row["problem"] == problem]
        found: dict[str, Any] = {"problem": problem, "plans": len(rows)}
        for medium in ("ports", "shared"):
            values: Sequence[float] = [row[medium] for row in rows]
            found |= {f"{medium}_median": median(values), f"{medium}_most": max(values)}
            found[f"{medium}_turned"] = sum(medium in row["turned"] for row in rows)
        yield found


def page(tables: Tables) -> Page:
    """The page of the study; it needs no runs."""
    del tables
    every = plans(Ledger.load())
    lead = [
        "A plan that is optimal where every pair of boards has a link of its own can be bad on a switch or a radio "
        "channel. The best plans known of the library are replayed with one port per board, and with one medium for "
        "all; a transfer keeps its time and waits until its ports or the medium are free."
    ]
    return Page("Plans on shared links", lead, [Section("Shared links", tables=[counts(every), every])])


STUDY = Gathering(name="shared_links", title="The best plans known on shared links", page=page, headline=("counts",))
